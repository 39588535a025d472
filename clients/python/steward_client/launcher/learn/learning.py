"""Learning of a workload from a command, step by step; steps already done by earlier launches are skipped."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import repeat
from math import ceil
from pathlib import Path
from uuid import uuid4

from steward_client.errors import StewardError, Unreachable
from steward_client.launcher.actuators import leftovers, registry
from steward_client.launcher.actuators.contract import Actuator, Settable
from steward_client.launcher.interrupts import Interrupted
from steward_client.launcher.iterations.mark import SECONDS
from steward_client.launcher.service import JobFailed, Json, Say, Service
from steward_client.launcher.terminal import unless
from steward_client.launcher.watched import QueueTimeout, Watched
from steward_client.launcher.wishes import Misuse, Resource, Wishes, duration_text, of_deadline

from .apart import measure_apart
from .beside import beside
from .design import Allocation, filling, most_doubted
from .jobs import BUDGET, Jobs
from .profile import LENGTH, Profile, Segment
from .specification import check_same, resources, specification, without_target

FILLING = 5
"""Number of space-filling samples before the model's uncertainty chooses the next."""
NOT_STARTED = 127
RUNS, MOST_JOBS = 20, 100
"""Most runs of a short command while it is measured, and most jobs that are measured side by side."""
QUEUE_SECONDS = 3600.0
"""Default of the longest time in a queue in which none of these jobs runs."""
LEFT = (JobFailed, StewardError, Unreachable)
"""Errors that don't end a running command; learning is continued by a later launch."""
BEGUN = "training interrupted; the next --learn resumes it"


NEXT_TIME = ": print a line per iteration, such as 'Epoch 3/90', or use --pattern or --watch-file"


class CommandEnded(RuntimeError):
    """The command has ended and nothing more is done; the message says why.

    Attributes:
        status: the command's exit status.
    """

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        super().__init__(why)


class Learning:
    """Registers, profiles, fits and trains one workload.

    Attributes:
        spec: the workload's spec from the service; None: not registered yet.
        status: exit status of the command's last finished run; None: none has finished.
        over: whether the command must not be started again.

    Args:
        wishes: options of the launch.
        service: client of the service.
        folder: folder for files between launcher and command.
        say: called with messages for the user.
    """

    def __init__(self, wishes: Wishes, service: Service, folder: Path, say: Say) -> None:
        self._wishes, self._service, self._folder, self._say = wishes, service, folder, say
        self._tell = unless(wishes.quiet, say)
        self._path = f"/workloads/{wishes.workload}"
        self._jobs = Jobs(service, self._path, self._tell)
        self.spec: Json | None = None
        self.status: int | None = None
        self.over = False
        self._resources: tuple[Resource, ...] = ()
        self._measured: dict[tuple[float, ...], int] = {}
        self._waiting: list[Segment] = []
        self._tag, self._iterations, self._fit, self._explained = uuid4().hex[:8], 0, None, False
        self._going, self._training = None, None

    _fit: Json | None
    _going: Profile | None
    _training: Future[None] | None

    def do(self) -> Profile | None:
        """Do all steps that are missing; returns the measured command if it still runs and can be governed, else None.

        Raises:
            Misuse: another workload of that name is registered.
            CommandEnded: the command has failed, or none of its iterations was recognised.
            JobFailed: the fit failed.
            StewardError, Unreachable: the service refused a call, or didn't respond.
            ActuatorError: the command can't be started.
        """
        self._find()
        if self.spec is not None and self._has_agent():
            return None
        if not self._enough():
            self._ask()
            if self._wishes.profile_jobs:
                self._profile_apart()
            else:
                self._profile()
        if self._going is not None:
            return self._learned_beside(self._going)
        if not self.over:
            model = self._fit_model()
            if not self._wishes.profile_jobs or self._wishes.checkpoint:
                self._train(model)
            self._end_or_restart()
        return None

    def begin(self) -> Profile | None:
        """Register the workload, without learning, as soon as its number of iterations is known.

        Returns the command if it was started to say that number and still runs, else None. Raises CommandEnded if it
        fails or no iteration is recognised, ActuatorError if it can't be started, StewardError and Unreachable."""
        workload = self._service.get_or_none(self._path)
        if workload is not None:
            return None
        self._find()
        if self._wishes.iterations is not None:
            self._register(self._wishes.iterations)
            return None
        most = {one.name: one.maximum for one in self._resources}
        self._once(repeat(most), self._await_total, 1, waits=False)
        if self._going is None:
            self.over = True
            self._say(
                f"done before decisions could begin; workload {self._wishes.workload!r} is registered: the next start "
                "is controlled from its first iteration"
            )
        return self._going

    def _await_total(self, _: Segment, watched: Watched) -> bool:
        """Register the workload if the command has said how many iterations it has; whether it hasn't yet."""
        try:
            self._register(watched.clock.total)
        except LEFT as error:  # it is tried again after the next iteration
            if not self._explained:
                self._say(f"not registered: {' '.join(str(error).split())}; the command continues")
            self._explained = True
        if self.spec is None and not self._explained:
            self._tell("the number of iterations is unknown: decisions begin once it is known (--iterations N sets it)")
            self._explained = True
        return self.spec is None

    def _learned_beside(self, going: Profile) -> Profile | None:
        """Fit while the command runs on; return the command if it still runs afterwards, else None."""
        most = {one.name: one.maximum for one in self._resources}
        self._tell(f"measured: the command keeps {self._in_words(most)} until a model is fitted")
        fitted = beside(self._fit_model)
        try:
            holds = going.hold(most, lambda: fitted.done() and self._iterations_remain(going))
        except Interrupted as error:
            going.watched.interrupt(error)
            raise
        if not holds:
            self._raise_if_failed(going)
            self._train(fitted.result())
            self._end_or_restart()
            return None
        try:
            self._train(fitted.result())
        except LEFT as error:
            self._say(f"not learned: {' '.join(str(error).split())}; the command continues")
        return going

    def _iterations_remain(self, going: Profile) -> bool:
        """Whether iterations remain that could be governed."""
        return self.spec is not None and going.watched.clock.count < self.spec["iterations"]

    def _raise_if_failed(self, going: Profile) -> None:
        """Note that the command ended before the fit did; raises CommandEnded if its exit status isn't 0."""
        self._going = None
        going.watched.actuator.close()
        self._note_end(going.watched)

    def _note_end(self, watched: Watched) -> None:
        """Record the exit status of a command that ended while it was measured.

        Raises:
            CommandEnded: it has failed.
        """
        self.status = watched.status
        if watched.status:
            hint = (
                "; measurements are kept, and the next start continues from there"
                if self.spec is not None and self._iterations
                else ""
            )
            raise CommandEnded(watched.status, f"the command failed before any decision: {watched.failure}{hint}")

    def _end_or_restart(self) -> None:
        """After a fit: say whether the command is started again under decisions; nothing before its first start."""
        if self.status is None:
            return
        self.over = not self._wishes.restart
        if self.over:
            self._say("the command has ended, and is not started again (--no-restart): the next start is controlled")
        else:
            self._say("the command is started again, once, under decisions (--no-restart would end here)")

    def rest(self, *, own: bool, status: int) -> None:
        """After the command's end: wait for a running training or leave it, and report its result. Raises nothing.

        Args:
            own: whether the service ends with this launch; another one continues the training.
            status: the command's exit status; a training is waited for only if it is 0.
        """
        if self._training is None:
            return
        if not self._training.done() and (status or not own):
            self._tell(BEGUN if own else "the training continues in the service, for the next run")
            return
        try:
            if not self._training.done():
                self._tell("the command has ended; waiting for the training (press Ctrl-C to stop waiting)")
            self._training.result()
        except LEFT as error:
            self._say(f"no agent: {' '.join(str(error).split())}")
        except Interrupted:
            self._tell(BEGUN)

    def close(self) -> None:
        """End the measured command if it runs."""
        if self._going is not None:
            self._going.watched.actuator.close()

    def _find(self) -> None:
        """Read the workload from the service; raises Misuse if it has another kind, other resources or iterations."""
        workload = self._service.get_or_none(self._path)
        page = "/" if workload is None else f"/ui{self._path}"
        self._tell(f"dashboard: {self._service.page(page)} (the run's page follows when decisions begin)")
        if workload is None:
            self._resources = resources(self._wishes)
            return
        self.spec = workload["spec"]
        if self.spec.get("kind") != "iterative":
            raise Misuse(
                f"workload {self._wishes.workload!r} is of kind {self.spec.get('kind')!r}; give another --name"
            )
        check_same(self._wishes, self.spec)
        self._give_targets(self.spec["metrics"])
        self._resources = tuple(map(Resource.of_spec, self.spec["resources"]))
        self._count()

    def _count(self) -> None:
        """Count the measurements of each allocation in the workload's samples."""
        executions = set()
        for row in self._service.table(f"{self._path}/samples"):
            allocation = tuple(float(row[f"allocation.{one.name}"]) for one in self._resources)
            if (row["execution"], allocation) not in executions:
                executions.add((row["execution"], allocation))
                self._measured[allocation] = self._measured.get(allocation, 0) + 1
            self._iterations += 1

    def _give_targets(self, metrics: Sequence[Json]) -> None:
        """Set requested targets of ``metrics`` registered without one; raises StewardError if the service refuses."""
        wished = without_target(self._wishes, metrics)
        if wished:
            self.spec = self._service.call("PATCH", self._path, {"targets": wished})["spec"]
            text = ", ".join(f"{name} {value:g}" for name, value in wished.items())
            self._tell(f"targets: workload {self._wishes.workload!r} had none for these; from now on {text}")

    def _has_agent(self) -> bool:
        """Whether an agent exists, or a training from an earlier launch is in progress."""
        agents = self._service.call("GET", f"{self._path}/agents?limit=1")["items"]
        if agents:
            self._tell(f"learned before: agent {agents[0]['version']} of workload {self._wishes.workload!r}")
            return True
        left = self._jobs.unfinished_training()
        if left is not None:
            self._tell("measured before; training resumed")
            self._training = beside(partial(self._jobs.wait_for_training, left))
        return left is not None

    def _enough(self) -> bool:
        return self.spec is not None and self._iterations >= self._wishes.profile_iterations

    def _profile(self) -> None:
        """Measure the command, in as many runs as needed."""
        left = self._wishes.profile_iterations - self._iterations
        known = f", {self._iterations} are there" if self._iterations else ""
        again = f"is started again, up to {RUNS} times (--no-restart: never)" if self._wishes.restart else "stays ended"
        self._tell(
            f"profile: about {left} iterations are measured, {LENGTH} at each allocation{known}; a command that ends "
            f"before that {again}"
        )
        allocations = self._allocations()
        for start in range(RUNS):
            if start:
                measured = f"{self._iterations} of {self._wishes.profile_iterations} iterations are measured"
                self.over = not self._wishes.restart
                if self.over:
                    self._say(f"the command has ended, and {measured}: the next --learn goes on (--no-restart)")
                    return
                self._say(
                    f"the command has ended, and {measured}: it is started again (start {start + 1} of {RUNS} at most; "
                    "--no-restart prevents that)"
                )
            self._once(allocations, self._keep)
            if self._enough() or self._going is not None:
                return
        self._tell(f"profile: {self._iterations} iterations in {RUNS} runs of the command must do")

    def _once(
        self,
        allocations: Iterator[Mapping[str, float]],
        keep: Callable[[Segment, Watched], bool],
        length: int = LENGTH,
        *,
        waits: bool = True,
    ) -> None:
        with ExitStack() as undone:
            actuator = undone.enter_context(closing(self._actuator()))
            self._wishes.check_place(actuator)
            if self.status is None:
                registry.introduce(actuator, self._tell)
            iterations = self._wishes.iterations if self.spec is None else self.spec["iterations"]
            watched = Watched(self._wishes, actuator, self._folder, self._say, iterations)
            profile = Profile(watched, allocations, lambda whole: keep(whole, watched), length, waits=waits)
            if self._measures(profile):
                self._going = profile
                undone.pop_all()
                return
        self.status = watched.status
        if profile.rows:  # one that has failed does not tell by its end how many iterations there are
            self._register(watched.clock.total if watched.status else profile.total)
        self._note_end(watched)
        seconds, deadline = watched.ended - watched.began, self._wishes.deadline
        took = duration_text(seconds) + (f", {of_deadline(seconds, deadline)}" if deadline else "")
        if profile.rows and not profile.measured and not self._iterations:
            why = f" ({watched.requests.last.reason})" if watched.requests.last is not None else ""
            raise CommandEnded(0, f"the command finished after {took}; what was to be measured was never there{why}")
        if not profile.rows:
            hint = ": only one iteration was seen, and not its start" if watched.clock.count else ""
            raise CommandEnded(0, f"the command finished after {took}, without decisions{hint or NEXT_TIME}")

    def _actuator(self) -> Actuator:
        """A new actuator of the launch, which hasn't started anything."""
        ranges = {one.name: one.range for one in self._resources}
        return registry.create(self._wishes.actuator, ranges, dict(self._wishes.options))

    def _settable(self) -> Mapping[str, Settable]:
        with closing(self._actuator()) as unused:
            return unused.resources()

    def _ask(self) -> None:
        """Raise Misuse if each change would start the command again and neither ``--checkpoint`` nor ``--profile-jobs``
        is given, or if ``--profile-jobs`` doesn't go with the other options."""
        times, name = self._wishes.profile_iterations // LENGTH, self._wishes.actuator
        with closing(self._actuator()) as unused:
            restarts = [resource for resource, one in unused.resources().items() if one.restarts]
            apart = getattr(unused, "apart", False)
            shares_files = unused.shares_files or getattr(unused, "passes_output", True)
        if self._wishes.profile_jobs and not apart:
            raise Misuse(
                f"--profile-jobs with actuator {name}: commands side by side would slow one another down; an actuator "
                "whose scheduler gives each of them room of its own is accepted, such as slurm"
            )
        if self._wishes.profile_jobs and self._wishes.watch_file is not None:
            raise Misuse("--profile-jobs with --watch-file: all jobs would write to one file; --pattern is accepted")
        if self._wishes.profile_jobs and not shares_files:
            raise Misuse(
                "--profile-jobs: iterations of the jobs can't be seen; for slurm --option shared=yes is accepted: "
                "nodes and launcher see the same folders then"
            )
        if self._wishes.profile_jobs and times > MOST_JOBS:
            most = MOST_JOBS * LENGTH
            raise Misuse(f"--profile-jobs submits {times} jobs at once: --profile-iterations up to {most} is accepted")
        if restarts and not (self._wishes.checkpoint or self._wishes.profile_jobs):
            also = "; --profile-jobs measures it by short jobs side by side instead" if apart else ""
            raise Misuse(
                f"--learn changes {', '.join(restarts)} some {times} times, and each change starts the command again "
                f"({name}): --checkpoint agrees to that, if the command continues from a checkpoint{also}; "
                "else upload samples of earlier runs"
            )

    def _profile_apart(self) -> None:
        """Measure the command by short jobs side by side, one for each allocation; again for those that were refused.

        Raises:
            CommandEnded: none of them was measured.
            Misuse: the number of iterations is unknown.
        """
        filled, wanted = filling(self._resources), self._wishes.profile_iterations
        with closing(self._actuator()) as unused:  # once: each job would remove those beside it
            leftovers.remove(unused, self._wishes.run_name, self._say, every=self._wishes.clean)
            registry.introduce(unused, self._tell)
        statuses, queue = set[int](), QueueTimeout(self._wishes.queue_seconds or QUEUE_SECONDS)
        for _ in range(RUNS):  # a queue may admit few at a time
            known = self._iterations
            self._measure_jobs(filled, ceil((wanted - known) / LENGTH), statuses, queue)
            if known == self._iterations or self._iterations >= wanted or queue.passed:
                break
        if queue.passed and self._iterations:
            self._say(f"profile: {self._iterations} of {wanted} iterations must do: the queue has no room for more")
        if not self._iterations:
            raise CommandEnded(max(statuses, default=NOT_STARTED), "no short job was measured")
        if self.spec is None:
            raise Misuse("the number of iterations is unknown: --iterations N sets it")

    def _measure_jobs(self, filled: Iterator[Allocation], count: int, statuses: set[int], queue: QueueTimeout) -> None:
        """Measure ``count`` jobs side by side; adds the exit ``statuses`` of those that ended by themselves. Raises
        Misuse or StewardError if the service refuses a sample, Unreachable if it can't register the workload."""
        quiet = replace(self._wishes, quiet=True, clean=False)
        commands = list[tuple[Watched, Allocation]]()
        for _ in range(count):
            folder = Path(tempfile.mkdtemp(prefix="job-", dir=self._folder))
            watched = Watched(quiet, self._actuator(), folder, self._say, self._wishes.iterations, queue)
            commands.append((watched, self._fresh(filled)))
        lost: Unreachable | None = None
        jobs = f"{count} short jobs side by side, each" if count > 1 else "1 short job,"
        self._tell(f"profile: {jobs} ended after {LENGTH} measured iterations")
        sizes = {watched: self._in_words(allocation) for watched, allocation in commands}
        try:
            with closing(measure_apart(commands)) as measured:
                for watched, rows in measured:
                    if watched.status is not None and not watched.given_up:
                        statuses.add(watched.status)
                    if isinstance(rows, str):
                        self._say(f"a short job ({sizes[watched]}) was not measured: {rows}")
                        continue
                    try:
                        self._keep(rows, watched)
                    except Unreachable as error:  # sent with the next one, or before the fit: the other jobs go on
                        lost = error
                        self._say(f"not sent yet: {' '.join(str(error).split())}")
        except Interrupted:
            self._tell("the short jobs were ended; what was measured is kept, and the next --learn goes on")
            raise
        if self.spec is None and lost is not None:
            raise lost

    def _measures(self, profile: Profile) -> bool:
        """Measure the command; whether it runs on. An unreachable service ends measuring, but not the command."""
        try:
            return profile.measure()
        except Interrupted as error:
            profile.watched.interrupt(error)
            raise
        except LEFT as error:
            self._say(f"profiling stopped: {' '.join(str(error).split())}; the command continues")
            return True

    def _keep(self, whole: Segment, watched: Watched) -> bool:
        """Store a sample, at the service once the workload is registered; whether more samples are needed."""
        self._waiting.append(whole)
        values = tuple(whole.allocation.values())
        self._measured[values] = self._measured.get(values, 0) + 1
        wanted, known = self._wishes.profile_iterations, self._iterations
        self._iterations += len(whole.rows)
        seconds = sum(row.seconds - row.change_seconds for row in whole.rows) / len(whole.rows)
        texts = self._in_words(whole.allocation)
        if known < wanted or self.spec is None:
            self._tell(f"profile: {self._iterations} iterations ({wanted} wanted); {texts}: {duration_text(seconds)}")
        self._register(self._wishes.iterations or watched.clock.total)
        if self._enough() or self._iterations < wanted:
            return self.spec is None or self._iterations < wanted
        if not self._explained:
            self._tell("profile: the number of iterations is unknown (--iterations N sets it): measured to the end")
            self._explained = True
        return True

    def _in_words(self, allocation: Mapping[str, float]) -> str:
        return ", ".join(f"{one.name} {allocation[one.name]:g} {one.unit}".strip() for one in self._resources)

    def _register(self, iterations: int | None) -> None:
        """Register the workload if it isn't yet and its number of iterations is known; if it is, upload waiting
        samples.

        Raises Misuse if the service rejects a sample, StewardError if it refuses a call, Unreachable if it is
        silent."""
        if self.spec is None and iterations:
            costs = {name: one.change_seconds for name, one in self._settable().items()}
            spec = specification(self._wishes, self._wishes.iterations or iterations, costs)
            self.spec = self._service.call("POST", "/workloads", spec)["spec"]
            self._tell(f"registered: workload {self._wishes.workload!r}, {self.spec['iterations']} iterations")
        if self.spec is not None and self._waiting:
            samples = [self._sample(segment, self.spec) for segment in self._waiting]
            answer = self._service.call("POST", f"{self._path}/samples", {"samples": samples})
            self._waiting.clear()
            for refusal in answer["rejections"]:
                why = f"{refusal['field']} {refusal['reason']}, not {refusal['value']}"
                raise Misuse(f"the measurements are not a sample of workload {self._wishes.workload!r}: {why}")

    def _sample(self, segment: Segment, spec: Json) -> Json:
        names = [metric["name"] for metric in spec["metrics"]]
        reports = []
        for row in segment.rows[: spec["iterations"]]:
            metrics = {SECONDS: row.seconds - row.change_seconds, **row.metrics}
            reports.append(
                {
                    "allocation": dict(row.allocation),
                    "metrics": {name: metrics[name] for name in names if name in metrics},
                    "features": dict(row.features) if spec["features"] else {},
                }
            )
        number = sum(self._measured.values())
        return {"execution": f"profile-{self._tag}-{number}-{uuid4().hex[:4]}", "reports": reports}

    def _allocations(self) -> Iterator[Allocation]:
        """Yield allocations to be measured: space-filling ones, then those where the model is least certain."""
        filled = filling(self._resources)
        for _ in range(FILLING):
            yield self._fresh(filled)
        while True:
            model = self._interim()
            doubt = partial(self._doubt, model)
            known = model is not None
            yield most_doubted(self._resources, doubt, self._measured) if known else self._fresh(filled)

    def _fresh(self, filled: Iterator[Allocation]) -> Allocation:
        """The next allocation that hasn't been measured; any, if all have been."""
        result = next(filled)
        for _ in range(sum(self._measured.values())):
            if tuple(result.values()) not in self._measured:
                break
            result = next(filled)
        return result

    def _interim(self) -> int | None:
        """Version of a model of the samples so far, fitted in the background; None if none is ready."""
        if self.spec is None:
            return None
        if self._fit is None:
            self._fit = self._jobs.begin("models", {})
            return None
        self._fit = self._service.call("GET", f"/jobs/{self._fit['id']}")
        return int(self._fit["result"]["model"]) if self._fit["state"] == "succeeded" else None

    def _doubt(self, model: int | None, allocation: Allocation) -> float:
        query = "&".join(f"allocation={name}:{value:g}" for name, value in allocation.items())
        result = self._service.call("GET", f"{self._path}/models/{model}/predict?{query}")["predicted"][SECONDS]
        return float((result["high"] - result["low"]) / result["mean"])

    def _fit_model(self) -> int:
        """Fit all samples and return the model's version. Raises Misuse if the service rejects a sample, JobFailed if
        the fit fails, StewardError if the service refuses a call, Unreachable if it doesn't respond."""
        self._register(None)
        return self._jobs.wait_for_fit(self._jobs.begin("models", {}))

    def _train(self, model: int) -> None:
        """Train an agent on a model version in the background."""
        request = {"budget": self._wishes.budget or BUDGET, "model": model}
        self._training = beside(lambda: self._jobs.wait_for_training(self._jobs.begin("agents", request)))

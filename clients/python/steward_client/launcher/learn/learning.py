"""From a bare command to a workload that is governed, step by step; what is there already is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from uuid import uuid4

from steward_client.errors import StewardError, Unreachable
from steward_client.launcher.actuators import registry
from steward_client.launcher.interrupts import Interrupted
from steward_client.launcher.iterations.mark import SECONDS
from steward_client.launcher.said import unless
from steward_client.launcher.service import JobFailed, Json, Say, Service
from steward_client.launcher.watched import Watched
from steward_client.launcher.wishes import Misuse, Resource, Wishes

from .beside import beside
from .design import Allocation, filling, most_doubted
from .jobs import BUDGET, Jobs
from .profile import LENGTH, Profile, Segment
from .specification import check_same, resources, specification, without_target

FILLING = 5
"""Samples that fill the space before the model is asked where it knows least."""
RUNS = 20
"""Of a short command, at most, to measure it often enough."""
LEFT = (JobFailed, StewardError, Unreachable)
"""What ends no command that goes on: it is learned from another time."""
BEGUN = "the training is left; the next --learn goes on with it"


class CommandEnded(RuntimeError):
    """The command has come to its end, and nothing more is done; the message says why.

    Attributes:
        status: its exit status.
    """

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        super().__init__(why)


class Learning:
    """One workload's.

    Attributes:
        spec: as the service has it; None: it is not known.
        status: of the command's last start that came to its end, if one did.
        over: whether the command is not to be started any more.
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
        self._tag, self._iterations, self._fit, self._told_why = uuid4().hex[:8], 0, None, False
        self._going, self._training = None, None

    _fit: Json | None
    _going: Profile | None
    _training: Future[None] | None

    def do(self) -> Profile | None:
        """Everything that has not been done; the command that was measured, if it goes on and can be governed.

        Raises:
            Misuse: what is registered is another workload.
            CommandEnded: the command has failed, or no iteration was recognised in it.
            JobFailed, StewardError, Unreachable, ActuatorError: see there.
        """
        self._find()
        if self.spec is not None and self._learned():
            return None
        if not self._enough():
            self._profile()
        if self._going is not None:
            return self._learned_beside(self._going)
        if not self.over:
            self._train(self._fitted())
            self._end_or_restart()
        return None

    def _learned_beside(self, going: Profile) -> Profile | None:
        """Fit while the command goes on; the command if it still goes on once that is done."""
        most = {one.name: one.maximum for one in self._resources}
        held = ", ".join(f"{one.name} {one.maximum:g} {one.unit}".strip() for one in self._resources)
        self._tell(f"measured: the command goes on with {held} until a model is fitted")
        fitted = beside(self._fitted)
        try:
            holds = going.hold(most, lambda: fitted.done() and self._left(going))
        except Interrupted as error:
            going.watched.interrupt(error)
            raise
        if not holds:
            self._ended(going)
            self._train(fitted.result())
            self._end_or_restart()
            return None
        try:
            self._train(fitted.result())
        except LEFT as error:
            self._say(f"not learned: {' '.join(str(error).split())}; the command goes on")
        return going

    def _left(self, going: Profile) -> bool:
        """Whether there are iterations yet that could be governed."""
        return self.spec is not None and going.watched.clock.count < self.spec["iterations"]

    def _ended(self, going: Profile) -> None:
        """The command has come to its end before anything was learned of it."""
        self._going = None
        going.watched.actuator.close()
        self._note_end(going.watched)

    def _note_end(self, watched: Watched) -> None:
        """The command has come to an end while it was measured.

        Raises:
            CommandEnded: it has failed.
        """
        self.status = watched.status
        if watched.status:
            kept = (
                "; what was measured is kept, and the next start goes on from there"
                if self.spec is not None and self._iterations
                else ""
            )
            raise CommandEnded(watched.status, f"the command failed while it was measured: {watched.failure}{kept}")

    def _end_or_restart(self) -> None:
        """A model is fitted: say that the command is started again, under decisions, unless it was not started yet."""
        if self.status is None:
            return
        self.over = not self._wishes.restart
        if self.over:
            self._say("the command has ended, and is not started again (--no-restart): the next start is governed")
        else:
            self._say("the command is started again, once, under decisions (--no-restart would end here)")

    def rest(self, *, own: bool, status: int) -> None:
        """What is still learned after the command's end: wait for it, or leave it.

        What becomes of it is said: the command is done, and its status stands.

        Args:
            own: whether the service ends with this launch; another one goes on with the training.
            status: the command's; whoever had it fail, or ended it, waits for nothing.
        """
        if self._training is None:
            return
        if not self._training.done() and (status or not own):
            self._tell(BEGUN if own else "the training goes on at the service, for the next run")
            return
        try:
            if not self._training.done():
                self._tell("the command is done; the training goes on, Ctrl-C leaves it")
            self._training.result()
        except LEFT as error:
            self._say(f"no agent: {' '.join(str(error).split())}")
        except Interrupted:
            self._tell(BEGUN)

    def close(self) -> None:
        """End the command if it goes on."""
        if self._going is not None:
            self._going.watched.actuator.close()

    def _find(self) -> None:
        """What the service knows of it."""
        found = self._service.found(self._path)
        page = "/" if found is None else f"/ui{self._path}"
        self._tell(f"dashboard: {self._service.page(page)}; the run's own page follows once it is under decisions")
        if found is None:
            self._resources = resources(self._wishes)
            return
        self.spec = found["spec"]
        if self.spec.get("kind") != "iterative":
            raise Misuse(
                f"workload {self._wishes.workload!r} is of kind {self.spec.get('kind')!r}; give another --name"
            )
        check_same(self._wishes, self.spec)
        self._give_targets(self.spec["metrics"])
        self._resources = tuple(map(Resource.of_spec, self.spec["resources"]))
        self._count()

    def _count(self) -> None:
        """How often each allocation was measured, by the samples there."""
        executions = set()
        for row in self._service.table(f"{self._path}/samples"):
            allocation = tuple(float(row[f"allocation.{one.name}"]) for one in self._resources)
            if (row["execution"], allocation) not in executions:
                executions.add((row["execution"], allocation))
                self._measured[allocation] = self._measured.get(allocation, 0) + 1
            self._iterations += 1

    def _give_targets(self, metrics: Sequence[Json]) -> None:
        """Targets that are wished now, and of which there was none when it was registered."""
        wished = without_target(self._wishes, metrics)
        if wished:
            self.spec = self._service.call("PATCH", self._path, {"targets": wished})["spec"]
            told = ", ".join(f"{name} {value:g}" for name, value in wished.items())
            self._tell(f"targets: workload {self._wishes.workload!r} had none for these; from now on {told}")

    def _learned(self) -> bool:
        """Whether there is an agent, or a training that was left goes on to make one."""
        agents = self._service.call("GET", f"{self._path}/agents?limit=1")["items"]
        if agents:
            self._tell(f"learned before: agent {agents[0]['version']} of workload {self._wishes.workload!r}")
            return True
        left = self._jobs.left()
        if left is not None:
            self._tell("measured before; the training that was left goes on")
            self._training = beside(partial(self._jobs.trained, left))
        return left is not None

    def _enough(self) -> bool:
        return self.spec is not None and self._iterations >= self._wishes.profile_iterations

    def _profile(self) -> None:
        """Run the command, as often as it takes."""
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
            self._once(allocations)
            if self._enough() or self._going is not None:
                return
        self._tell(f"profile: {self._iterations} iterations in {RUNS} runs of the command must do")

    def _once(self, allocations: Iterator[Mapping[str, float]]) -> None:
        ranges = {one.name: one.range for one in self._resources}
        with ExitStack() as undone:
            actuator = undone.enter_context(
                closing(registry.create(self._wishes.actuator, ranges, dict(self._wishes.options)))
            )
            if self.status is None:
                registry.introduce(actuator, self._tell)
            iterations = self._wishes.iterations if self.spec is None else self.spec["iterations"]
            watched = Watched(self._wishes, actuator, self._folder, self._say, iterations)
            profile = Profile(watched, allocations, lambda whole: self._keep(whole, watched))
            if self._measures(profile):
                self._going = profile
                undone.pop_all()
                return
        if profile.rows:  # one that has failed does not tell by its end how many iterations there are
            self._register(watched.clock.total if watched.status else profile.total)
        self._note_end(watched)
        if not profile.rows:
            seen = ": only one iteration was seen, and not when it began" if watched.clock.count else ""
            raise CommandEnded(0, f"nothing is learned{seen}")

    def _measures(self, profile: Profile) -> bool:
        """Measure; whether the command goes on. A service that is lost does not end it."""
        try:
            return profile.measure()
        except Interrupted as error:
            profile.watched.interrupt(error)
            raise
        except LEFT as error:
            self._say(f"no more is measured: {' '.join(str(error).split())}; the command goes on")
            return True

    def _keep(self, whole: Segment, watched: Watched) -> bool:
        """Keep a sample, at the service as soon as the workload can be registered; whether more are wanted."""
        self._waiting.append(whole)
        values = tuple(whole.allocation.values())
        self._measured[values] = self._measured.get(values, 0) + 1
        wanted, known = self._wishes.profile_iterations, self._iterations
        self._iterations += len(whole.rows)
        seconds = sum(row.seconds for row in whole.rows) / len(whole.rows)
        texts = ", ".join(f"{one.name} {whole.allocation[one.name]:g} {one.unit}".strip() for one in self._resources)
        if known < wanted or self.spec is None:
            self._tell(f"profile: {self._iterations} iterations ({wanted} wanted); {texts}: {seconds:.3g} s")
        self._register(self._wishes.iterations or watched.clock.total)
        if self._enough() or self._iterations < wanted:
            return self.spec is None or self._iterations < wanted
        if not self._told_why:
            self._tell("profile: how many iterations there are is not said (--iterations): measured to the end")
            self._told_why = True
        return True

    def _register(self, iterations: int | None) -> None:
        """Register the workload once its length is known; send the samples that wait."""
        if self.spec is None and iterations:
            spec = specification(self._wishes, self._wishes.iterations or iterations)
            self.spec = self._service.call("POST", "/workloads", spec)["spec"]
            self._tell(f"registered: workload {self._wishes.workload!r}, {self.spec['iterations']} iterations")
        if self.spec is not None and self._waiting:
            samples = [self._sample(segment, self.spec) for segment in self._waiting]
            answer = self._service.call("POST", f"{self._path}/samples", {"samples": samples})
            self._waiting.clear()
            for refusal in answer["rejections"]:
                why = f"{refusal['field']} {refusal['reason']}, not {refusal['value']}"
                raise Misuse(f"what was measured is no sample of workload {self._wishes.workload!r}: {why}")

    def _sample(self, segment: Segment, spec: Json) -> Json:
        names = [metric["name"] for metric in spec["metrics"]]
        reports = []
        for row in segment.rows[: spec["iterations"]]:
            metrics = {SECONDS: row.seconds, **row.metrics}
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
        """What is measured next: the space is filled first, then where the model knows least."""
        filled = filling(self._resources)
        for _ in range(FILLING):
            yield self._fresh(filled)
        while True:
            model = self._interim()
            doubt = partial(self._doubt, model)
            known = model is not None
            yield most_doubted(self._resources, doubt, self._measured) if known else self._fresh(filled)

    def _fresh(self, filled: Iterator[Allocation]) -> Allocation:
        """The next that was not measured, as long as there is one."""
        found = next(filled)
        for _ in range(sum(self._measured.values())):
            if tuple(found.values()) not in self._measured:
                break
            found = next(filled)
        return found

    def _interim(self) -> int | None:
        """A model of what is measured so far; it is fitted beside the command, which nobody holds up for it."""
        if self.spec is None:
            return None
        if self._fit is None:
            self._fit = self._jobs.begin("models", {})
            return None
        self._fit = self._service.call("GET", f"/jobs/{self._fit['id']}")
        return int(self._fit["result"]["model"]) if self._fit["state"] == "succeeded" else None

    def _doubt(self, model: int | None, allocation: Allocation) -> float:
        query = "&".join(f"allocation={name}:{value:g}" for name, value in allocation.items())
        found = self._service.call("GET", f"{self._path}/models/{model}/predict?{query}")["predicted"][SECONDS]
        return float((found["high"] - found["low"]) / found["mean"])

    def _fitted(self) -> int:
        """Fit what was measured; the version of the model."""
        self._register(None)
        return self._jobs.fitted(self._jobs.begin("models", {}))

    def _train(self, model: int) -> None:
        """Train an agent in simulators of the model, beside the command."""
        request = {"budget": self._wishes.budget or BUDGET, "model": model}
        self._training = beside(lambda: self._jobs.trained(self._jobs.begin("agents", request)))

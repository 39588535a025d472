"""A command under the service's decisions: its iterations are reported, and decided allocations are set."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from steward_client.answers import nothing
from steward_client.errors import CapReached, StewardError, Unreachable
from steward_client.iterative import Run
from steward_client.mlflow_sink import MlflowSink
from steward_client.reaction import Contingency, Timetable
from steward_client.retry import Retry

from .actuators import registry
from .actuators.contract import ActuatorError, Allocation
from .actuators.requests import Request
from .followed import Followed
from .interrupts import Interrupted, Stopped, defer_interrupts, ignore_signals
from .iterations.mark import SECONDS, Iteration
from .row import HELD, PROFILE, Row, source_in_words
from .service import LONGEST_ASKED_SECONDS, PATIENCE_SECONDS, Json, Say, Service, error_line
from .terminal import unless
from .watched import Watched
from .wishes import Misuse, Resource, Wishes, duration_text

WAIT_SECONDS = 2.0
MOST_CHANGES_SHOWN = 40
NOTHING_CHANGED = "nothing is changed, the command has the largest allocation throughout"
FIXED = (
    "the size is set once, at the start: a change would start the command again, and only --checkpoint says that it "
    "continues from a checkpoint then"
)
NOTICEABLE = 0.01
"""If the start-up takes more than this share of the deadline, the run is replaced by one with the remaining time."""


class Governed:
    """Reports each iteration of a command and sets the decided allocations.

    Attributes:
        rows: the iterations so far, without those whose start is unknown.
        cancelled: what ended the run from outside, in words; empty: nothing did.
        stopped: whether that was a cap.
        currency: currency of the prices, from the service; empty: unknown.

    Args:
        wishes: options of the launch.
        service: client of the service.
        spec: spec of the workload, from the service.
        watched: the command.
        say: called with messages for the user.
        known: the command's iterations so far, if it is running already; None: it isn't.
        sink: logs decisions and outcome to MLflow; None: they are not logged.
    """

    def __init__(
        self,
        wishes: Wishes,
        service: Service,
        spec: Json,
        watched: Watched,
        say: Say,
        known: Sequence[Row] | None,
        sink: MlflowSink | None = None,
    ) -> None:
        self.wishes, self.spec, self.rows, self.watched = wishes, spec, list(known or ()), watched
        self._actuator, self._say, self._service = watched.actuator, say, service
        self._tell = unless(wishes.quiet, say)
        restarts = any(one.restarts for one in self._actuator.resources().values())
        self._fixed = restarts and not wishes.checkpoint and not wishes.advise
        self._resources = {resource["name"]: Resource.of_spec(resource) for resource in spec["resources"]}
        self._allowed: Allocation = {name: one.maximum for name, one in self._resources.items()}
        self._decided = self._allowed  # what is recommended, where nothing is applied
        self._metrics = [metric["name"] for metric in spec["metrics"]]
        self._features = [feature["name"] for feature in spec["features"]]
        self._takes_over = self._settled = known is not None
        self._gone = time.monotonic() - watched.began if self._takes_over else 0.0  # until the run's start
        self.run, self._followed = self._new_run(watched.clock.count, self._gone), None
        self._sink, self._remote = sink, dict(sink.environment) if sink else {}
        self.cancelled = self.currency = ""
        self.stopped = False
        self._changes = 0
        self._timetable: Timetable | None = None
        self._in_place = not restarts  # a restart would lose the iteration
        self.watched.between = self._react if self._in_place else None
        self._former: Allocation = self._allowed
        self._refused: Allocation | None = None  # as long as the decision may not know of it

    _followed: Followed | None

    def _new_run(self, first: int, gone: float) -> Run:
        """A run that begins with iteration ``first``, ``gone`` seconds after the command's start."""
        return Run(
            self._service.url,
            self.spec["name"],
            targets=targets(self.wishes, self.spec, gone),
            first_iteration=first,
            policy=self._policy,
            advise=self.wishes.advise,
            caps=self.wishes.caps,
            retry=Retry(patience_seconds=PATIENCE_SECONDS, longest_asked_seconds=LONGEST_ASKED_SECONDS),
            wait_seconds=WAIT_SECONDS,
            refusals="log",
        )

    @property
    def _policy(self) -> str | None:
        """Name of the rule that decides: where nothing is changed after the start, by default the one that holds."""
        return "hold" if self._fixed and self.wishes.policy is None else self.wishes.policy

    def _start(self) -> None:
        """Start the run; if the command doesn't see the launcher's files, with a token with which it can report, unless
        it would take recommendations for its allocation."""
        self.currency = self._service.call("GET", f"/workloads/{self.spec['name']}").get("currency", "")
        if self._actuator.shares_files or self._takes_over or self.wishes.advise:
            self.run.start()
            return
        request = {"workload": self.spec["name"], "targets": targets(self.wishes, self.spec), "token": True}  # nosec B105
        if self._policy is not None:
            request["policy"] = self._policy
        if self.wishes.caps:
            request["caps"] = self.wishes.caps
        begun = self._service.call("POST", "/runs", request)
        self.run.take_up(begun["id"])
        self._followed = self.watched.follow(Followed(self._service, self.run.id))
        self._remote |= {"STEWARD_URL": self._service.url, "STEWARD_RUN": self.run.id, "STEWARD_TOKEN": begun["token"]}

    def drive(self) -> int:
        """Run the command to its end and return its exit status; signals meanwhile are passed on to it.

        Raises:
            StewardError, Unreachable: the run can't be started, and the command wasn't running yet. One that was
                running continues without decisions instead.
            ActuatorError: the command can't be started, or not with the decided allocation.
        """
        try:
            return self._drive()
        except Interrupted as error:
            if self.watched.status is not None:  # only what the service hears of it is cut short
                return self._cut_short(self.watched.status, str(error))
            self.watched.interrupt(error)
            self.cancelled = "Ctrl-C (SIGINT)" if error.number == signal.SIGINT else str(error)
            self.stopped = isinstance(error, Stopped)
            with ignore_signals():
                self._end_early((CapReached if self.stopped else KeyboardInterrupt)(self.cancelled))
            return error.status

    def _drive(self) -> int:
        try:
            self._start()
        except (StewardError, Unreachable) as error:
            if not self._takes_over:
                raise
            self._say(f"not controlled: {error_line(error)}; the command continues")
            return self._run_ungoverned()
        self._tell(f"run: {self.page}")
        self._begin()
        for iteration in self.watched.iterations():
            self._after(iteration)
        self._end()
        return self.watched.status or 0

    def _run_ungoverned(self) -> int:
        for _ in self.watched.iterations():
            pass
        return self.watched.status or 0

    def _end_early(self, error: BaseException) -> None:
        """End the run, if it was started, as failed or cancelled because of ``error``; takes at most some seconds."""
        if self.run.id:
            self.run.leave(error)

    @property
    def page(self) -> str:
        """URL of the run's page."""
        return self._service.page(f"/ui/runs/{self.run.id}")

    @property
    def page_later(self) -> str:
        """Command that shows the page once the launcher's own service has ended; empty: the service goes on."""
        return self._service.serve if self._service.own else ""

    @property
    def deadline(self) -> float | None:
        """Seconds from the command's start to its deadline: this run's, else the workload's; None if there is none."""
        (seconds,) = (metric for metric in self.spec["metrics"] if metric["name"] == SECONDS)
        if seconds["scope"] != "run":
            return None
        if self.run.targets is not None:  # it may have been changed while the run went on
            own = self.run.targets.get(SECONDS, seconds.get("target"))
            return None if own is None else own + self._gone
        return self.wishes.deadline or dict(self.wishes.targets).get(SECONDS) or seconds.get("target")

    def close(self) -> None:
        """Close the connection to the service, and log the outcome; the run is not ended."""
        if self._sink is not None:
            finished = self.watched.status == 0
            self._sink.ended(self.run, "cancelled" if self.cancelled else "finished" if finished else "failed")
            self._sink.close()
        self.run.close()

    def _begin(self) -> None:
        decision = self.run.decision
        if self._sink is not None:
            self._sink.decided(self.run)
        if self._fixed:
            self._say(FIXED)
        if self._takes_over:
            when, decided = f"after {self.watched.clock.count} iterations", self._decided_allocation()
            if self.wishes.advise:
                self._tell(f"advising from iteration {self.watched.clock.count}: {NOTHING_CHANGED}")
                self._show(when, decided, decision.reason.text, decision.source)
            else:
                self._tell(f"controlling from iteration {self.watched.clock.count}")
                self._apply(when, self._set(), decided)
            self._await_grants(self.watched.clock.ended or time.monotonic())
            return
        registry.introduce(self._actuator, self._tell)
        if self.wishes.advise:
            self._tell(f"advising: {NOTHING_CHANGED}")
            if not self._actuator.shares_files and self.wishes.watch_file is None:
                self._tell("iterations are read from its output alone: there it can't report to the launcher by itself")
        self._show("first", self._decided_allocation(), decision.reason.text, decision.source)
        try:
            self.watched.start(self._allowed, self._remote)
        except ActuatorError as error:
            self._end_early(error)
            raise
        self._await_grants(self.watched.began)

    def _await_grants(self, began: float, contingencies: Sequence[Contingency] = (), *, changed: bool = False) -> None:
        """Watch for what is granted within the iteration that began at ``began``, and for the contingencies' times.

        What was just set (``changed``) counts from its beginning on. Where a change restarts the command, an iteration
        has one allocation, that with which it was started."""
        if self._timetable is not None and not changed:  # something may have been granted since then
            self._timetable = self._timetable.next(contingencies, began)
        else:
            self._timetable = Timetable(self._set(), contingencies, began) if self._in_place else None

    def _there_now(self) -> dict[str, float]:
        """The allocation in effect, which is noted: the end of an iteration may be read long after it."""
        there = self._set()
        if self._timetable is not None:
            self._timetable.changed(there, time.monotonic())
        return there

    def _after(self, iteration: Iteration) -> None:
        there = self._there_now()
        before, row = self._decided if self.wishes.advise else there, self._row(iteration)
        when = (
            "after the first iteration"
            if row is None
            else f"after iteration {row.index} ({duration_text(row.seconds)})"
        )
        decided = False  # for the iteration that begins now
        if self._by_itself(iteration):
            with suppress(StewardError, Unreachable):  # away just now: the last decision holds
                self.run.take_up(self.run.id)
        else:
            self._settle(iteration, row)
            reportable = row is not None and self._reportable(row)
            if row is not None and reportable:
                values = row.allocation, self._metrics_of(row), self._features_of(row)
                number, paused = self.run.iteration, row.change_seconds or None
                request = None if self.wishes.advise else self.watched.requests.take(row.allocation)
                requested = None if request is None else self._nearest_request(request, row.allocation)
                self.run.report(number, *values, segments=row.segments, change_seconds=paused, requested=requested)
                if request is not None and request.state != "requested":
                    self._refused = request.allocation
                if not self.run.unsent:
                    self._refused = None
                if self._sink is not None:
                    self._sink.reported(number, values[1])
                    self._sink.decided(self.run)
            if self._followed is not None:
                self._followed.move(self.run.id, self.run.iteration)
            decided = (reportable or row is None) and self._followed is None
        if self.run.stop and self.watched.status is None:
            self.watched.stop(self.run.decision.reason.text.removeprefix("stop: "))
        if not iteration.late:  # else the present allocation is newer than the one for which this decision is
            self._apply(when, before, self._decided_allocation())
        contingencies = self.run.contingencies if decided and not self.wishes.advise else ()
        self._await_grants(iteration.at, contingencies, changed=self._set() != there)

    def _nearest_request(self, request: Request, there: Allocation) -> Json | None:
        """A request as a report has it, on the workload's levels; None if these are what is ``there``."""
        nearest = self._nearest({**there, **request.allocation})
        return None if nearest == dict(there) else {**request.report, "allocation": nearest}

    def _react(self) -> None:
        """Record what was granted within the running iteration, and apply the contingency whose time has come."""
        if self._timetable is None:
            return
        self._timetable.changed(self._set(), time.monotonic())
        due = self._timetable.due(time.monotonic())
        if due is None or due.allocation == self._timetable.allocation or self._beyond_bounds(due.allocation):
            return
        if self.watched.apply(due.allocation):
            self._timetable.changed(self._set(), time.monotonic())
            self.watched.tell(self.run.iteration, due.allocation, due.reason)
            self._show(f"within iteration {self.watched.clock.count}", due.allocation, due.reason, "contingency")

    def _row(self, iteration: Iteration) -> Row | None:
        if iteration.seconds is None and not iteration.pause:
            return None
        decision = self.run.decision
        predicted = decision.predicted.additional_properties.get(SECONDS)
        low, high = (None, None) if predicted is None else (predicted.low, predicted.high)
        source = HELD if self.run.unsent else decision.source
        took, pause = iteration.seconds, iteration.pause
        allocation, segments = dict(self._former) if iteration.late else self._set(), list[Any]()
        if took is None:  # it began somewhere in the pause: as long as others, at best at the same allocation
            usual = [one for one in self.rows if one.allocation == allocation] or self.rows
            took = min(median(one.seconds - one.change_seconds for one in usual), pause) if usual else pause
            pause -= took
        if self.wishes.advise and allocation != self._nearest(self._decided):
            low = high = None  # they are of the recommended allocation
        if self._timetable is not None and not iteration.late:
            allocation = self._timetable.allocation_at_end(took, iteration.at)
            segments = self._timetable.segments(took, iteration.at)
        measurement = allocation, iteration.metrics, iteration.features
        self.rows.append(Row(iteration.index, took + pause, *measurement, source, low, high, segments, pause))
        return self.rows[-1]

    def _by_itself(self, iteration: Iteration) -> bool:
        """Whether the command reports to the service by itself, which is found out at the first iteration."""
        return self._followed is not None and (self._followed.active or (not iteration.index and self._followed.look()))

    def _settle(self, iteration: Iteration, row: Row | None) -> None:
        """After the first iteration: replace the run by one whose deadline excludes the command's start-up, if that
        took long.

        An iteration without a row, as its start is unknown, counts as start-up.
        """
        if self._settled:
            return
        self._settled, first = True, iteration.index + (row is None)
        gone = iteration.at - (0.0 if row is None else row.seconds) - self.watched.began
        if row is None:
            self._tell(f"start-up and first iteration: {duration_text(gone)}; reports begin with the next iteration")
        late = self.deadline is not None and gone > NOTICEABLE * self.deadline
        if first < self.spec["iterations"] and (first or late):
            with defer_interrupts():  # else one of the two runs could stay at the service, and never end
                self._begin_anew(first, gone)

    def _begin_anew(self, first: int, gone: float) -> None:
        """Replace the run by one that begins with iteration ``first``, ``gone`` seconds after the command's start.

        The former run, which has no reports yet, is cancelled and deleted. If that fails, it stays and is reported.
        """
        anew, before = self._new_run(first, gone), self.run
        try:
            anew.start()
        except (StewardError, Unreachable) as error:
            self._say(f"the start is not counted: {error_line(error)}")
            anew.close()
            return
        self.run, self._gone = anew, gone
        self._tell(f"run: {self.page} (replaces the one above, whose deadline included the start-up)")
        before.leave(KeyboardInterrupt(f"replaced by run {anew.id}, which counts from the first iteration"))
        with suppress(StewardError, Unreachable):
            self._service.once("DELETE", f"/runs/{before.id}", nothing)

    def _set(self) -> dict[str, float]:
        """The allocation in effect, rounded to the workload's levels."""
        return self._nearest({**self._allowed, **self._actuator.current()})

    def _nearest(self, allocation: Allocation) -> dict[str, float]:
        return {name: resource.nearest(allocation[name]) for name, resource in self._resources.items()}

    def _decided_allocation(self) -> Allocation:
        """The decided allocation, if it is within the workload's bounds; otherwise the last one that was."""
        allocation = self.run.allocation
        if not self._beyond_bounds(allocation):
            self._decided = {name: allocation[name] for name in self._resources}
        if not self.wishes.advise:
            self._allowed = self._decided
        return self._decided

    def _beyond_bounds(self, allocation: Allocation) -> bool:
        """Whether a decided allocation is beyond the workload's bounds, which is said once."""
        wrong = [
            f"{name} {allocation.get(name)} ({one.minimum:g} to {one.maximum:g} is accepted)"
            for name, one in self._resources.items()
            if not one.minimum - one.step / 2 <= allocation.get(name, math.nan) <= one.maximum + one.step / 2
        ]
        if wrong:
            self.watched.once(f"not set: a decision has {', '.join(wrong)}; the previous allocation stays")
        return bool(wrong)

    def _reportable(self, row: Row) -> bool:
        if self.run.iteration >= self.spec["iterations"]:
            self.watched.once(
                f"the workload has {self.spec['iterations']} iterations; later iterations are not reported"
            )
            return False
        if lacking := self._lacking(row):
            self.watched.once(
                f"not reported: the workload has {', '.join(lacking)}, which the command did not report (above 0)"
            )
        return not lacking

    def _lacking(self, row: Row) -> list[str]:
        lacking = [name for name in self._metrics if name != SECONDS and row.metrics.get(name, 0) <= 0]
        return lacking + [name for name in self._features if name not in row.features]

    def _metrics_of(self, row: Row) -> dict[str, float]:
        return {name: row.seconds if name == SECONDS else row.metrics[name] for name in self._metrics}

    def _features_of(self, row: Row) -> dict[str, float]:
        return {name: row.features[name] for name in self._features}

    def _apply(self, when: str, before: Allocation, decided: Allocation) -> None:
        decision = self.run.decision
        self.watched.tell(decision.iteration, self._set() if self.wishes.advise else decided, decision.reason.text)
        if self._fixed or decided == self._refused:
            return
        if all(abs(decided[name] - before[name]) <= one.step / 2 for name, one in self._resources.items()):
            if self.watched.requests.awaits:  # what waits is not wanted any more
                self.watched.apply(decided)
            return
        self._former = before
        if self.wishes.advise or self.watched.apply(decided):
            self._show(when, decided, decision.reason.text, decision.source)

    def _show(self, when: str, allocation: Allocation, reason: str, source: str) -> None:
        self._changes += 1
        if self._changes > MOST_CHANGES_SHOWN:
            return
        texts = [f"{name} {value:g} {self._resources[name].unit}".strip() for name, value in allocation.items()]
        advised = "recommended " if self.wishes.advise else ""
        self._tell(f"{when}: {advised}{', '.join(texts)} ({source_in_words(source)}: {reason})")

    def _end(self) -> None:
        """End the run with the command's result; if the service can't be told, keep the iterations in a file."""
        try:
            if self.watched.status == 0:
                self.run.finish()
            else:
                self.run.fail(self.watched.failure, self.watched.output if self.wishes.output else None)
        except (StewardError, Unreachable) as error:
            self._keep(error_line(error))

    def _cut_short(self, status: int, why: str) -> int:
        with ignore_signals():
            for iteration in self.watched.iterations():
                self._row(iteration)
            if self.run.id and not self.run.ended:
                self._keep(why)
        return status

    def _keep(self, why: str) -> None:
        self._say(f"the service did not receive the end: {why}")
        file = Path(f"steward-{self.run.id}.ndjson")
        try:
            file.write_text(json.dumps(self.sample()) + "\n")
        except OSError as error:
            self._say(f"and its iterations can't be saved: {error}")
        else:
            path = f"{self._service.url}/workloads/{self.spec['name']}/samples"
            self._say(f"its iterations are in {file}, a sample to upload: POST {path} as application/x-ndjson")

    def sample(self) -> Json:
        """The run as a sample of its workload (the API's JSON), without iterations measured before it."""
        rows = [row for row in self.rows if row.source != PROFILE and not self._lacking(row)][: self.spec["iterations"]]
        reports = [row.report | {"metrics": self._metrics_of(row), "features": self._features_of(row)} for row in rows]
        return {"execution": f"run-{self.run.id}", "reports": reports}


def targets(wishes: Wishes, spec: Json, gone: float = 0.0) -> dict[str, float]:
    """Targets of one run by metric, in the metrics' units.

    Args:
        wishes: options of the launch, with deadline and targets.
        spec: spec of the workload.
        gone: seconds from the command's start to the run's; subtracted from a deadline.

    Raises:
        Misuse: the workload has no such metric, no deadline, or no target of that metric that a run could change.
    """
    metrics: dict[str, Any] = {metric["name"]: metric for metric in spec["metrics"]}
    request, seconds = dict(wishes.targets), metrics[SECONDS]
    if wishes.deadline is not None and seconds["scope"] != "run":
        raise Misuse(
            f"--deadline: {SECONDS} of workload {spec['name']!r} has scope {seconds['scope']!r}, but a "
            f"deadline needs 'run'; --target {SECONDS}=… sets that of an iteration"
        )
    usual = seconds.get("target") if gone and seconds["scope"] == "run" else None
    deadline = wishes.deadline or request.get(SECONDS) or usual
    if deadline is not None and seconds["scope"] == "run":
        request[SECONDS] = max(deadline - gone, 1e-3)
    for name in request:
        if name not in metrics:
            raise Misuse(f"--target {name}: workload {spec['name']!r} has {', '.join(metrics)}")
        if metrics[name].get("target") is None:
            raise Misuse(
                f"workload {spec['name']!r} has no target for {name}, which a run could have another of: "
                f"--learn --name {spec['name']} gives it this one, and keeps what was learned"
            )
    return request

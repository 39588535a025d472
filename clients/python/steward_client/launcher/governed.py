"""A run of a command under the service's decisions."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steward_client.errors import StewardError, Unreachable
from steward_client.iterative import Run
from steward_client.retry import Retry

from .actuators.contract import Actuator, ActuatorError, Allocation
from .followed import Followed
from .iterations.mark import SECONDS, Iteration, Startup
from .service import Json, Say, Service
from .watched import Watched
from .wishes import Misuse, Resource, Wishes

PATIENCE_SECONDS = 30.0
WAIT_SECONDS = 2.0
MOST_CHANGES_SHOWN = 40
HELD = "held"  # the last decision, while the service is away


@dataclass(frozen=True)
class Row:
    """One iteration as it was: what it had, who had decided that, and what was predicted for it."""

    index: int
    seconds: float
    allocation: Mapping[str, float]
    metrics: Mapping[str, float]
    features: Mapping[str, float]
    source: str
    low: float | None = None
    high: float | None = None


class Governed:
    """Reports each iteration, and sets what is decided.

    Attributes:
        rows: the iterations so far.
        startup: before the first, where it is known.

    Args:
        spec: of the workload, as the service has it.
    """

    def __init__(
        self, wishes: Wishes, service: Service, spec: Json, actuator: Actuator, folder: Path, say: Say, startup: Startup
    ) -> None:
        self.wishes, self.spec, self.rows = wishes, spec, list[Row]()
        self._actuator, self._say = actuator, say
        self._resources = {found["name"]: Resource.of_spec(found) for found in spec["resources"]}
        self._metrics = [found["name"] for found in spec["metrics"]]
        self._features = [found["name"] for found in spec["features"]]
        self.watched = Watched(wishes, actuator, folder, say, startup)
        self._begun = {"workload": spec["name"], "targets": targets(wishes, spec, startup.seconds)}
        self.run, self._followed = self._new_run(service), None
        self._service, self._remote = service, dict[str, str]()
        self._said, self._changes = set[str](), 0

    _followed: Followed | None

    def _new_run(self, service: Service) -> Run:
        retry = Retry(patience_seconds=PATIENCE_SECONDS)
        return Run(service.url, **self._begun, retry=retry, wait_seconds=WAIT_SECONDS, refusals="log")

    def _start(self) -> None:
        """Start the run; where the command sees no file of the launcher's, with a token by which it may report."""
        if self._actuator.shares_files:
            self.run.start()
            return
        begun = self._service.call("POST", "/runs", {**self._begun, "token": True})  # nosec B105
        self.run.take_up(begun["id"])
        self._followed = self.watched.follow(Followed(self._service, self.run.id))
        self._remote = {"STEWARD_URL": self._service.url, "STEWARD_RUN": self.run.id, "STEWARD_TOKEN": begun["token"]}

    def drive(self) -> int:
        """Run the command to its end; its exit status.

        Raises:
            StewardError, Unreachable: the run can't be started.
            ActuatorError: the command can't be started, or not with what was decided.
        """
        self._start()
        try:
            self._begin()
        except ActuatorError:
            self.interrupted(None)
            raise
        for iteration in self.watched.iterations():
            self._after(iteration)
        self._end()
        return self.watched.status or 0

    def interrupted(self, status: int | None) -> None:
        """The command was ended from outside, with that status: tell the service."""
        self.watched.status, self.watched.ended = status, time.monotonic()
        if self.run.id:
            ended = RuntimeError("the command was ended")
            self.run.__exit__(RuntimeError, ended, None)  # briefly: somebody waits for the end

    def close(self) -> None:
        """Close the connection."""
        self.run.close()

    def _begin(self) -> None:
        decision = self.run.decision
        self._show("first", self.run.allocation, decision.reason.text, decision.source)
        self.watched.start(self.run.allocation, self._remote)

    def _after(self, iteration: Iteration) -> None:
        decision, before = self.run.decision, self._set()
        seconds = decision.predicted.additional_properties.get(SECONDS)
        band = (None, None) if seconds is None else (seconds.low, seconds.high)
        source = HELD if self.run.unsent else decision.source
        row = Row(iteration.index, iteration.seconds, before, iteration.metrics, iteration.features, source, *band)
        self.rows.append(row)
        if self._by_itself(row):
            with suppress(StewardError, Unreachable):  # away just now: the last decision holds
                self.run.take_up(self.run.id)
            self._apply(row, self.run.allocation)
        elif self._reportable(row):
            decided = self.run.report(row.index, before, self._measured(row), self._given(row))
            self._apply(row, decided)
            if self._followed is not None:
                self._followed.ours = row.index + 1

    def _by_itself(self, row: Row) -> bool:
        """Whether the command reports to the service by itself: one of both does, from the first iteration on."""
        return self._followed is not None and (self._followed.active or (row.index == 0 and self._followed.look()))

    def _set(self) -> dict[str, float]:
        """What is really set, on the grid of the workload."""
        now = {**self.run.allocation, **self._actuator.current()}
        return {name: resource.nearest(now[name]) for name, resource in self._resources.items()}

    def _reportable(self, row: Row) -> bool:
        if row.index >= self.spec["iterations"]:
            self._once(f"the workload has {self.spec['iterations']} iterations; what comes after them is not reported")
            return False
        lacking = [name for name in self._metrics if name != SECONDS and row.metrics.get(name, 0) <= 0]
        lacking += [name for name in self._features if name not in row.features]
        if lacking:
            self._once(f"not reported: the workload has {', '.join(lacking)}, which the command did not tell (above 0)")
        return not lacking

    def _measured(self, row: Row) -> dict[str, float]:
        return {name: row.seconds if name == SECONDS else row.metrics[name] for name in self._metrics}

    def _given(self, row: Row) -> dict[str, float]:
        return {name: row.features[name] for name in self._features}

    def _apply(self, row: Row, decided: Allocation) -> None:
        decision = self.run.decision
        if self._actuator.shares_files:
            self.watched.tell(decision.iteration, decided, decision.reason.text)
        if all(abs(decided[name] - value) <= self._resources[name].step / 2 for name, value in row.allocation.items()):
            return
        try:
            self._actuator.apply(decided)
        except ActuatorError as error:
            self._once(f"{error}; what is set stays")
            return
        self._changes += 1
        if self._changes <= MOST_CHANGES_SHOWN:
            self._show(
                f"after iteration {row.index} ({row.seconds:.3g} s)", decided, decision.reason.text, decision.source
            )

    def _show(self, when: str, allocation: Allocation, reason: str, source: str) -> None:
        texts = [f"{name} {value:g} {self._resources[name].unit}".strip() for name, value in allocation.items()]
        if not self.wishes.quiet:
            self._say(f"{when}: {', '.join(texts)} ({source}: {reason})")

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)

    def _end(self) -> None:
        """Tell the service how it ended; what it can't be told is kept in a file."""
        try:
            self.run.finish() if self.watched.status == 0 else self.run.fail()
        except (StewardError, Unreachable) as error:
            self._say(f"the service did not hear of the end: {' '.join(str(error).split())}")
            self._keep()

    def _keep(self) -> None:
        file = Path(f"steward-{self.run.id}.ndjson")
        try:
            file.write_text(json.dumps(self.sample()) + "\n")
        except OSError as error:
            self._say(f"nor can its iterations be kept: {error}")
        else:
            path = f"{self._service.url}/workloads/{self.spec['name']}/samples"
            self._say(f"its iterations are in {file}, a sample to upload: POST {path} as application/x-ndjson")

    def sample(self) -> Json:
        """The run as a sample of its workload."""
        rows = [row for row in self.rows if self._reportable(row)]
        reports = [
            {"allocation": row.allocation, "metrics": self._measured(row), "features": self._given(row)} for row in rows
        ]
        return {"execution": f"run-{self.run.id}", "reports": reports}


def targets(wishes: Wishes, spec: Json, startup: float = 0.0) -> dict[str, float]:
    """Targets of this run alone.

    Raises:
        Misuse: the workload has no such metric, or no deadline.
    """
    metrics: dict[str, Any] = {metric["name"]: metric for metric in spec["metrics"]}
    asked = dict(wishes.targets)
    if wishes.deadline is not None:
        if metrics[SECONDS]["scope"] != "run":
            raise Misuse(
                f"--deadline: {SECONDS} of workload {spec['name']!r} has scope {metrics[SECONDS]['scope']!r}, but a "
                f"deadline needs 'run'; --target {SECONDS}=… sets that of an iteration"
            )
        asked[SECONDS] = max(wishes.deadline - startup, 1e-3)
    for name in asked:
        if name not in metrics:
            raise Misuse(f"--target {name}: workload {spec['name']!r} has {', '.join(metrics)}")
    return asked

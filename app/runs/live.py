"""Runs as a process keeps them between reports.

What is kept may be out of date, for another process may have taken a report: the write proves that it was current.
"""

import threading
from collections import OrderedDict
from typing import Any

import msgspec
from sqlalchemy import Row

from app.database.packing import unpacked
from app.database.tables import Run
from app.drift.detector import NOTHING, Drift, restored
from app.kinds.contract.engine import Shadow
from app.kinds.registry import KINDS
from app.runs.repository import RUNNING

LARGEST_CACHE = 64 << 20  # bytes
LARGEST_STARTED = 16 << 20
SLIGHT = 1_024  # bytes that a run may weigh more or less than is reckoned with
OVERHEAD = 8_000  # bytes of a run beside its state: what its test for drifts keeps, above all
BYTES_OF_JSON = 6  # that an object takes, for each that it is written in


class Live(msgspec.Struct, eq=False):
    """A run after its last known report.

    Attributes:
        following: number of the iteration that is reported next.
        kept: its state, as its kind has it.
        start: what it was started with.
        digest, decision: of the last reported iteration; empty before the first.
        shadow: the agent that is consulted too, if there is one.
        drift: what the test for drifts keeps.
        risk: why it is at risk; empty while it is on track.
        quiet: whether its next report need not come before something happens.
        weight: bytes of it that stay the same.
    """

    id: str
    tenant: str
    workload: str
    workload_id: str
    state: str
    following: int
    kept: Any
    start: dict[str, Any]
    kind: str
    digest: str
    decision: bytes
    shadow: Shadow | None
    drift: Drift = NOTHING
    risk: str = ""
    quiet: bool = False
    weight: int = OVERHEAD

    def __post_init__(self) -> None:
        """Weigh what stays the same."""
        self.weight = OVERHEAD + (BYTES_OF_JSON * len(msgspec.json.encode(self.start)) if self.start else 0)

    @property
    def running(self) -> bool:
        """Whether it takes reports."""
        return self.state == RUNNING


def from_stored(found: Row[Any], shadow: Shadow | None = None) -> Live:
    """A run as it stands in the database."""
    return Live(
        id=found.id,
        tenant=found.tenant,
        workload=found.name,
        workload_id=found.workload_id,
        state=found.state,
        following=found.next_iteration,
        kept=KINDS[found.kind].engine.restore(found.state_vector),
        start=found.start,
        kind=found.kind,
        digest=found.digest or "",
        decision=_last_decision(found),
        shadow=shadow,
        drift=restored(found.drift),
        risk=found.outcome_reason or "" if found.outcome == "at_risk" else "",
        quiet=found.quiet,
    )


def from_start(run: Run, workload: str, kind: str) -> Live:
    """A run that has just been started, without a shadow."""
    return Live(
        id=run.id,
        tenant=run.tenant,
        workload=workload,
        workload_id=run.workload_id,
        state=run.state,
        following=run.next_iteration,
        kept=KINDS[kind].engine.restore(run.state_vector),
        start=run.start,
        kind=kind,
        digest="",
        decision=b"",
        shadow=None,
        risk=run.outcome_reason or "",
        quiet=run.quiet,
    )


def _last_decision(found: Row[Any]) -> bytes:
    if found.digest is None:  # before the first iteration
        return b""
    return unpacked(found.id, found.packed)[1]


class LiveCache:
    """The most recently reported runs, by id, in ``size`` bytes; one that would take half of them isn't kept."""

    def __init__(self, size: int = LARGEST_CACHE) -> None:
        self._size, self.weight = size, 0
        self._runs: OrderedDict[str, Live] = OrderedDict()
        self._weights: dict[str, int] = {}

    def get(self, run: str) -> Live | None:
        """The run, if it is kept."""
        live = self._runs.get(run)
        if live is not None:
            self._runs.move_to_end(run)
        return live

    def put(self, live: Live) -> None:
        """Keep a run; the least recently reported ones go when all together are too large."""
        weight = _weight(live)
        if weight > self._size // 2:
            self.drop(live.id)
            return
        self.weight += weight - self._weights.get(live.id, 0)
        self._runs[live.id], self._weights[live.id] = live, weight
        self._runs.move_to_end(live.id)
        while self.weight > self._size:
            self.drop(next(iter(self._runs)))

    def grown(self, live: Live) -> None:
        """A run has another state than when it was put; it is weighed again, if it is kept."""
        if self._runs.get(live.id) is live and abs(_weight(live) - self._weights[live.id]) > SLIGHT:
            self.put(live)

    def drop(self, run: str) -> None:
        """Forget a run."""
        if self._runs.pop(run, None) is not None:
            self.weight -= self._weights.pop(run)


class StartedRuns:
    """Runs that this process has started and that haven't reported yet: the first report needs no look at the database.

    Threads put them in, and event loops take them out.
    """

    def __init__(self, size: int = LARGEST_STARTED) -> None:
        self._lock, self._runs = threading.Lock(), LiveCache(size)

    def put(self, live: Live) -> None:
        """Keep a run that was committed."""
        with self._lock:
            self._runs.put(live)

    def take(self, run: str) -> Live | None:
        """The run, if it is kept; it is no longer."""
        with self._lock:
            live = self._runs.get(run)
            self._runs.drop(run)
        return live


def _weight(live: Live) -> int:
    return live.weight + KINDS[live.kind].engine.weight(live.kept) + len(live.decision)

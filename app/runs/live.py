"""Runs as a process keeps them between reports.

What is kept may be out of date, for another process may have taken a report: the write proves that it was current.
"""

from collections import OrderedDict
from typing import Any

import msgspec

from app.kinds.contract.engine import Shadow
from app.kinds.registry import KINDS
from app.runs.repository import RUNNING, Loaded

LARGEST_CACHE = 5_000  # units of 2 kB


class Live(msgspec.Struct, eq=False):
    """A run after its last known report.

    Attributes:
        following: number of the iteration that is reported next.
        kept: its state, as its kind has it.
        start: what it was started with.
        digest, decision: of the last reported iteration; empty before the first.
        shadow: the agent that is consulted too, if there is one.
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

    @property
    def running(self) -> bool:
        """Whether it takes reports."""
        return self.state == RUNNING


def from_loaded(loaded: Loaded, shadow: Shadow | None = None) -> Live:
    """A run as it stands in the database."""
    run, last = loaded.run, loaded.last
    return Live(
        id=run.id,
        tenant=run.tenant,
        workload=loaded.workload,
        workload_id=run.workload_id,
        state=run.state,
        following=run.next_iteration,
        kept=KINDS[loaded.kind].engine.restore(run.state_vector),
        start=run.start,
        kind=loaded.kind,
        digest=last.digest if last else "",
        decision=msgspec.json.encode(last.decision) if last else b"",
        shadow=shadow,
    )


class LiveCache:
    """The most recently reported runs, by id; ``size`` is in the engines' units of weight."""

    def __init__(self, size: int = LARGEST_CACHE) -> None:
        self._size, self._weight = size, 0
        self._runs: OrderedDict[str, Live] = OrderedDict()

    def get(self, run: str) -> Live | None:
        """The run, if it is kept."""
        live = self._runs.get(run)
        if live is not None:
            self._runs.move_to_end(run)
        return live

    def put(self, live: Live) -> None:
        """Keep a run; the least recently reported ones go when there are too many."""
        self.drop(live.id)
        self._runs[live.id] = live
        self._weight += KINDS[live.kind].engine.weight
        while self._weight > self._size and len(self._runs) > 1:
            self.drop(next(iter(self._runs)))

    def drop(self, run: str) -> None:
        """Forget a run."""
        live = self._runs.pop(run, None)
        if live is not None:
            self._weight -= KINDS[live.kind].engine.weight

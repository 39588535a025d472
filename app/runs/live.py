"""Runs as a process keeps them between reports.

What is kept may be out of date, for another process may have taken a report: the write proves that it was current.
"""

from collections import OrderedDict
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.decisions.shadow import Shadow
from app.kinds.iterative.layout import Layout
from app.runs.repository import RUNNING, Loaded

LARGEST_CACHE = 5_000  # runs; 2 kB each


class Live(msgspec.Struct, eq=False):
    """A run after its last known report.

    Attributes:
        following: number of the iteration that is reported next.
        state_row: the packed state, [S].
        targets: the run's own targets by metric.
        digest, decision: of the last reported iteration; empty before the first.
        shadow: the agent that is asked beside, if there is one.
    """

    id: str
    tenant: str
    workload: str
    workload_id: str
    state: str
    following: int
    state_row: NDArray[np.float64]
    targets: dict[str, float]
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
        state_row=np.array(run.state_vector, np.float64),
        targets=run.targets or {},
        digest=last.digest if last else "",
        decision=msgspec.json.encode(last.decision) if last else b"",
        shadow=shadow,
    )


def effective_targets(layout: Layout, runs: Sequence[Live]) -> NDArray[np.float64]:
    """The targets of each run, [B, M]: its own where it has them, else those of the workload as they stand."""
    targets = np.tile(layout.targets, (len(runs), 1))
    for i, live in enumerate(runs):
        for name, value in live.targets.items():
            targets[i, layout.metrics.index(name)] = value
    return targets


class LiveCache:
    """The most recently reported runs, by id."""

    def __init__(self, size: int = LARGEST_CACHE) -> None:
        self._size = size
        self._runs: OrderedDict[str, Live] = OrderedDict()

    def get(self, run: str) -> Live | None:
        """The run, if it is kept."""
        live = self._runs.get(run)
        if live is not None:
            self._runs.move_to_end(run)
        return live

    def put(self, live: Live) -> None:
        """Keep a run; the least recently reported one goes when there are too many."""
        self._runs[live.id] = live
        self._runs.move_to_end(live.id)
        if len(self._runs) > self._size:
            self._runs.popitem(last=False)

    def drop(self, run: str) -> None:
        """Forget a run."""
        self._runs.pop(run, None)

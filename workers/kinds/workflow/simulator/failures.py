"""Node failures, for any simulation that takes breakdowns."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.simulator.schedule import Schedule
from workers.kinds.workflow.simulator.world import Breakdowns

Simulation = Callable[[Trace, Nodes, Breakdowns], Schedule]


class Failures(NamedTuple):
    """Every node breaks down after an exponential time, again and again.

    Attributes:
        mean_seconds: between a repair and the next breakdown.
        repair_seconds: that a node stands still.
        horizon_seconds: after which no node breaks down: tasks longer than a node's life would else never end.
    """

    mean_seconds: float
    repair_seconds: float
    horizon_seconds: float

    def drawn(self, nodes: int, random: np.random.Generator) -> Breakdowns:
        """The breakdowns of so many nodes."""
        broken: list[tuple[int, float]] = []
        for node in range(nodes):
            at = random.exponential(self.mean_seconds)
            while at < self.horizon_seconds:
                broken.append((node, at))
                at += self.repair_seconds + random.exponential(self.mean_seconds)
        at_times = np.array([at for _, at in broken], np.float64)
        which = np.array([node for node, _ in broken], np.int64)
        return Breakdowns(which, at_times, at_times + self.repair_seconds)

    def play(self, simulation: Simulation, trace: Trace, nodes: Nodes, random: np.random.Generator) -> Schedule:
        """``simulation`` of ``trace`` on ``nodes`` that break down."""
        return simulation(trace, nodes, self.drawn(len(nodes.kind), random))

"""What a workload's decisions rest on: its nodes and queues, and who answers."""

from __future__ import annotations

from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live.decide import Advice
from app.kinds.cluster.live.state import ClusterState
from app.kinds.contract.engine import Snapshot

PRIORITY = "priority"


class Compiled:
    """A snapshot ready to decide with.

    Attributes:
        source, policy: who answers.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.layout: Layout = snapshot.layout
        self.source, self.policy = "heuristic", PRIORITY

    def advice(self, state: ClusterState) -> Advice:  # noqa: ARG002
        """Who decides on a state, and by what."""
        return Advice(self.layout.heuristic)

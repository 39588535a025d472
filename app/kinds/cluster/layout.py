"""Names and numbers of a ``cluster`` workload, derived once from its spec."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from app.kinds.cluster.allocation.priority import prioritised
from app.kinds.cluster.allocation.situation import Rule
from app.kinds.cluster.jobs import Integers
from app.kinds.cluster.spec import ClusterSpec


class Layout:
    """The representation of one spec: N nodes, each by the name of its class and a number from 0, and Q queues.

    Attributes:
        nodes: names, [N].
        capacity: GPUs of each, [N].
        queues: names, the most urgent first, [Q].
        demotion: GPU-seconds of service after which a job is less urgent under least attained service.
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.nodes = [f"{one.name}-{number}" for one in spec.nodes for number in range(one.count)]
        self.capacity: Integers = np.repeat([one.gpus for one in spec.nodes], [one.count for one in spec.nodes])
        self.queues = [queue.name for queue in spec.queues]
        self.demotion = 3600 * spec.demotion_gpu_hours

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Where each node stands."""
        return {name: position for position, name in enumerate(self.nodes)}

    @cached_property
    def queue_index(self) -> dict[str, int]:
        """Where each queue stands."""
        return {name: position for position, name in enumerate(self.queues)}

    @property
    def known_nodes(self) -> str:
        """What the name of a node must be, in words."""
        return ", ".join(f"{one.name}-0 to {one.name}-{one.count - 1}" for one in self.spec.nodes)

    @cached_property
    def heuristic(self) -> Rule:
        """Who answers while no agent does: priorities with ageing."""
        return prioritised([queue.ageing_seconds or np.inf for queue in self.spec.queues])

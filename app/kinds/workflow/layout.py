"""What a spec says, as arrays: the nodes that there may be, and their names."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.spec import NodeType, Spec

MEGA, GIGA, HOUR = 1e6, 1e9, 3600.0


class Nodes(NamedTuple):
    """M nodes, those of a type beside each other; a node's name is its type's and a number from 0.

    Attributes:
        kind: index of the node's type, [M].
        processors: [M].
        speed: a task of t seconds takes t / speed, [M].
        price: per second of rented time, [M].
        billing: rented time is billed in whole multiples of so many seconds, [M].
        startup: seconds from the order to the first task, [M].
        memory: bytes; infinite where there is no limit, [M].
        bandwidth: bytes per second to and from other nodes; infinite where transfers take no time, [M].
        kept: whether the node is rented all the time (one of its type's minimum), [M].
    """

    kind: NDArray[np.int64]
    processors: NDArray[np.int64]
    speed: NDArray[np.float64]
    price: NDArray[np.float64]
    billing: NDArray[np.float64]
    startup: NDArray[np.float64]
    memory: NDArray[np.float64]
    bandwidth: NDArray[np.float64]
    kept: NDArray[np.bool_]


def nodes_of(types: tuple[NodeType, ...]) -> Nodes:
    """All nodes that may be rented at a time."""
    counts = [node.maximum for node in types]

    def each(values: list[float]) -> NDArray[np.float64]:
        return np.repeat(np.array(values, np.float64), counts)

    return Nodes(
        kind=np.repeat(np.arange(len(types)), counts),
        processors=np.repeat(np.array([node.processors for node in types], np.int64), counts),
        speed=each([node.speed for node in types]),
        price=each([node.price_per_hour / HOUR for node in types]),
        billing=each([node.billing_seconds for node in types]),
        startup=each([node.startup_seconds for node in types]),
        memory=each([np.inf if node.memory_gb is None else node.memory_gb * GIGA for node in types]),
        bandwidth=each([np.inf if node.bandwidth_mbps is None else node.bandwidth_mbps * MEGA for node in types]),
        kept=np.concatenate([np.arange(node.maximum) < node.minimum for node in types]),
    )


class Layout:
    """A workload's spec, ready to compute with.

    Attributes:
        nodes: all nodes that may be rented.
        names: of the nodes, in their order.
        weights: of the objective's terms, in the order of ``TERMS``, [6].
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.nodes = nodes_of(spec.nodes)
        self.names = tuple(f"{node.name}-{i}" for node in spec.nodes for i in range(node.maximum))
        self.weights = np.array(list(spec.weights.model_dump().values()))

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Where each name stands."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def known_nodes(self) -> str:
        """What a name of a node must be, in words."""
        ranges = [
            f"{node.name}-0" if node.maximum == 1 else f"{node.name}-0 to {node.name}-{node.maximum - 1}"
            for node in self.spec.nodes
        ]
        return f"unknown node; known: {', '.join(ranges)}"

    @cached_property
    def kept(self) -> list[int]:
        """The nodes that are rented all the time."""
        return [int(node) for node in np.flatnonzero(self.nodes.kept)]

    @cached_property
    def first(self) -> list[int]:
        """The first node of each type, and the number of all at the end."""
        return [0, *np.cumsum([node.maximum for node in self.spec.nodes]).tolist()]

    @cached_property
    def _shapes(self) -> list[tuple[int, float]]:
        return [(n.processors, np.inf if n.memory_gb is None else n.memory_gb * GIGA) for n in self.spec.nodes]

    def misfit(self, processors: int, memory: float) -> FieldIssue | None:
        """Why a task of so many processors and bytes is larger than any node; None where one can take it."""
        if any(processors <= most and memory <= size for most, size in self._shapes):
            return None
        largest = max(most for most, _ in self._shapes)
        if processors > largest:
            return FieldIssue("processors", f"must be at most {largest:,}, those of the largest node", processors)
        room = max(size for most, size in self._shapes if processors <= most) / GIGA
        accepted = f"must be at most {room:g}, the memory of the largest node with {processors} processors"
        return FieldIssue("memory_gb", accepted, memory / GIGA)


def pool(processors: int) -> Nodes:
    """One machine of so many processors: what batch logs are played on."""
    return nodes_of((NodeType(name="pool", processors=processors, minimum=1, maximum=1),))

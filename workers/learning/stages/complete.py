"""The second stage: spaces flow from the root inputs, and components get their variables."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter

from workers.learning.components.base import Node, SpaceError, Variable
from workers.learning.spaces import Space, Spaces
from workers.learning.stages.compose import Graph
from workers.learning.stages.errors import DeadLockError, IncompleteInputError, SpaceMismatchError


@dataclass(frozen=True)
class Completed:
    """What `complete` gives.

    Attributes:
        graph: what was completed.
        order: its nodes in an order that can run.
        spaces: of all wires, outputs of composites included.
        owners: by node, the first node that calls the same component.
        variables: of each owner, by the component's own names for them.
        seconds: time spent.
    """

    graph: Graph
    order: tuple[Node, ...]
    spaces: Spaces
    owners: Mapping[str, str]
    variables: Mapping[str, Mapping[str, Variable]]
    seconds: float


def complete(graph: Graph, spaces: Spaces) -> Completed:
    """Let the spaces of the root inputs flow through the graph; raises CompleteError."""
    start = perf_counter()
    for path, port in graph.unwired:
        raise IncompleteInputError(f"component {path!r}: nothing is wired to its input {port!r}")
    flow = _Flow(graph, {name: spaces[name] for name in graph.inputs if name in spaces})
    flow.run()
    for wire, source in graph.aliases.items():
        if source not in flow.known:
            raise IncompleteInputError(
                f"component {_source(wire)!r}: output {wire!r} is {source!r}, which nothing gives"
            )
        flow.known[wire] = flow.known[source]
    return Completed(graph, tuple(flow.order), flow.known, flow.owners, flow.variables, perf_counter() - start)


def prefixes(completed: Completed) -> dict[str, str]:
    """Return what stands before the variables' own names, by owner.

    Where several root calls own variables: the root call's name. Where inner components of one root call have variables
    of the same name: their path in it.
    """
    roots: dict[str, list[str]] = {}
    for owner, needed in completed.variables.items():
        if needed:
            roots.setdefault(owner.split(".")[0], []).append(owner)
    found = dict.fromkeys(completed.variables, "")
    for root, owners in roots.items():
        before = f"{root}." if len(roots) > 1 else ""
        names = [name for owner in owners for name in completed.variables[owner]]
        for owner in owners:
            inner = "" if len(set(names)) == len(names) else owner[len(root) + 1 :]
            found[owner] = f"{before}{inner}/" if inner else before
    return found


@dataclass
class _Flow:
    """Spaces on their way through a graph."""

    graph: Graph
    known: dict[str, Space]
    order: list[Node] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Mapping[str, Variable]] = field(default_factory=dict)
    _first: dict[int, str] = field(default_factory=dict)

    def run(self) -> None:
        """Complete each node once all its inputs are; raises where some never are."""
        nodes = {node.name: node for node in self.graph.nodes}
        waiting = {name: self._waits_for(node, nodes) for name, node in nodes.items()}
        readers: dict[str, list[str]] = {}
        for name, sources in waiting.items():
            for source in sources:
                readers.setdefault(source, []).append(name)
        ready = deque(name for name, sources in waiting.items() if not sources)
        while ready:
            name = ready.popleft()
            self._complete(nodes[name])
            for reader in readers.get(name, ()):
                waiting[reader].discard(name)
                if not waiting[reader]:
                    ready.append(reader)
        if len(self.order) < len(nodes):
            raise DeadLockError(_circle(nodes, {name: left for name, left in waiting.items() if left}))

    def _waits_for(self, node: Node, nodes: Mapping[str, Node]) -> set[str]:
        found = set()
        for port, wire in node.inputs.items():
            if wire in self.known:
                continue
            if wire in self.graph.inputs:
                raise IncompleteInputError(
                    f"component {node.name!r}: input {port!r} is wired to the root input {wire!r}, "
                    "which was given no space"
                )
            if _source(wire) not in nodes:
                raise _not_given(node.name, port, wire)
            found.add(_source(wire))
        return found

    def _complete(self, node: Node) -> None:
        inputs = {}
        for port, wire in node.inputs.items():
            if wire not in self.known:
                raise _not_given(node.name, port, wire)
            inputs[port] = self.known[wire]
        try:
            outputs, needed = node.component.gives(inputs), node.component.variables(inputs)
        except SpaceError as error:
            raise SpaceMismatchError(f"node {node.name!r}: {error}") from error
        owner = self._first.setdefault(id(node.component), node.name)
        if self.variables.setdefault(owner, needed) != needed:
            raise SpaceMismatchError(
                f"node {node.name!r}: component {node.component.name!r} is shared with {owner!r}, but its inputs here "
                f"({_described(inputs)}) ask for other variables"
            )
        self.owners[node.name] = owner
        self.order.append(node)
        self.known.update({f"{node.name}.{port}": space for port, space in outputs.items()})


def _source(wire: str) -> str:
    """The node that gives a wire."""
    return wire.rpartition(".")[0]


def _described(inputs: Spaces) -> str:
    return ", ".join(f"{port!r}: {space}" for port, space in inputs.items())


def _not_given(name: str, port: str, wire: str) -> IncompleteInputError:
    return IncompleteInputError(
        f"component {name!r}: input {port!r} is wired to {wire!r}, which that component does not give"
    )


def _circle(nodes: Mapping[str, Node], waiting: Mapping[str, set[str]]) -> str:
    """Say who waits for whom: from any node that waits, follow until one comes again."""
    path, name = [], min(waiting)
    while name not in path:
        path.append(name)
        name = min(waiting[name])
    said = []
    for one in path[path.index(name) :]:
        other = min(waiting[one])
        port = next(port for port, wire in nodes[one].inputs.items() if _source(wire) == other)
        said.append(f"{one!r} (input {port!r}) waits for {other!r}")
    return f"components wait for each other: {', '.join(said)}"

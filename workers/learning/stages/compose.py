"""The first stage: join components by wires, and open composites up into their inner calls."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from workers.learning.components.base import Component, Node
from workers.learning.stages.errors import ComposeError


@dataclass(frozen=True)
class Graph:
    """What `compose` gives.

    Attributes:
        inputs: names of the root inputs.
        calls: the nodes as they were handed in.
        nodes: calls of components that are no composites, inner ones by their path ("q.trunk"); a wire is a root input
            or an output of one of them.
        aliases: the wire that each output of a composite stands for.
        unwired: (path, port) of inputs that nothing is wired to.
        seconds: time spent.
    """

    inputs: tuple[str, ...]
    calls: tuple[Node, ...]
    nodes: tuple[Node, ...]
    aliases: Mapping[str, str]
    unwired: tuple[tuple[str, str], ...]
    seconds: float


def compose(inputs: Sequence[str], nodes: Sequence[Node]) -> Graph:
    """Join nodes to a graph; raises ComposeError."""
    start = perf_counter()
    opened = _Opened()
    _check_names((*inputs, *(node.name for node in nodes)))
    scope = frozenset((*inputs, *(node.name for node in nodes)))
    for node in nodes:
        _check_call(node, node.name, scope)
        opened.add(node, node.name, node.inputs, ())
    flat = [
        replace(node, inputs={port: opened.source(wire) for port, wire in node.inputs.items()}) for node in opened.nodes
    ]
    aliases = {wire: opened.source(wire) for wire in opened.aliases}
    return Graph(tuple(inputs), tuple(nodes), tuple(flat), aliases, tuple(opened.unwired), perf_counter() - start)


@dataclass
class _Opened:
    """The graph while composites are being opened."""

    nodes: list[Node] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    unwired: list[tuple[str, str]] = field(default_factory=list)

    def add(self, node: Node, path: str, wires: Mapping[str, str], within: tuple[Component, ...]) -> None:
        """Add a call whose inputs are these wires of the whole graph; of a composite, its inner calls."""
        missing = [port for port in node.component.takes if port not in node.inputs]
        self.unwired.extend((path, port) for port in missing)
        if not node.component.calls():
            self.nodes.append(Node(path, node.component, wires, node.variables))
            return
        if any(node.component is outer for outer in within):
            raise ComposeError(f"component {path!r} holds itself")
        self._open(node, path, wires, (*within, node.component))

    def _open(self, node: Node, path: str, wires: Mapping[str, str], within: tuple[Component, ...]) -> None:
        inner = node.component.calls()
        _check_names((*node.component.takes, *(call.name for call in inner)), path)
        scope = frozenset((*node.component.takes, *(call.name for call in inner)))
        own = set(node.component.takes)

        def outside(wire: str) -> str | None:
            """The wire's name in the whole graph; None for an own input that nothing is wired to."""
            return wires.get(wire) if wire in own else f"{path}.{wire}"

        for call in inner:
            _check_call(call, f"{path}.{call.name}", scope)
            found = {port: outside(wire) for port, wire in call.inputs.items()}
            wired = {port: wire for port, wire in found.items() if wire is not None}
            self.add(replace(call, variables=node.variables), f"{path}.{call.name}", wired, within)
        for port, wire in node.component.results().items():
            if wire.split(".")[0] not in scope:
                raise ComposeError(f"component {path!r}: output {port!r} is {wire!r}, which is not in the graph")
            source = outside(wire)
            if source is not None:
                self.aliases[f"{path}.{port}"] = source

    def source(self, wire: str) -> str:
        """Follow outputs of composites to what computes them."""
        seen = set()
        while wire in self.aliases and wire not in seen:
            seen.add(wire)
            wire = self.aliases[wire]
        return wire


def _check_names(names: Sequence[str], path: str = "") -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        where = f"component {path!r}: " if path else ""
        raise ComposeError(f"{where}named more than once: {', '.join(twice)}")


def _check_call(node: Node, path: str, scope: frozenset[str]) -> None:
    for port, wire in node.inputs.items():
        if port not in node.component.takes:
            raise ComposeError(f"component {path!r} has no input {port!r}; it takes {', '.join(node.component.takes)}")
        if wire.split(".")[0] not in scope:
            raise ComposeError(f"component {path!r}: input {port!r} is wired to {wire!r}, which is not in the graph")

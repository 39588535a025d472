"""What was built, as data: calls of components, their spaces and wires, parameter counts, stage times."""

from collections.abc import Mapping
from dataclasses import dataclass

from gymnasium import spaces

from workers.learning.build import Bound, Completed, Node
from workers.learning.spaces import Space


@dataclass(frozen=True)
class Input:
    """Where an input of a component comes from, and of what space it is."""

    wire: str
    space: str


@dataclass(frozen=True)
class Call:
    """One call of a component.

    Attributes:
        path: its name, after those of the composites that it stands in ("q.trunk").
        component: what is called.
        variables: the variable set that is used.
        inputs: by port.
        outputs: spaces by port.
        parameters: how many numbers it owns; of a composite, those of its inner components.
        shares: the call that owns the parameters, where an earlier call of the same component does.
        composite: whether inner calls follow.
    """

    path: str
    component: str
    variables: str
    inputs: Mapping[str, Input]
    outputs: Mapping[str, str]
    parameters: int
    shares: str | None
    composite: bool


@dataclass(frozen=True)
class Description:
    """A built graph: root inputs with their spaces, calls (a composite before its inner ones), totals.

    `aliases` say which inner wire each output of a composite is.
    """

    inputs: Mapping[str, str]
    calls: tuple[Call, ...]
    aliases: Mapping[str, str]
    parameters: int
    seconds: Mapping[str, float]


def describe(bound: Bound) -> Description:
    """Describe a bound graph; only root inputs that something reads are listed."""
    completed, report = bound.completed, bound.report
    calls = tuple(call for node in completed.graph.calls for call in _calls(completed, node, node.name, node.inputs))
    read = {wire for node in completed.graph.nodes for wire in node.inputs.values()}
    inputs = {name: space_text(completed.spaces[name]) for name in completed.graph.inputs if name in read}
    seconds = {
        "compose": report.compose_seconds,
        "complete": report.complete_seconds,
        "bind": report.bind_seconds,
    }
    return Description(inputs, calls, dict(completed.graph.aliases), report.parameters, seconds)


def _calls(completed: Completed, node: Node, path: str, wires: Mapping[str, str]) -> list[Call]:
    """The call and its inner ones; `wires` are those of the whole graph."""
    component, within = node.component, node.component.calls()
    ports = component.results() if within else component.gives(_spaces(completed, wires))
    found = Call(
        path,
        component.name,
        node.variables,
        {port: Input(wire, space_text(completed.spaces[wire])) for port, wire in wires.items()},
        {port: space_text(completed.spaces[f"{path}.{port}"]) for port in ports},
        _parameters(completed, path),
        _shared(completed, path),
        bool(within),
    )
    inner = []
    for call in within:
        whole = {
            port: wires[wire] if wire in component.takes else f"{path}.{wire}" for port, wire in call.inputs.items()
        }
        inside = Node(call.name, call.component, call.inputs, node.variables)
        inner.extend(_calls(completed, inside, f"{path}.{call.name}", whole))
    return [found, *inner]


def _spaces(completed: Completed, wires: Mapping[str, str]) -> dict[str, Space]:
    return {port: completed.spaces[wire] for port, wire in wires.items()}


def _parameters(completed: Completed, path: str) -> int:
    """Numbers that a call owns; a composite's are its inner components'."""
    inside = [owner for owner in completed.variables if owner == path or owner.startswith(f"{path}.")]
    return sum(variable.size for owner in inside for variable in completed.variables[owner].values())


def _shared(completed: Completed, path: str) -> str | None:
    """The call that owns the variables which this one uses, where it is another one."""
    inside = [name for name in completed.owners if name == path or name.startswith(f"{path}.")]
    owners = {completed.owners[name] for name in inside if completed.variables[completed.owners[name]]}
    others = {owner for owner in owners if owner != path and not owner.startswith(f"{path}.")}
    if not others:
        return None
    depth = path.count(".") + 1
    return ", ".join(sorted({".".join(owner.split(".")[:depth]) for owner in others}))


def space_text(space: Space) -> str:
    """A space in few characters: reals[64], bits[9], one of 9."""
    if isinstance(space, spaces.Discrete):
        return f"one of {space.n}"
    shape = "×".join(str(length) for length in space.shape or ())
    size = f"[{shape}]" if shape else ""
    if isinstance(space, spaces.MultiBinary):
        return f"bits{size}" if size else "bit"
    if isinstance(space, spaces.Box) and space.is_bounded() and space.low.size:
        return f"reals{size} in [{space.low.min():g}, {space.high.max():g}]"
    return f"reals{size}" if size else "real"

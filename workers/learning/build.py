"""The three stages from a description to something that runs: compose → complete → bind.

* `compose` joins components by wires; no spaces, no arrays. Errors: ComposeError (a wire from nowhere, a port that
  does not exist, two nodes of one name).
* `complete` lets spaces flow from the root inputs. A component is input-complete when the spaces of all its inputs are
  known; only then it gets its variables. Errors: IncompleteInputError (a port that nothing is wired to, or a root
  input without a space), DeadLockError (nodes that wait for each other), and SpaceMismatchError.
* `bind` draws the variables' starting values, puts them on a backend and allocates memories. Error: BindError.

Each stage is timed; `Bound.report` says how long each took. (After Schaarschmidt, Mika, Fricke & Yoneki, RLgraph,
SysML 2019.)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.backends.base import Array, Backend, Store, Views
from workers.learning.components.base import Component, Memory, SpaceError, Variable
from workers.learning.spaces import Space, Spaces, sample


class BuildError(Exception):
    """An agent can't be built."""


class ComposeError(BuildError):
    """The graph refers to something that it does not hold."""


class CompleteError(BuildError):
    """The graph's spaces can't be completed."""


class IncompleteInputError(CompleteError):
    """A component's input has no source, or its source has no space."""


class DeadLockError(CompleteError):
    """Components wait for each other's outputs."""


class SpaceMismatchError(CompleteError):
    """A component can't work on the space it is given."""


class BindError(BuildError):
    """The completed graph can't be put on the backend."""


@dataclass(frozen=True)
class Node:
    """One call of a component: ports ← wires. A wire is a root input's name, or "node.port" of another node's output.

    Nodes that share a component share its variables, in the variable set `variables`.
    """

    name: str
    component: Component
    inputs: Mapping[str, str]
    variables: str = "online"


@dataclass(frozen=True)
class Graph:
    """What `compose` gives: root input names, nodes, and seconds spent."""

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    seconds: float


@dataclass(frozen=True)
class Completed:
    """What `complete` gives: nodes in an order that can run, spaces of all wires, variables of all components."""

    graph: Graph
    order: tuple[Node, ...]
    spaces: Spaces
    variables: Mapping[str, Mapping[str, Variable]]
    seconds: float


@dataclass(frozen=True)
class BuildReport:
    """Seconds per stage, and how big the result is."""

    compose_seconds: float
    complete_seconds: float
    bind_seconds: float
    nodes: int
    parameters: int


def compose(inputs: Sequence[str], nodes: Sequence[Node]) -> Graph:
    """Join nodes to a graph; raises ComposeError."""
    start = perf_counter()
    names = [node.name for node in nodes]
    twice = (
        sorted({name for name in [*names, *inputs] if [*names, *inputs].count(name) > 1})
        if (len(set(names) | set(inputs)) < len(names) + len(inputs))
        else []
    )
    if twice:
        raise ComposeError(f"named more than once: {', '.join(twice)}")
    known = {*names, *inputs}
    for node in nodes:
        for port, wire in node.inputs.items():
            if port not in node.component.takes:
                raise ComposeError(
                    f"component {node.name!r} has no input {port!r}; it takes {', '.join(node.component.takes)}"
                )
            if wire.split(".")[0] not in known:
                raise ComposeError(
                    f"component {node.name!r}: input {port!r} is wired to {wire!r}, which is not in the graph"
                )
    return Graph(tuple(inputs), tuple(nodes), perf_counter() - start)


def complete(graph: Graph, spaces: Spaces) -> Completed:
    """Let the spaces of the root inputs flow through the graph; raises CompleteError."""
    start = perf_counter()
    known: dict[str, Space] = {}
    for name in graph.inputs:
        if name in spaces:
            known[name] = spaces[name]
    _check_wired(graph)
    waiting = {node.name: _sources(node, known) for node in graph.nodes}
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for source in waiting[node.name]:
            readers.setdefault(source, []).append(node)
    ready = [node for node in graph.nodes if not waiting[node.name]]
    order: list[Node] = []
    variables: dict[str, Mapping[str, Variable]] = {}
    while ready:
        node = ready.pop(0)
        order.append(node)
        _complete_node(node, known, variables)
        for reader in readers.get(node.name, ()):
            waiting[reader.name].discard(node.name)
            if not waiting[reader.name]:
                ready.append(reader)
    _check_complete(graph, order, waiting)
    return Completed(graph, tuple(order), known, variables, perf_counter() - start)


def _sources(node: Node, known: Mapping[str, Space]) -> set[str]:
    return {wire.split(".")[0] for wire in node.inputs.values() if wire not in known}


def _check_wired(graph: Graph) -> None:
    for node in graph.nodes:
        for port in node.component.takes:
            if port not in node.inputs:
                raise IncompleteInputError(f"component {node.name!r}: nothing is wired to its input {port!r}")


def _check_complete(graph: Graph, order: Sequence[Node], waiting: Mapping[str, set[str]]) -> None:
    done = {node.name for node in order}
    late = [node for node in graph.nodes if node.name not in done]
    if not late:
        return
    for node in late:
        for port, wire in node.inputs.items():
            if wire in graph.inputs and wire in waiting[node.name]:
                raise IncompleteInputError(
                    f"component {node.name!r}: input {port!r} is wired to the root input {wire!r}, "
                    "which was given no space"
                )
    pairs = "; ".join(f"{node.name!r} waits for {', '.join(sorted(waiting[node.name]))}" for node in late)
    raise DeadLockError(f"no component can go on: {pairs}")


def _complete_node(node: Node, known: dict[str, Space], variables: dict[str, Mapping[str, Variable]]) -> None:
    inputs = {}
    for port, wire in node.inputs.items():
        if wire not in known:
            raise IncompleteInputError(
                f"component {node.name!r}: input {port!r} is wired to {wire!r}, which that component does not give"
            )
        inputs[port] = known[wire]
    try:
        outputs = node.component.gives(inputs)
        needed = node.component.variables(inputs)
    except SpaceError as error:
        raise SpaceMismatchError(f"node {node.name!r}: {error}") from error
    key = _key(node)
    if key in variables and variables[key] != needed:
        raise SpaceMismatchError(
            f"node {node.name!r}: component {node.component.name!r} is shared, but its inputs here ask for "
            "other variables"
        )
    variables[key] = needed
    known.update({f"{node.name}.{port}": space for port, space in outputs.items()})


def _key(node: Node) -> str:
    return f"{node.component.name}@{id(node.component)}"


Plan = tuple[tuple[Node, tuple[tuple[str, str], ...]], ...]


class Bound:
    """A graph on a backend: feed any wires, fetch any wires.

    `stores` holds the variable sets by name. `report` says how long the stages took.
    """

    def __init__(
        self, completed: Completed, backend: Backend, stores: Mapping[str, Store], report: BuildReport
    ) -> None:
        self.completed, self.backend, self.stores, self.report = completed, backend, stores, report
        self._plans: dict[tuple[tuple[str, ...], tuple[str, ...]], Plan] = {}
        prefix = _prefixes(completed)
        self._names = {
            node.name: tuple((name, f"{prefix[_key(node)]}{name}") for name in completed.variables[_key(node)])
            for node in completed.order
        }
        self._stored: dict[str, tuple[Views, Views]] = {}

    def run(
        self,
        fetches: tuple[str, ...],
        feeds: Mapping[str, Array],
        variables: Mapping[str, Views] | None = None,
    ) -> dict[str, Array]:
        """Compute wires from other wires; only the nodes in between run. Raises BindError where that can't be.

        `variables` are views by variable set, in place of the stores': the result is then a pure function of feeds and
        variables (sets that are not named are read from their stores).
        """
        key = (fetches, tuple(feeds))
        if key not in self._plans:
            self._plans[key] = self._plan(fetches, frozenset(feeds))
        values, given = dict(feeds), variables or {}
        for node, inputs in self._plans[key]:
            own = (
                {name: given[node.variables][full] for name, full in self._names[node.name]}
                if node.variables in given
                else self._stored_views(node)
            )
            found = node.component.run(self.backend.xp, own, {port: values[wire] for port, wire in inputs})
            for port, value in found.items():
                values[f"{node.name}.{port}"] = value
        return {wire: values[wire] for wire in fetches}

    def gradient(
        self,
        scalar: Callable[[Mapping[str, Array]], Array],
        fetches: tuple[str, ...],
        feeds: Mapping[str, Array],
        variables: str = "online",
    ) -> tuple[Mapping[str, Array], Array]:
        """Fetch wires, and the gradient [P] of a scalar of them by one set of variables."""

        def function(views: Views) -> tuple[Array, Mapping[str, Array]]:
            found = self.run(fetches, feeds, {variables: views})
            return scalar(found), found

        return self.backend.gradient(function, self.stores[variables])

    def _stored_views(self, node: Node) -> Views:
        """The node's variables by their own names; made anew when the store's views were replaced."""
        views, known = self.stores[node.variables].views, self._stored.get(node.name)
        if known is None or known[0] is not views:
            known = self._stored[node.name] = (views, {name: views[full] for name, full in self._names[node.name]})
        return known[1]

    def _plan(self, fetches: tuple[str, ...], feeds: frozenset[str]) -> Plan:
        needed, wanted = set(), [wire for wire in fetches if wire not in feeds]
        nodes = {node.name: node for node in self.completed.order}
        while wanted:
            wire = wanted.pop()
            name = wire.split(".")[0]
            if name not in nodes or wire not in self.completed.spaces:
                raise BindError(
                    f"{wire!r} is needed for {', '.join(fetches)}, and is neither fed nor given by any component"
                )
            if name not in needed:
                needed.add(name)
                wanted.extend(source for source in nodes[name].inputs.values() if source not in feeds)
        return tuple((node, tuple(node.inputs.items())) for node in self.completed.order if node.name in needed)


def _prefixes(completed: Completed) -> dict[str, str]:
    """One component with variables: their own names; several: the name of its first node goes before."""
    owners = [node for node in completed.order if completed.variables[_key(node)]]
    keys = list(dict.fromkeys(_key(node) for node in owners))
    if len(keys) < 2:
        return {_key(node): "" for node in completed.order}
    first = {key: next(node.name for node in owners if _key(node) == key) for key in keys}
    return {_key(node): f"{first.get(_key(node), node.name)}." for node in completed.order}


def bind(completed: Completed, backend: Backend, rng: np.random.Generator) -> Bound:
    """Put a completed graph on a backend; all variable sets start equal. Raises BindError."""
    start = perf_counter()
    prefix, values = _prefixes(completed), {}
    for key, needed in completed.variables.items():
        values.update({f"{prefix[key]}{name}": variable.initial(rng) for name, variable in needed.items()})
    if not all(np.isfinite(value).all() for value in values.values()):
        raise BindError("a variable starts at a value that is not finite")
    sets = dict.fromkeys(["online", *(node.variables for node in completed.order)])
    stores = {name: backend.store(values) for name in sets}
    for node in completed.order:
        if isinstance(node.component, Memory):
            node.component.allocate({port: completed.spaces[wire] for port, wire in node.inputs.items()}, rng)
    report = BuildReport(
        completed.graph.seconds,
        completed.seconds,
        perf_counter() - start,
        len(completed.order),
        int(sum(np.size(value) for value in values.values())),
    )
    return Bound(completed, backend, stores, report)


def run_alone(
    component: Component, spaces: Spaces, backend: Backend, batch: int = 8, seed: int = 0
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Build one component alone and run it on samples of its input spaces; return inputs and outputs as NumPy arrays.

    The same seed gives the same inputs and variables on every backend.
    """
    rng = np.random.default_rng(seed)
    inputs = {port: sample(spaces[port], batch, rng) for port in component.takes}
    node = Node("alone", component, {port: port for port in component.takes})
    completed = complete(compose(component.takes, [node]), spaces)
    bound = bind(completed, backend, rng)
    fetches = tuple(f"alone.{port}" for port in component.gives(spaces))
    on_host = isinstance(component, Memory)
    feeds = {port: value if on_host else backend.asarray(value) for port, value in inputs.items()}
    with backend.without_gradient():
        found = bound.run(fetches, feeds)
    return inputs, {
        wire.split(".", 1)[1]: value if on_host else backend.to_numpy(value) for wire, value in found.items()
    }

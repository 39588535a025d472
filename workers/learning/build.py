"""The three stages from a description to a runnable graph: compose → complete → bind.

1. `compose` joins components by wires, and replaces composites by their inner calls; no spaces, no arrays. Raises
   ComposeError: a call to or a wire from something outside the graph, two nodes of one name.
2. `complete` propagates spaces from the root inputs. A component's variables are determined once the spaces of all its
   inputs are known. Raises IncompleteInputError (an unwired port, or a source without a space), DeadLockError
   (components that depend on each other), SpaceMismatchError.
3. `bind` draws the variables' initial values, puts them on a backend and allocates memories. Raises BindError.

Every error names component and input, those inside composites by their path ('q.trunk'). `Bound.report` has the
seconds of each stage. (After Schaarschmidt, Mika, Fricke & Yoneki, RLgraph, SysML 2019.)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.backends import Array, Backend, BackendError, Store, Views, flatten
from workers.learning.components.base import Component, Memory, Node, Space, SpaceError, Spaces, Variable

# Errors of the build.
#
# BuildError
# ├── ComposeError              the graph refers to a node or wire outside of it
# ├── CompleteError             the wires' spaces cannot be determined
# │   ├── IncompleteInputError  an input has no source, or its source has no space
# │   ├── DeadLockError         components depend on each other in a circle
# │   └── SpaceMismatchError    a component does not support an input's space
# └── BindError                 the completed graph cannot be put on the backend


class BuildError(Exception):
    """Base class of all errors that `compose`, `complete` and `bind` raise."""


class ComposeError(BuildError):
    """Raised if the graph refers to a node or wire outside of it, or has two nodes of one name."""


class CompleteError(BuildError):
    """Raised if the spaces of the graph's wires cannot be determined."""


class IncompleteInputError(CompleteError):
    """Raised if a component's input has no source, or its source has no space."""


class DeadLockError(CompleteError):
    """Raised if components depend on each other's outputs in a circle."""


class SpaceMismatchError(CompleteError):
    """Raised if a component does not support the space of one of its inputs."""


class BindError(BuildError):
    """Raised if the completed graph cannot be put on the backend, or a wire cannot be computed."""


# First stage: join components by wires, and replace composites by their inner calls.


@dataclass(frozen=True)
class Graph:
    """Result of `compose`.

    Attributes:
        inputs: names of the root inputs.
        calls: the nodes as given to `compose`, composites included.
        nodes: calls of non-composite components, inner ones by their path ("q.trunk"); a wire is a root input or the
            output of one of them.
        aliases: each output of a composite ("q.values") → the wire of the inner node that computes it.
        unwired: (path, port) of inputs without a wire.
        seconds: duration of the stage in seconds.
    """

    inputs: tuple[str, ...]
    calls: tuple[Node, ...]
    nodes: tuple[Node, ...]
    aliases: Mapping[str, str]
    unwired: tuple[tuple[str, str], ...]
    seconds: float


def compose(inputs: Sequence[str], nodes: Sequence[Node]) -> Graph:
    """Join nodes to a graph whose root inputs are called ``inputs``, and replace composites by their inner calls.

    Raises:
        ComposeError: a wire or call outside the graph, two nodes of one name, or a component that contains itself.
    """
    start = perf_counter()
    opened = _ComposeState()
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
class _ComposeState:
    """State of `compose` while composites are replaced by inner calls; its attributes become those of `Graph`."""

    nodes: list[Node] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    unwired: list[tuple[str, str]] = field(default_factory=list)

    def add(self, node: Node, path: str, wires: Mapping[str, str], within: tuple[Component, ...]) -> None:
        """Add the call ``path`` ("q.trunk"), or for a composite its inner calls; ComposeError if one is invalid.

        ``wires`` are the whole graph's wires by port, ``within`` the enclosing composites, outermost first.
        """
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
            """Translate an inner wire to its name in the whole graph; None for an unwired input of the composite."""
            return wires.get(wire) if wire in own else f"{path}.{wire}"

        for call in inner:
            _check_call(call, f"{path}.{call.name}", scope)
            inputs = {port: outside(wire) for port, wire in call.inputs.items()}
            wired = {port: wire for port, wire in inputs.items() if wire is not None}
            self.add(replace(call, variables=node.variables), f"{path}.{call.name}", wired, within)
        for port, wire in node.component.results().items():
            if wire.split(".")[0] not in scope:
                raise ComposeError(f"component {path!r}: output {port!r} is {wire!r}, which is not in the graph")
            source = outside(wire)
            if source is not None:
                self.aliases[f"{path}.{port}"] = source

    def source(self, wire: str) -> str:
        """Return the inner node's wire that computes ``wire`` if that is a composite's output, else ``wire``."""
        visited = set()
        while wire in self.aliases and wire not in visited:
            visited.add(wire)
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


# Second stage: propagate spaces from the root inputs, and determine components' variables.


@dataclass(frozen=True)
class Completion:
    """Result of `complete`.

    Attributes:
        graph: the graph that was completed.
        order: the graph's nodes in topological order.
        spaces: space of every wire by name, outputs of composites included.
        owners: name of each node → name of the first node that calls the same component, and owns its variables.
        variables: owner's name → the component's variables by the component's own names for them.
        seconds: duration of the stage in seconds.
    """

    graph: Graph
    order: tuple[Node, ...]
    spaces: Spaces
    owners: Mapping[str, str]
    variables: Mapping[str, Mapping[str, Variable]]
    seconds: float


def complete(graph: Graph, spaces: Spaces) -> Completion:
    """Propagate the spaces of the root inputs (``spaces``, by input name) through the graph.

    Raises:
        CompleteError: an input without source or space, a circle, or a space that a component does not support.
    """
    start = perf_counter()
    for path, port in graph.unwired:
        raise IncompleteInputError(f"component {path!r}: nothing is wired to its input {port!r}")
    flow = _Flow(graph, {name: spaces[name] for name in graph.inputs if name in spaces})
    flow.run()
    for wire, source in graph.aliases.items():
        if source not in flow.spaces:
            raise IncompleteInputError(
                f"component {_source(wire)!r}: output {wire!r} is {source!r}, which nothing gives"
            )
        flow.spaces[wire] = flow.spaces[source]
    return Completion(graph, tuple(flow.order), flow.spaces, flow.owners, flow.variables, perf_counter() - start)


def prefixes(completed: Completion) -> dict[str, str]:
    """Return, for each owner (a node's name), the prefix that makes its variables' names unique in the graph.

    The prefix has the root call's name if several root calls own variables, and the path inside that call if its
    inner components have variables of the same name; otherwise it is empty.
    """
    roots: dict[str, list[str]] = {}
    for owner, needed in completed.variables.items():
        if needed:
            roots.setdefault(owner.split(".")[0], []).append(owner)
    prefixes = dict.fromkeys(completed.variables, "")
    for root, owners in roots.items():
        before = f"{root}." if len(roots) > 1 else ""
        names = [name for owner in owners for name in completed.variables[owner]]
        for owner in owners:
            inner = "" if len(set(names)) == len(names) else owner[len(root) + 1 :]
            prefixes[owner] = f"{before}{inner}/" if inner else before
    return prefixes


@dataclass
class _Flow:
    """State of the propagation of spaces through a graph; its attributes become those of `Completion`."""

    graph: Graph
    spaces: dict[str, Space]
    order: list[Node] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Mapping[str, Variable]] = field(default_factory=dict)
    _first: dict[int, str] = field(default_factory=dict)

    def run(self) -> None:
        """Complete each node once its inputs' spaces are known; CompleteError for an unknown or unsupported space."""
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
        waits = set()
        for port, wire in node.inputs.items():
            if wire in self.spaces:
                continue
            if wire in self.graph.inputs:
                raise IncompleteInputError(
                    f"component {node.name!r}: input {port!r} is wired to the root input {wire!r}, "
                    "which was given no space"
                )
            if _source(wire) not in nodes:
                raise _not_given(node.name, port, wire)
            waits.add(_source(wire))
        return waits

    def _complete(self, node: Node) -> None:
        inputs = {}
        for port, wire in node.inputs.items():
            if wire not in self.spaces:
                raise _not_given(node.name, port, wire)
            inputs[port] = self.spaces[wire]
        try:
            outputs, needed = node.component.output_spaces(inputs), node.component.variables(inputs)
        except SpaceError as error:
            raise SpaceMismatchError(f"node {node.name!r}: {error}") from error
        owner = self._first.setdefault(id(node.component), node.name)
        if self.variables.setdefault(owner, needed) != needed:
            described = ", ".join(f"{port!r}: {space}" for port, space in inputs.items())
            raise SpaceMismatchError(
                f"node {node.name!r}: component {node.component.name!r} is shared with {owner!r}, but its inputs here "
                f"({described}) ask for other variables"
            )
        self.owners[node.name] = owner
        self.order.append(node)
        self.spaces.update({f"{node.name}.{port}": space for port, space in outputs.items()})


def _source(wire: str) -> str:
    """Return the name of the node that computes a wire ("q.values" → "q"); empty for a root input."""
    return wire.rpartition(".")[0]


def _not_given(name: str, port: str, wire: str) -> IncompleteInputError:
    return IncompleteInputError(
        f"component {name!r}: input {port!r} is wired to {wire!r}, which that component does not give"
    )


def _circle(nodes: Mapping[str, Node], waiting: Mapping[str, set[str]]) -> str:
    """Return an error message on a dependency circle; ``waiting`` maps nodes to the nodes whose outputs they lack."""
    path, name = [], min(waiting)
    while name not in path:
        path.append(name)
        name = min(waiting[name])
    messages = []
    for one in path[path.index(name) :]:
        other = min(waiting[one])
        port = next(port for port, wire in nodes[one].inputs.items() if _source(wire) == other)
        messages.append(f"{one!r} (input {port!r}) waits for {other!r}")
    return f"components wait for each other: {', '.join(messages)}"


# Third stage: put variables and memories on a backend, and run programs over the graph's wires.


Feeds = Mapping[str, Array]
Sets = Mapping[str, Views]
Program = Callable[[Sets, Feeds], dict[str, Array]]


@dataclass(frozen=True)
class BuildReport:
    """Duration of each build stage in seconds, and the graph's size.

    Attributes:
        nodes: number of component calls, composites not counted.
        parameters: number of learned parameters, P.
    """

    compose_seconds: float
    complete_seconds: float
    bind_seconds: float
    nodes: int
    parameters: int


class Bound:
    """A graph on a backend, which computes wires of the graph from other wires.

    Attributes:
        completed: the graph with its spaces.
        backend: the numeric library that computes the wires.
        stores: the variable sets by name ("online", "target").
        report: durations of the build and size of the graph.
    """

    def __init__(
        self, completed: Completion, backend: Backend, stores: Mapping[str, Store], report: BuildReport
    ) -> None:
        self.completed, self.backend, self.stores, self.report = completed, backend, stores, report
        prefix = prefixes(completed)
        self._names = {
            node.name: tuple(
                (name, f"{prefix[completed.owners[node.name]]}{name}")
                for name in completed.variables[completed.owners[node.name]]
            )
            for node in completed.order
        }
        self._nodes = {node.name: node for node in completed.order}
        self._programs: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[Program, tuple[str, ...]]] = {}
        self._losses: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Callable[..., Any]] = {}

    def run(self, fetches: tuple[str, ...], feeds: Feeds, variables: Sets | None = None) -> dict[str, Array]:
        """Compute wires from other wires, running only the nodes between them.

        Args:
            fetches: names of the wires to compute.
            feeds: arrays [B, …] by wire, B examples each.
            variables: variable sets that replace the stores' sets of the same names; None: the stores' sets.

        Returns:
            An array by name of each fetched wire; a pure function of feeds and variables if all sets are given.

        Raises:
            BindError: a wire is neither fed nor computable.
        """
        key = (fetches, tuple(feeds))
        if key not in self._programs:
            plan = self._plan(*key)
            program = self._program(plan, *key)
            sets = tuple(dict.fromkeys(node.variables for node in plan if self._names[node.name]))
            on_host = any(isinstance(node.component, Memory) for node in plan)
            self._programs[key] = (program if on_host else self.backend.compile(program), sets)
        program, sets = self._programs[key]
        values = variables or {}
        return program({name: values.get(name) or self.stores[name].views for name in sets}, feeds)

    def gradient(
        self, loss: str, fetches: tuple[str, ...], feeds: Feeds, variables: Sets | None = None
    ) -> tuple[Mapping[str, Array], Array]:
        """Compute the wires ``fetches`` from ``feeds`` [B, …], and differentiate the mean of the wire ``loss``.

        Returns:
            The fetched arrays by wire, and the gradient [P] by the P parameters of the variable set `online`.

        Raises:
            BindError: a wire is neither fed nor computable.
            BackendError: the backend records no operations, and a component has no gradients of its own.
        """
        key = (loss, fetches, tuple(feeds))
        if key not in self._losses:
            self._losses[key] = self._loss(*key) if self.backend.records else self._reverse(*key)
        others = {name: store.views for name, store in self.stores.items()} | dict(variables or {})
        if not self.backend.records:
            return self._losses[key](others, feeds)
        return self.backend.gradient(self._losses[key], others.pop("online"), others, feeds)

    def _loss(
        self, loss: str, fetches: tuple[str, ...], feeds: tuple[str, ...]
    ) -> Callable[[Views, Sets, Feeds], tuple[Array, dict[str, Array]]]:
        wires = (*dict.fromkeys((*fetches, loss)),)
        program, xp = self._program(self._plan(wires, feeds), wires, feeds), self.backend.xp

        def function(views: Views, others: Sets, feeds: Feeds) -> tuple[Array, dict[str, Array]]:
            result = program({**others, "online": views}, feeds)
            return xp.mean(result[loss]), {wire: result[wire] for wire in fetches}

        return function

    def _reverse(
        self, loss: str, fetches: tuple[str, ...], feeds: tuple[str, ...]
    ) -> Callable[[Sets, Feeds], tuple[dict[str, Array], Array]]:
        """Return the function of variables and feeds that computes `gradient` by the components' own gradients.

        It runs the graph forwards, and then backwards through the nodes whose outputs depend on the set `online`
        (reverse mode: Griewank & Walther, Evaluating Derivatives, 2008, section 3.2).
        """
        aliases, plan = self.completed.graph.aliases, self._plan((*dict.fromkeys((*fetches, loss)),), feeds)
        fed, root, learned = {aliases.get(wire, wire) for wire in feeds}, aliases.get(loss, loss), set[str]()
        for node in plan:
            depends = {port for port, wire in node.inputs.items() if wire not in fed and _source(wire) in learned}
            if not depends and not (self._names[node.name] and node.variables == "online"):
                continue
            if not node.component.differentiable or not depends <= {*node.component.pulls}:
                raise BackendError(
                    f"the {self.backend.name} backend records no operations, and component {node.name!r} "
                    f"({node.component.name}) has no gradients of its own{f' by {sorted(depends)}' if depends else ''}"
                )
            learned.add(node.name)

        # names of gradients: a variable of the set has a slash before its own name, a wire has none
        names = {node.name: {name: f"/{full}" for name, full in self._names[node.name]} for node in plan}
        steps = [(node, names[node.name] | dict(node.inputs), node.name in learned) for node in plan]

        def function(sets: Sets, feeds: Feeds) -> tuple[dict[str, Array], Array]:
            values = {aliases.get(wire, wire): value for wire, value in feeds.items()}
            taken = []
            for node, targets, differentiated in steps:
                own = {name: sets[node.variables][full] for name, full in self._names[node.name]}
                inputs = {port: values[wire] for port, wire in node.inputs.items()}
                if differentiated:
                    result, pull = node.component.differentiate(own, inputs)
                    taken.append((targets, {f"{node.name}.{port}": port for port in result}, pull))
                else:
                    result = node.component.run(self.backend.xp, own, inputs)
                values.update({f"{node.name}.{port}": value for port, value in result.items()})
            slopes = {root: np.full_like(values[root], 1.0 / values[root].size)}
            for targets, ports, pull in reversed(taken):
                options = {port: slopes[wire] for wire, port in ports.items() if wire in slopes}
                for name, slope in (pull(options) if options else {}).items():
                    target = targets[name]
                    slopes[target] = slopes[target] + slope if target in slopes else slope
            gradients = {
                name: slopes[f"/{name}"] if f"/{name}" in slopes else np.zeros_like(view)
                for name, view in sets["online"].items()
            }
            return {wire: values[aliases.get(wire, wire)] for wire in fetches}, flatten(gradients)

        return function

    def _program(self, plan: tuple[Node, ...], fetches: tuple[str, ...], fed: tuple[str, ...]) -> Program:
        xp, aliases = self.backend.xp, self.completed.graph.aliases
        known_as = [(wire, aliases[wire]) for wire in fed if wire in aliases]
        steps = [
            (node.component.run, node.variables, self._names[node.name], tuple(node.inputs.items()), f"{node.name}.")
            for node in plan
        ]

        def program(sets: Sets, feeds: Feeds) -> dict[str, Array]:
            values = dict(feeds)
            values.update({source: values[wire] for wire, source in known_as})
            for run, outputs, names, inputs, prefix in steps:
                own = {name: sets[outputs][full] for name, full in names}
                result = run(xp, own, {port: values[wire] for port, wire in inputs})
                for port, value in result.items():
                    values[prefix + port] = value
            return {wire: values[wire] if wire in values else values[aliases[wire]] for wire in fetches}

        return program

    def _plan(self, fetches: tuple[str, ...], feeds: tuple[str, ...]) -> tuple[Node, ...]:
        """Return the nodes between feeds and fetches in topological order; raises BindError for a wire of no node."""
        aliases = self.completed.graph.aliases
        fed = {*feeds, *(aliases[wire] for wire in feeds if wire in aliases)}
        needed, wanted = set(), [wire for wire in fetches if wire not in fed]
        while wanted:
            wire = wanted.pop()
            wire = aliases.get(wire, wire)
            name = wire.rpartition(".")[0]
            if wire in fed:
                continue
            if name not in self._nodes or wire not in self.completed.spaces:
                raise BindError(
                    f"{wire!r} is needed for {', '.join(fetches)}, and is neither fed nor given by any component"
                )
            if name not in needed:
                needed.add(name)
                wanted.extend(source for source in self._nodes[name].inputs.values() if source not in fed)
        return tuple(node for node in self.completed.order if node.name in needed)


def bind(completed: Completion, backend: Backend, rng: np.random.Generator) -> Bound:
    """Put a completed graph on a backend, and allocate its memories.

    All variable sets start with equal values, drawn by ``rng``, which memories keep for their own draws.

    Raises:
        BindError: an initial value is not finite.
    """
    start = perf_counter()
    values = initial(completed, rng)
    sets = dict.fromkeys(["online", *(node.variables for node in completed.order)])
    stores = {name: backend.store(values) for name in sets}
    for node in completed.order:
        if isinstance(node.component, Memory):
            node.component.allocate({port: completed.spaces[wire] for port, wire in node.inputs.items()}, rng)
    parameters = sum(np.size(value) for value in values.values())
    spent = completed.graph.seconds, completed.seconds, perf_counter() - start
    return Bound(completed, backend, stores, BuildReport(*spent, len(completed.order), int(parameters)))


def initial(completed: Completion, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    """Draw the initial float32 arrays of all variables, by name in the graph (`prefixes` + the component's name).

    Raises:
        BindError: an initial value is not finite.
    """
    prefix = prefixes(completed)
    values = {
        f"{prefix[owner]}{name}": variable.initial(rng)
        for owner, needed in completed.variables.items()
        for name, variable in needed.items()
    }
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise BindError(f"the variable {name!r} starts at a value that is not finite")
    return values

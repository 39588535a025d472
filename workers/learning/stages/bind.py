"""The third stage: variables and memories on a backend, and programs over the graph's wires."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.backends.base import Array, Backend, Store, Views
from workers.learning.components.base import Memory, Node
from workers.learning.stages.complete import Completed, prefixes
from workers.learning.stages.errors import BindError

Feeds = Mapping[str, Array]
Sets = Mapping[str, Views]
Program = Callable[[Sets, Feeds], dict[str, Array]]


@dataclass(frozen=True)
class BuildReport:
    """Seconds per stage, and how big the result is: calls of components, and numbers that are learned."""

    compose_seconds: float
    complete_seconds: float
    bind_seconds: float
    nodes: int
    parameters: int


class Bound:
    """A graph on a backend: feed any wires, fetch any wires.

    `stores` holds the variable sets by name. `report` says how long the stages took.
    """

    def __init__(
        self, completed: Completed, backend: Backend, stores: Mapping[str, Store], report: BuildReport
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
        """Compute wires from other wires; only the nodes in between run. Raises BindError where that can't be.

        `variables` are views by variable set, in place of the stores': the result is then a pure function of feeds and
        variables (sets that are not named are read from their stores).
        """
        key = (fetches, tuple(feeds))
        if key not in self._programs:
            plan = self._plan(*key)
            program, sets = self._program(plan, *key), self._sets(plan)
            on_host = any(isinstance(node.component, Memory) for node in plan)
            self._programs[key] = (program if on_host else self.backend.compile(program), sets)
        program, sets = self._programs[key]
        given = variables or {}
        return program({name: given.get(name) or self.stores[name].views for name in sets}, feeds)

    def gradient(
        self, loss: str, fetches: tuple[str, ...], feeds: Feeds, variables: Sets | None = None
    ) -> tuple[Mapping[str, Array], Array]:
        """Fetch wires, and the gradient [P] of the mean of the wire `loss` by the set `online`; see `run`."""
        key = (loss, fetches, tuple(feeds))
        if key not in self._losses:
            self._losses[key] = self._loss(*key)
        others = {name: store.views for name, store in self.stores.items()} | dict(variables or {})
        return self.backend.gradient(self._losses[key], others.pop("online"), others, feeds)

    def _loss(
        self, loss: str, fetches: tuple[str, ...], feeds: tuple[str, ...]
    ) -> Callable[[Views, Sets, Feeds], tuple[Array, dict[str, Array]]]:
        wires = (*dict.fromkeys((*fetches, loss)),)
        program, xp = self._program(self._plan(wires, feeds), wires, feeds), self.backend.xp

        def function(views: Views, others: Sets, feeds: Feeds) -> tuple[Array, dict[str, Array]]:
            found = program({**others, "online": views}, feeds)
            return xp.mean(found[loss]), {wire: found[wire] for wire in fetches}

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
            for run, kept, names, inputs, prefix in steps:
                own = {name: sets[kept][full] for name, full in names}
                found = run(xp, own, {port: values[wire] for port, wire in inputs})
                for port, value in found.items():
                    values[prefix + port] = value
            return {wire: values[wire] if wire in values else values[aliases[wire]] for wire in fetches}

        return program

    def _sets(self, plan: tuple[Node, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node.variables for node in plan if self._names[node.name]))

    def _plan(self, fetches: tuple[str, ...], feeds: tuple[str, ...]) -> tuple[Node, ...]:
        """The nodes between feeds and fetches, in an order that can run."""
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


def bind(completed: Completed, backend: Backend, rng: np.random.Generator) -> Bound:
    """Put a completed graph on a backend; all variable sets start equal. Raises BindError."""
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


def initial(completed: Completed, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    """Draw the values that all variable sets start from, by name. Raises BindError for one that is not finite."""
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

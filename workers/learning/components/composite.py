"""Components made of components."""

from abc import abstractmethod
from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any

from workers.learning.components.base import Arrays, Component, Node, Variable
from workers.learning.spaces import Spaces
from workers.learning.stages.complete import Completed, complete, prefixes
from workers.learning.stages.compose import Graph, compose


class Composite(Component):
    """A sub-graph of inner components with inner calls: a subclass says what it `takes`, its `calls` and `results`.

    The build opens it up, so that inner calls are checked by spaces and named by their path. Its variables are those of
    its inner components, by their own names; where two have one name, with the inner call's path before it
    ("left/weight"). By itself it raises CompleteError, not SpaceError, for spaces that an inner component can't take.
    """

    @abstractmethod
    def calls(self) -> tuple[Node, ...]:
        """Return the inner calls; each wire is an own input, or "call.port" of another's output."""

    @abstractmethod
    def results(self) -> Mapping[str, str]:
        """Return the inner wire of each output."""

    def gives(self, inputs: Spaces) -> Spaces:
        """The spaces of the inner wires that are results."""
        completed = self._completed(inputs)
        return {port: completed.spaces[f"it.{port}"] for port in self.results()}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """The variables of the inner components."""
        completed = self._completed(inputs)
        prefix = prefixes(completed)
        return {
            f"{prefix[owner]}{name}": variable
            for owner, needed in completed.variables.items()
            for name, variable in needed.items()
        }

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Run the inner calls. (In a graph the build has opened them up, and this is not used.)"""
        graph, values = self._graph(), dict(inputs)
        nodes = {node.name: node for node in graph.nodes}
        for name in TopologicalSorter({name: _sources(node) for name, node in nodes.items()}).static_order():
            node, before = nodes[name], f"{name.removeprefix('it.')}/"
            own = {key.removeprefix(before): value for key, value in variables.items() if key.startswith(before)}
            found = node.component.run(xp, own or variables, {port: values[w] for port, w in node.inputs.items()})
            values.update({f"{name}.{port}": value for port, value in found.items()})
        return {port: values[graph.aliases[f"it.{port}"]] for port in self.results()}

    def _graph(self) -> Graph:
        return compose(self.takes, [Node("it", self, {port: port for port in self.takes})])

    def _completed(self, inputs: Spaces) -> Completed:
        return complete(self._graph(), {port: inputs[port] for port in self.takes})


def _sources(node: Node) -> set[str]:
    return {wire.rpartition(".")[0] for wire in node.inputs.values() if "." in wire}

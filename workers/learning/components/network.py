"""Network components (dense, recurrent, policies, set encoders), and the optimiser.

Shapes of one example: D observation entries, N actions, H features or units, K candidates of F features each.
Arrays have a leading dimension B of examples in addition.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from graphlib import TopologicalSorter
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from typing_extensions import override

from app.policies import functions
from workers.learning.backends import Array
from workers.learning.build import Completion, Graph, complete, compose, prefixes
from workers.learning.components.base import Arrays, Component, Node, Pullback, SpaceError, Spaces, Variable, reals

# Composite components.


class Composite(Component):
    """A component made of inner calls; a subclass defines `takes`, `calls` and `results`.

    The build replaces it by its inner calls, which are checked by spaces and named by their path. Its variables are
    those of its inner components, by their own names; equal names get the inner call's path as prefix ("left/weight").
    Used alone, it raises CompleteError, not SpaceError, for a space that an inner component does not support.
    """

    @abstractmethod
    def calls(self) -> tuple[Node, ...]:
        """Return the inner calls; each wire is an input of the composite, or "call.port", another call's output."""

    @abstractmethod
    def results(self) -> Mapping[str, str]:
        """Return the inner wire ("call.port") that computes each output."""

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        completed = self._complete_inner(inputs)
        return {port: completed.spaces[f"it.{port}"] for port in self.results()}

    @override
    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        completed = self._complete_inner(inputs)
        prefix = prefixes(completed)
        return {
            f"{prefix[owner]}{name}": variable
            for owner, needed in completed.variables.items()
            for name, variable in needed.items()
        }

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Run the inner calls in topological order, and return the outputs [B, …]; only for use outside a graph."""
        graph, values = self._graph(), dict(inputs)
        nodes = {node.name: node for node in graph.nodes}
        wires = {name: node.inputs.values() for name, node in nodes.items()}
        sources = {name: {wire.rpartition(".")[0] for wire in own if "." in wire} for name, own in wires.items()}
        for name in TopologicalSorter(sources).static_order():
            node, before = nodes[name], f"{name.removeprefix('it.')}/"
            own = {key.removeprefix(before): value for key, value in variables.items() if key.startswith(before)}
            outputs = node.component.run(xp, own or variables, {port: values[w] for port, w in node.inputs.items()})
            values.update({f"{name}.{port}": value for port, value in outputs.items()})
        return {port: values[graph.aliases[f"it.{port}"]] for port in self.results()}

    def _graph(self) -> Graph:
        return compose(self.takes, [Node("it", self, {port: port for port in self.takes})])

    def _complete_inner(self, inputs: Spaces) -> Completion:
        return complete(self._graph(), {port: inputs[port] for port in self.takes})


# Trunk, heads, and the Q-network composed of them.


def dense(name: str, wide: int, out: int, *, zero: bool = False) -> dict[str, Variable]:
    """Return the variables of a linear layer, weight [out, wide] and bias [out], named ``name``.weight and .bias.

    Weights start at 0 if ``zero``, else at He-uniform values; biases start at 0.
    """
    return {f"{name}.weight": Variable((out, wide), 0 if zero else wide), f"{name}.bias": Variable((out,))}


def apply(name: str, variables: Arrays, inputs: Array) -> Array:
    """Apply the linear layer called ``name`` to inputs [B, in] of B examples; return [B, out]."""
    return functions.linear(inputs, variables[f"{name}.weight"], variables[f"{name}.bias"])


def pull_linear(name: str, slope: Array, inputs: Array) -> dict[str, Array]:
    """Return gradients by weight and bias of a linear layer, from its inputs [B, in] and gradient ``slope`` [B, out].

    ``slope`` is the gradient by the outputs. The sum over B is a product with ones, which takes a third of the time of
    `sum`.
    """
    return {f"{name}.weight": slope.T @ inputs, f"{name}.bias": np.ones(len(slope), slope.dtype) @ slope}


SLOPES: Mapping[Callable[[Any], Any], Callable[[Any], Any]] = {
    functions.relu: lambda after: after > 0,  # at 0 torch has 1, which no continuous input meets
    functions.tanh: lambda after: 1.0 - after * after,
}
"""Derivatives of activations, by their values; components with another one learn in torch."""


class Trunk(Component):
    """Multi-layer perceptron: observation [D] → features [H].

    Args:
        layers: width of each layer; the last is H. Empty: the observation itself.
        activation: function after each layer, "relu" or "tanh"; KeyError for another name.
    """

    takes: ClassVar = ("observation",)

    def __init__(self, layers: tuple[int, ...], activation: str = "relu") -> None:
        self.layers, self.activation = layers, functions.ACTIVATIONS[activation]

    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Return the space of the features, a vector of the last layer's width; raises SpaceError for no vector."""
        wide = self.vector(inputs, "observation")
        return {"features": reals(self.layers[-1] if self.layers else wide)}

    @override
    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        wide, variables = self.vector(inputs, "observation"), {}
        for index, out in enumerate(self.layers):
            variables.update(dense(f"trunk.{index}", wide, out))
            wide = out
        return variables

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        features = inputs["observation"]
        for index in range(len(self.layers)):
            features = self.activation(apply(f"trunk.{index}", variables, features))
        return {"features": features}

    @property
    @override
    def differentiable(self) -> bool:
        return super().differentiable and self.activation in SLOPES

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        features = [inputs["observation"]]
        for index in range(len(self.layers)):
            features.append(self.activation(apply(f"trunk.{index}", variables, features[-1])))

        def pull(slopes: Arrays) -> Arrays:
            gradients, slope = {}, slopes["features"]
            for index in reversed(range(len(self.layers))):
                after = features[index + 1]
                slope = slope * SLOPES[self.activation](after)
                gradients.update(pull_linear(f"trunk.{index}", slope, features[index]))
                if index:
                    slope = slope @ variables[f"trunk.{index}.weight"]
            return gradients

        return {"features": features[-1]}, pull


class LinearHead(Component):
    """Linear head: features [H], mask [N] → values [N], one for each of N ``actions``; initially 0."""

    takes: ClassVar = ("features", "mask")
    pulls: ClassVar = ("features",)

    def __init__(self, actions: int) -> None:
        self.actions = actions

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.vector(inputs, "features")
        if self.vector(inputs, "mask") != self.actions:
            raise SpaceError(self.name, "mask", inputs["mask"], f"a vector of {self.actions} actions")
        return {"values": reals(self.actions)}

    @override
    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        return dense("advantage", self.vector(inputs, "features"), self.actions, zero=True)

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"values": apply("advantage", variables, inputs["features"])}

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        def pull(slopes: Arrays) -> Arrays:
            arrays = pull_linear("advantage", slopes["values"], inputs["features"])
            return {**arrays, "features": slopes["values"] @ variables["advantage.weight"]}

        return self.run(np, variables, inputs), pull


class DuelingHead(LinearHead):
    """Dueling head: features [H], mask of legal actions [N] → values [N]; initially 0.

    A value is the state's value plus the action's advantage minus the legal actions' mean advantage (Wang et al., 2016,
    eq. 9).
    """

    @override
    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        return {**super().variables(inputs), **dense("value", self.vector(inputs, "features"), 1, zero=True)}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        features = inputs["features"]
        value, advantage = apply("value", variables, features), apply("advantage", variables, features)
        return {"values": functions.dueling(value, advantage, inputs["mask"])}


class QNetwork(Composite):
    """Q-network: observation [D], mask [N] → values [N] of N actions, head(trunk(observation))."""

    takes: ClassVar = ("observation", "mask")

    def __init__(self, trunk: Trunk, head: LinearHead) -> None:
        self.trunk, self.head = trunk, head

    @override
    def calls(self) -> tuple[Node, ...]:
        return (
            Node("trunk", self.trunk, {"observation": "observation"}),
            Node("head", self.head, {"features": "trunk.features", "mask": "mask"}),
        )

    @override
    def results(self) -> Mapping[str, str]:
        return {"values": "head.values"}


class Pick(Component):
    """Selection of the taken action's value: values [N], index `action` → one number, `taken`."""

    takes: ClassVar = ("values", "action")

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        actions = self.vector(inputs, "values")
        space = inputs["action"]
        if not isinstance(space, spaces.Discrete) or space.n != actions:
            raise SpaceError(self.name, "action", space, f"Discrete({actions})")
        return {"taken": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        index = xp.reshape(inputs["action"], (-1, 1))
        return {"taken": xp.take_along_axis(inputs["values"], index, axis=1)[:, 0]}


# Recurrent core: memory of earlier observations in the episode.


class GRU(Component):
    """Gated recurrent unit of H ``units`` (Cho et al., 2014; gates as in torch.nn.GRU).

    Inputs: sequence [T, D] of T steps, begins [T] (true where an episode begins, and the memory is reset), memory [H]
    before the first step. Outputs: memory [H] after the last step, and `observation` [D + H] of each step, the tanh of
    its entries (so that no large entry saturates a gate) followed by the memory. Examples of `observation` are steps:
    B sequences in, B·T observations out, in order.
    """

    takes: ClassVar = ("sequence", "begins", "memory")

    def __init__(self, units: int) -> None:
        self.units = units

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        space = inputs["sequence"]
        if not isinstance(space, spaces.Box) or len(space.shape) != 2:
            raise SpaceError(self.name, "sequence", space, "a matrix, a row per step")
        if self.vector(inputs, "begins") != space.shape[0]:
            raise SpaceError(self.name, "begins", inputs["begins"], f"a bit for each of {space.shape[0]} steps")
        if self.vector(inputs, "memory") != self.units:
            raise SpaceError(self.name, "memory", inputs["memory"], f"a vector of {self.units} units")
        return {"observation": reals(int(space.shape[1]) + self.units), "memory": reals(self.units)}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Return the variables of two linear layers with weights [3H, D] and [3H, H], for the three gates."""
        wide = int((inputs["sequence"].shape or ())[-1])
        return {**dense("input", wide, 3 * self.units), **dense("memory", self.units, 3 * self.units)}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        sequence, memory = functions.tanh(inputs["sequence"]), inputs["memory"]
        mask = 1.0 - xp.astype(inputs["begins"], memory.dtype)
        gates = apply("input", variables, sequence)
        results = []
        for step in range(sequence.shape[1]):
            memory = functions.gated_by(gates[:, step], memory * mask[:, step, None], variables)
            results.append(memory)
        rows = xp.concat([sequence, xp.stack(results, axis=1)], axis=2)
        return {"observation": xp.reshape(rows, (-1, rows.shape[2])), "memory": memory}


# Networks of actor and critic, composed of trunk and head.


class PolicyNetwork(QNetwork):
    """Policy network: observation [D], mask [N] → logits [N], head(trunk(observation)); initially 0, i.e. uniform."""

    @override
    def results(self) -> Mapping[str, str]:
        return {"logits": super().results()["values"]}


class ValueHead(Component):
    """Linear head: features [H] → `value` of the state, one number; initially 0."""

    takes: ClassVar = ("features",)
    pulls: ClassVar = ("features",)

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.vector(inputs, "features")
        return {"value": reals()}

    @override
    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        return dense("value", self.vector(inputs, "features"), 1, zero=True)

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"value": apply("value", variables, inputs["features"])[:, 0]}

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        def pull(slopes: Arrays) -> Arrays:
            slope = slopes["value"][:, None]
            return {**pull_linear("value", slope, inputs["features"]), "features": slope * variables["value.weight"]}

        return self.run(np, variables, inputs), pull


class Critic(Composite):
    """Critic: observation [D] → `value` of the state, one number."""

    takes: ClassVar = ("observation",)

    def __init__(self, trunk: Trunk) -> None:
        self.trunk, self.head = trunk, ValueHead()

    @override
    def calls(self) -> tuple[Node, ...]:
        return (
            Node("trunk", self.trunk, {"observation": "observation"}),
            Node("head", self.head, {"features": "trunk.features"}),
        )

    @override
    def results(self) -> Mapping[str, str]:
        return {"value": "head.value"}


# Networks over sets of candidates of any number and order: scores of each, and a value of the set.


class SetEncoder(Component):
    """Set encoder: observation [K, F], mask [K] → features [K, H] of each of K candidates in the others' context.

    Args:
        layers: widths of the layers that process each candidate alone.
        context: summary of the legal candidates to add: "none", their "mean", or "attention" to them.
        joint: widths of the layers after that; the last is H.
        activation: function after each layer, "relu" or "tanh".
    """

    takes: ClassVar = ("observation", "mask")

    def __init__(
        self,
        layers: tuple[int, ...],
        context: Literal["none", "mean", "attention"],
        joint: tuple[int, ...],
        activation: str,
    ) -> None:
        self.config: dict[str, Any] = {
            "layers": list(layers),
            "context": context,
            "joint": list(joint),
            "activation": activation,
        }

    def candidates(self, inputs: Spaces) -> tuple[int, int]:
        """Return the numbers K of candidates and F of their features. Raises SpaceError if the observation is no matrix
        with one row per entry of the mask."""
        space, count = inputs["observation"], self.vector(inputs, "mask")
        if not isinstance(space, spaces.Box) or len(space.shape) != 2 or space.shape[0] != count:
            raise SpaceError(self.name, "observation", space, f"the features of {count} candidates, a matrix")
        return count, int(space.shape[1])

    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Return the space of the features, [K, H], with H the width of the last layer. Raises SpaceError if the
        observation is no matrix with one row per entry of the mask."""
        count, wide = self.candidates(inputs)
        return {"features": reals(count, (wide, *self.config["layers"], *self.config["joint"])[-1])}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Return the variables of all layers by name; their shapes do not depend on the number of candidates. Raises
        SpaceError if the observation is no matrix with one row per entry of the mask."""
        _, wide = self.candidates(inputs)
        variables: dict[str, Variable] = {}
        for index, out in enumerate(self.config["layers"]):
            variables.update(dense(f"each.{index}", wide, out))
            wide = out
        context, joint = self.config["context"], self.config["joint"]
        if context == "attention":
            variables.update({f"{name}.weight": Variable((wide, wide), wide) for name in ("query", "key", "value")})
        if context != "none":
            variables["context.weight"] = Variable((joint[0], wide), wide)
        for index, out in enumerate(joint):
            variables.update(dense(f"joint.{index}", wide, out))
            wide = out
        return variables

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"features": functions.encode_candidates(inputs["observation"], inputs["mask"], variables, self.config)}


class Scorer(Component):
    """Scores of candidates: observation [K, F], mask [K] → values [K] = advice / temperature + head(encoder).

    The linear head starts at 0.

    Args:
        encoder: gives the features [K, H].
        advice: index of the feature that scores each candidate in the reward's unit; None: no such feature.
        temperature: divisor of that feature, in the reward's unit.
        output: name of the output.
    """

    takes: ClassVar = ("observation", "mask")

    def __init__(
        self, encoder: SetEncoder, advice: int | None = None, temperature: float = 1.0, output: str = "values"
    ) -> None:
        self.encoder, self.advice, self.temperature, self.output = encoder, advice, temperature, output

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        count, wide = self.encoder.candidates(inputs)
        if self.advice is not None and self.advice >= wide:
            space = inputs["observation"]
            raise SpaceError(self.name, "observation", space, f"{self.advice + 1} features or more: one is advice")
        return {self.output: reals(count)}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Return the variables of the encoder, and of a linear layer with weight [1, H] that starts at 0."""
        wide = int((self.encoder.output_spaces(inputs)["features"].shape or ())[-1])
        return {**self.encoder.variables(inputs), **dense("advantage", wide, 1, zero=True)}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        config = {**self.encoder.config, "advice": None}
        scores = functions.scores(inputs["observation"], inputs["mask"], variables, config)
        if self.advice is not None:
            scores = scores + inputs["observation"][:, :, self.advice] / self.temperature
        return {self.output: scores}


class SetCritic(Component):
    """Critic of a set: observation [K, F], mask [K] → one `value`, linear in the legal candidates' mean features."""

    takes: ClassVar = ("observation", "mask")

    def __init__(self, encoder: SetEncoder) -> None:
        self.encoder = encoder

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.encoder.candidates(inputs)
        return {"value": reals()}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Return the variables of the encoder, and of a linear layer with weight [1, H] that starts at 0."""
        wide = int((self.encoder.output_spaces(inputs)["features"].shape or ())[-1])
        return {**self.encoder.variables(inputs), **dense("worth", wide, 1, zero=True)}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        features = self.encoder.run(xp, variables, inputs)["features"]
        return {"value": apply("worth", variables, functions.masked_mean(features, inputs["mask"])[:, 0, :])[:, 0]}


# Rules over flat parameter vectors: the optimiser, and the target network's synchronisation.
#
# Parameters are one vector [P]; for the space checker that is a batch of P numbers.


class Adam(Component):
    """One step of Adam (Kingma & Ba, 2015, algorithm 1) on P parameters, after clipping the gradient's norm to `clip`.

    Inputs: `parameters`, `gradient`, and the moments `first` and `second`, [P] each; `count`, the number of this step
    (from 1); `rate`, the learning rate. `beta1` and `beta2` are the moments' decay rates, `tiny` is added to the root.
    """

    takes: ClassVar = ("parameters", "gradient", "first", "second", "count", "rate")

    def __init__(self, clip: float = 10.0, beta1: float = 0.9, beta2: float = 0.999, tiny: float = 1e-8) -> None:
        self.clip, self.beta1, self.beta2, self.tiny = clip, beta1, beta2, tiny

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        for port in self.takes:
            self.scalar(inputs, port)
        return {"parameters": reals(), "first": reals(), "second": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `parameters`, and their moments `first` and `second`, after the step, [P] each."""
        gradient, count = inputs["gradient"], inputs["count"]
        norm = xp.sqrt(xp.sum(gradient * gradient))
        gradient = gradient * (self.clip / xp.clip(norm, self.clip, None))
        first = inputs["first"] + (1 - self.beta1) * (gradient - inputs["first"])
        second = inputs["second"] + (1 - self.beta2) * (gradient * gradient - inputs["second"])
        size = inputs["rate"] / (1 - self.beta1**count)
        slope = xp.sqrt(second / (1 - self.beta2**count)) + self.tiny
        return {"parameters": inputs["parameters"] - size * first / slope, "first": first, "second": second}


class Synchroniser(Component):
    """Blend of vectors [P]: target + share · (online − target), with a share from 0 to 1.

    A share of 1 copies (Mnih et al., 2015), a smaller one smooths (Lillicrap et al., 2016).
    """

    takes: ClassVar = ("online", "target", "share")

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        for port in self.takes:
            self.scalar(inputs, port)
        return {"target": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"target": inputs["target"] + inputs["share"] * (inputs["online"] - inputs["target"])}

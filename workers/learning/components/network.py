"""Trunk, heads, and the Q-network nested from them."""

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium import spaces

from app.policies import functions
from workers.learning.backends.base import Array
from workers.learning.components.base import Arrays, Component, Node, SpaceError, Variable
from workers.learning.components.composite import Composite
from workers.learning.spaces import Spaces, reals


def dense(name: str, wide: int, out: int, *, zero: bool = False) -> dict[str, Variable]:
    """Return weight [out, in] and bias [out] of a linear layer."""
    return {f"{name}.weight": Variable((out, wide), 0 if zero else wide), f"{name}.bias": Variable((out,))}


def apply(name: str, variables: Arrays, inputs: Array) -> Array:
    """Apply the linear layer of this name: [B, in] → [B, out]."""
    return functions.linear(inputs, variables[f"{name}.weight"], variables[f"{name}.bias"])


class Trunk(Component):
    """A multi-layer perceptron: observation [D] → features [last layer]."""

    takes: ClassVar = ("observation",)

    def __init__(self, layers: tuple[int, ...], activation: str = "relu") -> None:
        self.layers, self.activation = layers, functions.ACTIVATIONS[activation]

    def gives(self, inputs: Spaces) -> Spaces:
        """Features are as wide as the last layer (or the observation, without layers)."""
        wide = self.vector(inputs, "observation")
        return {"features": reals(self.layers[-1] if self.layers else wide)}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """One linear layer each."""
        wide, found = self.vector(inputs, "observation"), {}
        for index, out in enumerate(self.layers):
            found.update(dense(f"trunk.{index}", wide, out))
            wide = out
        return found

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Each layer, activated."""
        features = inputs["observation"]
        for index in range(len(self.layers)):
            features = self.activation(apply(f"trunk.{index}", variables, features))
        return {"features": features}


class LinearHead(Component):
    """features, mask → one value per action. Starts at zero: untrained, it prefers nothing."""

    takes: ClassVar = ("features", "mask")

    def __init__(self, actions: int) -> None:
        self.actions = actions

    def gives(self, inputs: Spaces) -> Spaces:
        """Values [actions]."""
        self.vector(inputs, "features")
        if self.vector(inputs, "mask") != self.actions:
            raise SpaceError(self.name, "mask", inputs["mask"], f"a vector of {self.actions} actions")
        return {"values": reals(self.actions)}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """One linear layer, zero at the start."""
        return dense("advantage", self.vector(inputs, "features"), self.actions, zero=True)

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Linear."""
        return {"values": apply("advantage", variables, inputs["features"])}


class DuelingHead(LinearHead):
    """features, mask → state value + advantages centred over the legal actions (Wang et al., 2016, eq.

    9). Starts at zero.
    """

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Two linear layers, zero at the start."""
        return {**super().variables(inputs), **dense("value", self.vector(inputs, "features"), 1, zero=True)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Join both streams."""
        features = inputs["features"]
        value, advantage = apply("value", variables, features), apply("advantage", variables, features)
        return {"values": functions.dueling(value, advantage, inputs["mask"])}


class QNetwork(Composite):
    """observation [D], mask [actions] → values [actions]: head(trunk(observation)), nested from the above."""

    takes: ClassVar = ("observation", "mask")

    def __init__(self, trunk: Trunk, head: LinearHead) -> None:
        self.trunk, self.head = trunk, head

    def calls(self) -> tuple[Node, ...]:
        """Trunk, head."""
        return (
            Node("trunk", self.trunk, {"observation": "observation"}),
            Node("head", self.head, {"features": "trunk.features", "mask": "mask"}),
        )

    def results(self) -> Mapping[str, str]:
        """The head's values."""
        return {"values": "head.values"}


class Pick(Component):
    """The value of the action that was taken: values [actions], action → taken."""

    takes: ClassVar = ("values", "action")

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        actions = self.vector(inputs, "values")
        space = inputs["action"]
        if not isinstance(space, spaces.Discrete) or space.n != actions:
            raise SpaceError(self.name, "action", space, f"Discrete({actions})")
        return {"taken": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Gather along the actions."""
        index = xp.reshape(inputs["action"], (-1, 1))
        return {"taken": xp.take_along_axis(inputs["values"], index, axis=1)[:, 0]}

"""The actor's and the critic's networks, nested from trunk and head."""

from collections.abc import Mapping
from typing import Any, ClassVar

from workers.learning.components.base import Arrays, Component, Node, Variable
from workers.learning.components.composite import Composite
from workers.learning.components.network import QNetwork, Trunk, apply, dense
from workers.learning.spaces import Spaces, reals


class PolicyNetwork(QNetwork):
    """observation [D], mask [actions] → logits [actions] = head(trunk(observation)).

    The head starts at zero: untrained, it draws every legal action as often.
    """

    def results(self) -> Mapping[str, str]:
        """What a Q-network calls values."""
        return {"logits": super().results()["values"]}


class ValueHead(Component):
    """features → one number. Starts at zero."""

    takes: ClassVar = ("features",)

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        self.vector(inputs, "features")
        return {"value": reals()}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """One linear layer."""
        return dense("value", self.vector(inputs, "features"), 1, zero=True)

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Linear."""
        return {"value": apply("value", variables, inputs["features"])[:, 0]}


class Critic(Composite):
    """observation [D] → the state's value."""

    takes: ClassVar = ("observation",)

    def __init__(self, trunk: Trunk) -> None:
        self.trunk, self.head = trunk, ValueHead()

    def calls(self) -> tuple[Node, ...]:
        """Trunk, head."""
        return (
            Node("trunk", self.trunk, {"observation": "observation"}),
            Node("head", self.head, {"features": "trunk.features"}),
        )

    def results(self) -> Mapping[str, str]:
        """The value."""
        return {"value": "head.value"}

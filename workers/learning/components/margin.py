"""Learning from demonstrations: the large-margin loss (Hester et al., Deep Q-learning from Demonstrations, 2018)."""

from typing import Any, ClassVar

from gymnasium import spaces

from workers.learning.components.base import Arrays, Component, SpaceError
from workers.learning.components.value import FORBIDDEN
from workers.learning.spaces import Spaces, reals


class LargeMargin(Component):
    """max over legal a of [Q(s, a) + margin·[a ≠ a_E]] − Q(s, a_E), where `expert` is 1; 0 where it is 0 (eq. 1).

    It is 0 once the expert's action is ahead of every other one by the margin, which is in the unit of the values.
    Without it, actions that no demonstration took would keep whatever values they happen to have.
    """

    takes: ClassVar = ("values", "mask", "action", "expert")

    def __init__(self, margin: float) -> None:
        self.margin = margin

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        actions = self.vector(inputs, "values")
        if self.vector(inputs, "mask") != actions:
            raise SpaceError(self.name, "mask", inputs["mask"], f"one bit per value of {inputs['values']}")
        space = inputs["action"]
        if not isinstance(space, spaces.Discrete) or space.n != actions:
            raise SpaceError(self.name, "action", space, f"Discrete({actions})")
        self.scalar(inputs, "expert")
        return {"loss": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """How far the best action, rivals raised by the margin, is above the expert's."""
        values = inputs["values"]
        index = xp.reshape(inputs["action"], (-1, 1))
        place = xp.cumulative_sum(xp.ones_like(values), axis=1) - 1.0
        rivals = xp.astype(place != xp.astype(index, values.dtype), values.dtype)
        raised = xp.where(inputs["mask"], values + self.margin * rivals, xp.full_like(values, FORBIDDEN))
        own = xp.take_along_axis(values, index, axis=1)[:, 0]
        return {"loss": inputs["expert"] * (xp.max(raised, axis=1) - own)}


class Joined(Component):
    """loss + share · other, example by example."""

    takes: ClassVar = ("loss", "other")

    def __init__(self, share: float) -> None:
        self.share = share

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Add."""
        return {"loss": inputs["loss"] + self.share * inputs["other"]}

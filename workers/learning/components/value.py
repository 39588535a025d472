"""What a value-based learner is taught: the target of a transition, and the Huber loss."""

from typing import Any, ClassVar

from workers.learning.components.base import Arrays, Component, SpaceError
from workers.learning.spaces import Spaces, reals

FORBIDDEN = -1e30
"""The value of an action that the mask forbids: below any real one, finite in float32."""


class Target(Component):
    """The return to learn: reward + discount · Q_evaluate(s', argmax over legal a of Q_select(s', a)).

    With `select` from the online and `evaluate` from the target network this is Double DQN (van Hasselt et al., 2016,
    eq. 4); with both from the target network it is DQN (Mnih et al., 2015). `discount` is γⁿ, and 0 after a terminal.
    """

    takes: ClassVar = ("reward", "discount", "mask", "select", "evaluate")

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        self.scalar(inputs, "reward")
        self.scalar(inputs, "discount")
        actions = self.vector(inputs, "select")
        for port in ("mask", "evaluate"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"a vector of {actions} actions")
        return {"target": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """One step of the Bellman equation."""
        select = inputs["select"]
        legal = xp.where(inputs["mask"], select, xp.full_like(select, FORBIDDEN))
        if inputs["evaluate"] is select:
            value = xp.max(legal, axis=1)
        else:
            best = xp.reshape(xp.argmax(legal, axis=1), (-1, 1))
            value = xp.take_along_axis(inputs["evaluate"], best, axis=1)[:, 0]
        return {"target": inputs["reward"] + inputs["discount"] * value}


class Huber(Component):
    """Loss of each example, times its weight: quadratic up to `delta`, linear beyond (Huber, 1964)."""

    takes: ClassVar = ("predicted", "target", "weight")

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def gives(self, inputs: Spaces) -> Spaces:
        """The loss and the error's size (the priority of the example)."""
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals(), "error": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """With q = min(|error|, δ): q²/2 + δ·(|error| − q), which is both branches in one."""
        error = xp.abs(inputs["predicted"] - inputs["target"])
        inside = xp.clip(error, 0.0, self.delta)
        return {"loss": inputs["weight"] * (0.5 * inside * inside + self.delta * (error - inside)), "error": error}

"""Policies as distributions over legal actions: drawing from logits, and what was drawn in logarithms.

An illegal action has probability 0 (its logarithm is `FORBIDDEN`), and no gradient.
"""

from typing import Any, ClassVar

from gymnasium import spaces

from workers.learning.backends.base import Array
from workers.learning.components.base import Arrays, Component, SpaceError
from workers.learning.components.value import FORBIDDEN
from workers.learning.spaces import Space, Spaces, reals


def log_softmax(xp: Any, logits: Array, mask: Array) -> Array:
    """Logarithms of the probabilities of the actions, [B, N]; `FORBIDDEN` or less where the mask forbids."""
    legal = xp.where(mask, logits, xp.full_like(logits, FORBIDDEN))
    above = legal - xp.max(legal, axis=1, keepdims=True)
    return above - xp.log(xp.sum(xp.exp(above), axis=1, keepdims=True))


def taken(xp: Any, values: Array, action: Array) -> Array:
    """The entries [B] of `values` [B, N] at the actions [B]."""
    return xp.take_along_axis(values, xp.reshape(action, (-1, 1)), axis=1)[:, 0]


class Draw(Component):
    """logits, mask, uniform noise [actions] → an action, and the logarithm of the probability it was drawn with.

    By the Gumbel trick: the best of logit + Gumbel noise (Gumbel, 1954).
    """

    takes: ClassVar = ("logits", "mask", "noise")

    def __init__(self, action_space: Space) -> None:
        self.action_space = action_space

    def gives(self, inputs: Spaces) -> Spaces:
        """An action, and one number."""
        actions = self.vector(inputs, "logits")
        for port in ("mask", "noise"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"one entry per logit of {inputs['logits']}")
        return {"action": self.action_space, "log_prob": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Draw, and look up."""
        found = log_softmax(xp, inputs["logits"], inputs["mask"])
        gumbel = -xp.log(-xp.log(xp.clip(inputs["noise"], 1e-7, 1.0 - 1e-6)))
        action = xp.argmax(found + gumbel, axis=1)
        return {"action": action, "log_prob": taken(xp, found, action)}


class LogProbability(Component):
    """logits, mask, action → log π(action), and the policy's entropy in nats."""

    takes: ClassVar = ("logits", "mask", "action")

    def gives(self, inputs: Spaces) -> Spaces:
        """Two numbers."""
        actions = self.vector(inputs, "logits")
        if self.vector(inputs, "mask") != actions:
            raise SpaceError(self.name, "mask", inputs["mask"], f"one bit per logit of {inputs['logits']}")
        space = inputs["action"]
        if not isinstance(space, spaces.Discrete) or space.n != actions:
            raise SpaceError(self.name, "action", space, f"Discrete({actions})")
        return {"log_prob": reals(), "entropy": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """−Σ π·log π over the legal actions."""
        found = log_softmax(xp, inputs["logits"], inputs["mask"])
        bounded = xp.where(inputs["mask"], found, xp.zeros_like(found))
        entropy = -xp.sum(xp.exp(found) * bounded, axis=1)
        return {"log_prob": taken(xp, found, inputs["action"]), "entropy": entropy}

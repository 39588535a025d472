"""The losses of actor-critic learners, one number per example."""

from typing import Any, ClassVar

from workers.learning.components.base import Arrays, Component
from workers.learning.spaces import Spaces, reals


class Surrogate(Component):
    """log π(action), that of the behaviour, and the advantage → loss; how far the policy moved, and whether it was cut.

    This one is the policy gradient (Williams, 1992; Mnih et al., 2016): −log π · advantage. The divergence is the
    low-variance estimate of KL(behaviour ‖ π): (ratio − 1) − log ratio.
    """

    takes: ClassVar = ("log_prob", "behaviour", "advantage")

    def gives(self, inputs: Spaces) -> Spaces:
        """Three numbers."""
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals(), "divergence": reals(), "cut": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """No cut."""
        moved = inputs["log_prob"] - inputs["behaviour"]
        loss = -inputs["log_prob"] * inputs["advantage"]
        return {"loss": loss, "divergence": xp.exp(moved) - 1.0 - moved, "cut": xp.zeros_like(loss)}


class ClippedSurrogate(Surrogate):
    """−min(ratio · A, clip(ratio, 1 − ε, 1 + ε) · A) with ratio = π/μ (Schulman et al., 2017, eq. 7)."""

    def __init__(self, clip: float) -> None:
        self.clip = clip

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """The pessimistic one of both."""
        moved, advantage = inputs["log_prob"] - inputs["behaviour"], inputs["advantage"]
        ratio = xp.exp(moved)
        free, bounded = ratio * advantage, xp.clip(ratio, 1.0 - self.clip, 1.0 + self.clip) * advantage
        cut = xp.astype(bounded < free, free.dtype)
        return {"loss": -xp.where(bounded < free, bounded, free), "divergence": ratio - 1.0 - moved, "cut": cut}


class NegativeLogLikelihood(Component):
    """−log π(action): the loss of who should do the same (behaviour cloning)."""

    takes: ClassVar = ("log_prob",)

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        self.scalar(inputs, "log_prob")
        return {"loss": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Negate."""
        return {"loss": -inputs["log_prob"]}


class ValueLoss(Component):
    """Half the squared error of the value.

    With a `clip`, the larger of that and the one of a value that may move from the `old` one by at most `clip`.
    """

    takes: ClassVar = ("value", "target", "old")

    def __init__(self, clip: float | None = None) -> None:
        self.clip = clip

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """½·error²."""
        value, target, old = inputs["value"], inputs["target"], inputs["old"]
        error = (value - target) ** 2
        if self.clip is not None:
            near = (old + xp.clip(value - old, -self.clip, self.clip) - target) ** 2
            error = xp.where(near > error, near, error)
        return {"loss": 0.5 * error}


class ActorCriticLoss(Component):
    """policy loss + weight · value loss − entropy weight · entropy."""

    takes: ClassVar = ("policy", "value", "entropy", "entropy_weight")

    def __init__(self, value_weight: float) -> None:
        self.value_weight = value_weight

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Sum."""
        spread = inputs["entropy_weight"] * inputs["entropy"]
        return {"loss": inputs["policy"] + self.value_weight * inputs["value"] - spread}

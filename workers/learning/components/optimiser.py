"""Elementwise rules over flat parameter vectors: the optimiser, and the target network's synchronisation.

Parameters come as one vector [P]; to the space checker that is a batch of P numbers.
"""

from typing import Any, ClassVar

from workers.learning.components.base import Arrays, Component
from workers.learning.spaces import Spaces, reals


class Adam(Component):
    """One step of Adam (Kingma & Ba, 2015, algorithm 1), after clipping the gradient's norm.

    `first` and `second` are the running moments, `count` the number of this step (from 1), `rate` the learning rate.
    """

    takes: ClassVar = ("parameters", "gradient", "first", "second", "count", "rate")

    def __init__(self, clip: float = 10.0, beta1: float = 0.9, beta2: float = 0.999, tiny: float = 1e-8) -> None:
        self.clip, self.beta1, self.beta2, self.tiny = clip, beta1, beta2, tiny

    def gives(self, inputs: Spaces) -> Spaces:
        """New parameters and moments."""
        for port in self.takes:
            self.scalar(inputs, port)
        return {"parameters": reals(), "first": reals(), "second": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Clip, update the moments, correct their bias, step."""
        gradient, count = inputs["gradient"], inputs["count"]
        norm = xp.sqrt(xp.sum(gradient * gradient))
        gradient = gradient * (self.clip / xp.clip(norm, self.clip, None))
        first = inputs["first"] + (1 - self.beta1) * (gradient - inputs["first"])
        second = inputs["second"] + (1 - self.beta2) * (gradient * gradient - inputs["second"])
        size = inputs["rate"] / (1 - self.beta1**count)
        slope = xp.sqrt(second / (1 - self.beta2**count)) + self.tiny
        return {"parameters": inputs["parameters"] - size * first / slope, "first": first, "second": second}


class Synchroniser(Component):
    """target + share · (online − target): 1 copies (Mnih et al., 2015), less smooths (Lillicrap et al., 2016)."""

    takes: ClassVar = ("online", "target", "share")

    def gives(self, inputs: Spaces) -> Spaces:
        """The new target."""
        for port in self.takes:
            self.scalar(inputs, port)
        return {"target": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Interpolate."""
        return {"target": inputs["target"] + inputs["share"] * (inputs["online"] - inputs["target"])}

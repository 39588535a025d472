"""How far the learner strays: schedules of ε, and the ε-greedy choice among legal actions."""

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from workers.learning.components.base import Arrays, Component, Space, SpaceError, Spaces
from workers.learning.components.value import FORBIDDEN


class Schedule(ABC):
    """ε of every environment as a function of progress."""

    @abstractmethod
    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        """Return ε [batch] at this share (0 to 1) of the training."""


class Linear(Schedule):
    """From `start` to `end` over the first `fraction` of the training, the same for all environments."""

    def __init__(self, start: float, end: float, fraction: float) -> None:
        self.start, self.end, self.fraction = start, end, fraction

    @override
    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        share = min(1.0, progress / self.fraction) if self.fraction > 0 else 1.0
        return np.full(batch, self.start + share * (self.end - self.start), np.float32)


class ApeX(Schedule):
    """A ladder over the environments: ε_i = base^(1 + 7i/(N−1)), and ε_0 = base for N = 1 (Horgan et al., 2018)."""

    def __init__(self, base: float = 0.4, steepness: float = 7.0) -> None:
        self.base, self.steepness = base, steepness

    @override
    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        return _powers(self.base, self.steepness, batch)


class GeometricSchedule(Schedule):
    """A geometric ladder over the environments, from `start` to `end`, the same all along: temperatures."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    @override
    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        return _geometric(self.start, self.end, batch)


@lru_cache(maxsize=64)
def _powers(base: float, steepness: float, batch: int) -> NDArray[np.float32]:
    """Made once: a ladder is asked for at every slab, and nobody changes it."""
    rung = np.arange(batch) / max(batch - 1, 1)
    return (base ** (1.0 + steepness * rung)).astype(np.float32)


@lru_cache(maxsize=64)
def _geometric(start: float, end: float, batch: int) -> NDArray[np.float32]:
    return np.geomspace(start, end, batch, dtype=np.float32)


class EpsilonGreedy(Component):
    """values, mask, epsilon, and uniform noise → action. Noise [2] is (explore?, which legal action)."""

    takes: ClassVar = ("values", "mask", "epsilon", "noise")

    def __init__(self, action_space: Space) -> None:
        self.action_space = action_space

    @override
    def gives(self, inputs: Spaces) -> Spaces:
        if self.vector(inputs, "mask") != self.vector(inputs, "values"):
            raise SpaceError(self.name, "mask", inputs["mask"], f"one bit per value of {inputs['values']}")
        if self.vector(inputs, "noise") != 2:
            raise SpaceError(self.name, "noise", inputs["noise"], "a vector of 2")
        self.scalar(inputs, "epsilon")
        return {"action": self.action_space}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Choose the best legal action, or with probability ε a uniformly drawn legal one."""
        values, mask, noise = inputs["values"], inputs["mask"], inputs["noise"]
        best = xp.argmax(xp.where(mask, values, xp.full_like(values, FORBIDDEN)), axis=1)
        rank = xp.cumulative_sum(xp.astype(mask, values.dtype), axis=1)
        wanted = xp.floor(noise[:, 1] * rank[:, -1])
        drawn = xp.argmax(xp.astype(rank > wanted[:, None], values.dtype), axis=1)
        return {"action": xp.where(noise[:, 0] < inputs["epsilon"], drawn, best)}


class Softmax(Component):
    """values, mask, temperature (as `epsilon`), and uniform noise [actions] → action.

    Draws action a with a chance in proportion to exp(value / temperature), by the Gumbel trick: what is hopeless by far
    is hardly ever tried, and near ties are tried evenly.
    """

    takes: ClassVar = ("values", "mask", "epsilon", "noise")

    def __init__(self, action_space: Space) -> None:
        self.action_space = action_space

    @override
    def gives(self, inputs: Spaces) -> Spaces:
        actions = self.vector(inputs, "values")
        for port in ("mask", "noise"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"one entry per value of {inputs['values']}")
        self.scalar(inputs, "epsilon")
        return {"action": self.action_space}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Choose the legal action with the largest value + temperature · Gumbel noise."""
        values, mask = inputs["values"], inputs["mask"]
        gumbel = -xp.log(-xp.log(xp.clip(inputs["noise"], 1e-7, 1.0 - 1e-6)))
        noisy = values + inputs["epsilon"][:, None] * gumbel
        return {"action": xp.argmax(xp.where(mask, noisy, xp.full_like(values, FORBIDDEN)), axis=1)}

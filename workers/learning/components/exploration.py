"""Exploration: schedules of ε or temperature, and the choice among legal actions.

Shapes: B examples (environments), N actions.
"""

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from workers.learning.components.base import Arrays, Component, Space, SpaceError, Spaces
from workers.learning.components.value import FORBIDDEN


class Schedule(ABC):
    """Degree of exploration (ε as a probability, or a temperature in the reward's unit) by training progress."""

    @abstractmethod
    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        """Return ε or the temperature of each environment, [batch], at ``progress`` (0 to 1) of the training."""


class Linear(Schedule):
    """Linear from `start` to `end` over the first `fraction` (0 to 1) of the training, equal for all environments."""

    def __init__(self, start: float, end: float, fraction: float) -> None:
        self.start, self.end, self.fraction = start, end, fraction

    @override
    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        share = min(1.0, progress / self.fraction) if self.fraction > 0 else 1.0
        return np.full(batch, self.start + share * (self.end - self.start), np.float32)


class ApeX(Schedule):
    """Constant ε_i = base^(1 + steepness · i/(B−1)) of environment i of B; `base` if B = 1 (Horgan et al., 2018)."""

    def __init__(self, base: float = 0.4, steepness: float = 7.0) -> None:
        self.base, self.steepness = base, steepness

    @override
    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        return _powers(self.base, self.steepness, batch)


class GeometricSchedule(Schedule):
    """Constant temperatures in the reward's unit, spaced geometrically from `start` to `end` over the environments."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    @override
    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        return _geometric(self.start, self.end, batch)


@lru_cache(maxsize=64)
def _powers(base: float, steepness: float, batch: int) -> NDArray[np.float32]:
    """Return the ε of `ApeX`, [batch]; cached, since every step needs it, so callers must not modify it."""
    rung = np.arange(batch) / max(batch - 1, 1)
    return (base ** (1.0 + steepness * rung)).astype(np.float32)


@lru_cache(maxsize=64)
def _geometric(start: float, end: float, batch: int) -> NDArray[np.float32]:
    return np.geomspace(start, end, batch, dtype=np.float32)


class EpsilonGreedy(Component):
    """ε-greedy choice among N actions: values [N], mask of legal ones [N], `epsilon`, noise [2] → index `action`.

    Noise is uniform in [0, 1): the first number decides whether to explore, the second which legal action to take.
    """

    takes: ClassVar = ("values", "mask", "epsilon", "noise")

    def __init__(self, action_space: Space) -> None:
        self.action_space = action_space

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        if self.vector(inputs, "mask") != self.vector(inputs, "values"):
            raise SpaceError(self.name, "mask", inputs["mask"], f"one bit per value of {inputs['values']}")
        if self.vector(inputs, "noise") != 2:
            raise SpaceError(self.name, "noise", inputs["noise"], "a vector of 2")
        self.scalar(inputs, "epsilon")
        return {"action": self.action_space}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `action` [B]: the best legal action, or with probability ε a uniformly drawn legal one."""
        values, mask, noise = inputs["values"], inputs["mask"], inputs["noise"]
        best = xp.argmax(xp.where(mask, values, xp.full_like(values, FORBIDDEN)), axis=1)
        rank = xp.cumulative_sum(xp.astype(mask, values.dtype), axis=1)
        wanted = xp.floor(noise[:, 1] * rank[:, -1])
        drawn = xp.argmax(xp.astype(rank > wanted[:, None], values.dtype), axis=1)
        return {"action": xp.where(noise[:, 0] < inputs["epsilon"], drawn, best)}


class Softmax(Component):
    """Boltzmann choice among N actions: values [N], mask of legal ones [N], temperature (port `epsilon`), noise [N].

    Draws the index `action` with probability proportional to exp(value / temperature), by the Gumbel trick; noise is
    uniform in [0, 1).
    """

    takes: ClassVar = ("values", "mask", "epsilon", "noise")

    def __init__(self, action_space: Space) -> None:
        self.action_space = action_space

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        actions = self.vector(inputs, "values")
        for port in ("mask", "noise"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"one entry per value of {inputs['values']}")
        self.scalar(inputs, "epsilon")
        return {"action": self.action_space}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `action` [B], the legal action with the largest value + temperature · Gumbel noise."""
        values, mask = inputs["values"], inputs["mask"]
        gumbel = -xp.log(-xp.log(xp.clip(inputs["noise"], 1e-7, 1.0 - 1e-6)))
        noisy = values + inputs["epsilon"][:, None] * gumbel
        return {"action": xp.argmax(xp.where(mask, noisy, xp.full_like(values, FORBIDDEN)), axis=1)}

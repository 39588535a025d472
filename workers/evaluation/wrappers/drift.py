"""L4: the environment's speed changes while an episode goes on, by little steps and at once."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import Conditions, World, Wrapper, neutral


class Drift(Wrapper):
    """Everything measured drifts by a random walk of the log, and in a share of the episodes it shifts once for good.

    Attributes:
        per_episode: standard deviation of the walk at an episode's end.
        shifted: share of episodes with a shift.
        shift: lowest and highest factor of a shift, drawn log-uniformly.
    """

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "drift"
    per_episode: float = 0.1
    shifted: float = 0.25
    shift: tuple[float, float] = (0.8, 1.5)

    def begin(self, world: World) -> None:
        """Draw where each episode shifts and by how much."""
        low, high = np.log(self.shift)
        shifted = self.random.random(world.batch) < self.shifted
        self.when = np.where(shifted, self.random.integers(0, world.steps + 1, world.batch), world.steps + 2)
        self.size = self.random.uniform(low, high, world.batch)
        self.walk = np.zeros(world.batch)
        self.now = np.array(0)

    def conditions(self, world: World) -> Conditions:
        """Advance the random walk by one step."""
        self.now = self.now + 1
        deviation = self.per_episode / max(world.steps, 1) ** 0.5
        self.walk = self.walk + self.random.normal(0, deviation, world.batch)
        factor = self.walk + self.size * (self.now > self.when)
        return neutral(world.batch, world.channels)._replace(slowdown=factor)

    def own(self) -> dict[str, NDArray[Any]]:
        """Where each episode is in its walk."""
        return {"when": self.when, "size": self.size, "walk": self.walk, "now": self.now}

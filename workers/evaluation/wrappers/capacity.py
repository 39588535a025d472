"""L4: a part of the resources is unavailable for a stretch of an episode."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import Conditions, World, Wrapper, neutral


class Capacity(Wrapper):
    """In a share of the episodes, others take a part of the resources during a stretch of the episode.

    Attributes:
        affected: share of episodes in which that happens.
        left: lowest and highest share of the range that stays.
        lasting: longest stretch, as a share of the episode.
    """

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "capacity"
    affected: float = 0.5
    left: tuple[float, float] = (0.4, 0.9)
    lasting: float = 0.4

    def begin(self, world: World) -> None:
        """Draw when it happens in each episode, for how long, and what stays."""
        affected = self.random.random(world.batch) < self.affected
        self.stays = np.where(affected, self.random.uniform(*self.left, world.batch), 1.0)
        self.first = self.random.integers(0, world.steps + 1, world.batch)
        self.last = self.first + self.random.uniform(0, self.lasting * world.steps, world.batch)
        self.now = np.array(0)

    def conditions(self, world: World) -> Conditions:
        """What can be had now."""
        self.now = self.now + 1
        short = (self.now > self.first) & (self.now <= self.last + 1)
        return neutral(world.batch, world.channels)._replace(capacity=np.where(short, self.stays, 1.0))

    def own(self) -> dict[str, NDArray[Any]]:
        """When capacity is short, and how far."""
        return {"stays": self.stays, "first": self.first, "last": self.last, "now": self.now}

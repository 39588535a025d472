"""L4: steps fail at random, and the lost share of each is repeated."""

from typing import ClassVar

import numpy as np

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import Conditions, World, Wrapper, neutral


class Failures(Wrapper):
    """Each step fails with chance ``rate``, anywhere on its way."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "failures"
    rate: float = 0.02

    def conditions(self, world: World) -> Conditions:
        """Which steps fail, and how much of each is lost."""
        fails = self.random.random(world.batch) < self.rate
        lost = self.random.random(world.batch)
        return neutral(world.batch, world.channels)._replace(repeated=np.where(fails, lost, 0.0))

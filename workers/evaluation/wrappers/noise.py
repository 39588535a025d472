"""L4: heavy-tailed measurement noise."""

from typing import ClassVar

import numpy as np

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import Conditions, World, Wrapper, neutral

FREEDOM = 3  # degrees of freedom of Student's t: finite variance, heavy tails
LARGEST = 10.0  # in units of the scale


class Noise(Wrapper):
    """Every measurement is multiplied by exp(``scale`` · t), t from Student's distribution, cut at ``LARGEST``."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "noise"
    scale: float = 0.05

    def conditions(self, world: World) -> Conditions:
        """This step's noise."""
        drawn = self.random.standard_t(FREEDOM, (world.batch, world.channels))
        return neutral(world.batch, world.channels)._replace(noise=self.scale * np.clip(drawn, -LARGEST, LARGEST))

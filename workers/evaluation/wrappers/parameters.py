"""L2: the parameters of an episode change: targets, weights, prices, how far runs differ, and how far estimates err."""

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import numpy as np

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import World, Wrapper

RANGES: Mapping[str, tuple[float, float]] = {
    "target": (0.6, 1.6),
    "weight": (0.9, 1.1),
    "price": (0.9, 1.1),
    "effect": (0.5, 1.5),
    "estimate": (0.5, 1.5),
}


def of_groups(parameters: Sequence[str], groups: Collection[str]) -> list[str]:
    """Those of the parameters that belong to one of the groups."""
    return [name for name in parameters if name.partition(".")[0] in groups]


class Parameters(Wrapper):
    """Each is multiplied by a factor that is drawn log-uniformly from the range of its group."""

    level: ClassVar[Level] = Level.PARAMETERS
    name: ClassVar[str] = "parameters"
    ranges: Mapping[str, tuple[float, float]] = RANGES

    def begin(self, world: World) -> None:
        """Draw the factors of these episodes."""
        factors = {}
        for name in of_groups(world.parameters, self.ranges):
            low, high = self.ranges[name.partition(".")[0]]
            factors[name] = np.exp(self.random.uniform(np.log(low), np.log(high), world.variety))
        world.scale(factors)

"""L4: a load above that of the samples, and in bursts."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import World, Wrapper
from workers.evaluation.wrappers.parameters import of_groups


class Load(Wrapper):
    """Parameters of the groups in ``loads`` are multiplied by a fixed factor."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "load"
    loads: Mapping[str, float] = {"load": 1.2, "rate": 1.5, "burst": 1.5}

    @classmethod
    def applies(cls, world: World) -> bool:
        """Where something arrives."""
        return bool(of_groups(world.parameters, cls.loads))

    def begin(self, world: World) -> None:
        """Raise the load of these episodes."""
        names = of_groups(world.parameters, self.loads)
        world.scale({name: np.full(world.variety, self.loads[name.partition(".")[0]]) for name in names})

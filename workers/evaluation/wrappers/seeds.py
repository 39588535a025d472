"""L1: episodes are drawn from a seed of their own."""

from typing import ClassVar

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import World, Wrapper


class Seeds(Wrapper):
    """Without it every episode is the one that the world was made with."""

    level: ClassVar[Level] = Level.SEEDS
    name: ClassVar[str] = "seeds"

    def begin(self, world: World) -> None:
        """Give the world a seed of its own for these episodes."""
        world.reseed(int(self.random.integers(1 << 62)))

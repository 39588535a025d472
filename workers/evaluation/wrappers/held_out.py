"""L3: episodes follow models that were fitted to executions which the policies' own model has never seen."""

from typing import ClassVar

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import World, Wrapper


class HeldOut(Wrapper):
    """Every episode follows one of the held-out models; policies go on believing in their own."""

    level: ClassVar[Level] = Level.COMPOSITION
    name: ClassVar[str] = "held_out"

    @classmethod
    def applies(cls, world: World) -> bool:
        """Where something was held out."""
        return world.held_out > 0

    def begin(self, world: World) -> None:
        """Draw the model of each episode."""
        if not world.held_out:
            raise ValueError("there is no model of held-out executions to draw from")
        world.compose(self.random.integers(world.held_out, size=world.batch))

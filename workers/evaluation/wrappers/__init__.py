"""What makes a world less certain, one source each: see ``base`` for the contract."""

from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import World, Wrapper
from workers.evaluation.wrappers.capacity import Capacity
from workers.evaluation.wrappers.drift import Drift
from workers.evaluation.wrappers.failures import Failures
from workers.evaluation.wrappers.held_out import HeldOut
from workers.evaluation.wrappers.load import Load
from workers.evaluation.wrappers.noise import Noise
from workers.evaluation.wrappers.parameters import Parameters
from workers.evaluation.wrappers.seeds import Seeds

WRAPPERS: tuple[type[Wrapper], ...] = (Seeds, Parameters, HeldOut, Noise, Drift, Capacity, Failures, Load)


def switched_on(level: Level, *, held_out: bool) -> tuple[type[Wrapper], ...]:
    """The wrappers of ``level``, innermost first; without held-out models the rest of what comes later still holds."""
    reached = Level.SEEDS if level is Level.TRAIN else level
    return tuple(w for w in WRAPPERS if w.level <= reached and (held_out or w is not HeldOut))


def applied(level: Level, world: World) -> tuple[type[Wrapper], ...]:
    """Those of them that have something to disturb in ``world``."""
    return tuple(w for w in switched_on(level, held_out=True) if w.applies(world))


def wrapped(world: World, level: Level, seed: int) -> World | Wrapper:
    """``world`` with everything switched on that ``level`` randomises, drawn from ``seed``."""
    outermost: World | Wrapper = world
    for wrapper in applied(level, world):
        outermost = wrapper(outermost, seed)
    return outermost

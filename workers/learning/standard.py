"""What observations are like before anything is learned: where their entries lie, and how far they vary."""

from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms.config import DQN, ActorCritic, Config
from workers.learning.simulator import Simulator

AnyConfig = TypeVar("AnyConfig", bound=Config)
SLABS = 64  # of random play
LEAST = 0.25  # entries are of order 1: what varies by less is stretched as if it varied by so much
DIGITS = 4


def standardised(config: AnyConfig, simulator: Simulator, seed: int) -> AnyConfig:
    """The config with `centre` and `scale` of its network, as legal moves at random find them in a simulator.

    Where there is no plain network that reads observations, the config is returned as it came.

    Args:
        config: of any algorithm.
        simulator: freshly made; it is played in, so whoever learns needs another.
        seed: of the moves.
    """
    if not isinstance(config, DQN | ActorCritic) or config.network.scorer is not None:
        return config
    if isinstance(config, ActorCritic) and config.recurrent:
        return config
    seen = _played(simulator, np.random.default_rng(seed))
    apart = seen.std(axis=0)
    scale = np.where(apart > 0.0, np.maximum(apart, LEAST), 1.0)
    given = {"centre": _plain(seen.mean(axis=0)), "scale": _plain(scale)}
    network = msgspec.structs.replace(config.network, **given)
    changed: AnyConfig = msgspec.structs.replace(config, network=network)
    return changed


def _played(simulator: Simulator, rng: np.random.Generator) -> NDArray[np.float64]:
    """Observations [n, D]."""
    (observation, mask), found = simulator.reset(), []
    for _ in range(SLABS):
        found.append(observation)
        observation, mask, *_ = simulator.step((rng.random(mask.shape) * mask).argmax(axis=1))
    return np.concatenate(found).astype(np.float64)


def _plain(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{number:.{DIGITS}g}") for number in numbers)

"""The benchmark of savings: what fixed allocations it compares with, and its seeds."""

import numpy as np
import pytest

from benchmarks import savings, without_learning
from benchmarks.held_out.play import Played, play
from benchmarks.held_out.rules import Static
from benchmarks.without_learning import CPU, EPISODES, world


def always(name: str, seed: int, level: float) -> Played:
    return play(world(name, seed), lambda _: Static(np.array([level])), EPISODES, seed)


@pytest.mark.parametrize("name", without_learning.PARTS)
def test_the_best_fixed_allocation_is_the_cheapest_of_those_that_miss_least(name: str) -> None:
    for seed in (7_000, 7_001):
        largest, best = savings.fixed(name, seed, seed)
        assert set(largest.allocations.flat) == {CPU.maximum}
        (level,) = set(best.allocations.flat)
        assert savings.met(best).mean() == savings.met(largest).mean() == 1
        assert best.money.mean() < largest.money.mean()
        below = always(name, seed, level - CPU.step)
        assert savings.met(below).mean() < 1 or below.money.mean() > best.money.mean()


def test_seeds_are_its_own() -> None:
    assert not set(savings.SEEDS) & set(without_learning.SEEDS)
    assert savings.SEEDS.start > max(without_learning.SEEDS) + 1  # which also draws with the seed after

"""The optimum of three jobs on four GPUs is what a search of all plans finds."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from benchmarks.cluster_small import INTERVAL, NOBODY, RESTART, _optimum

Triple = tuple[int, ...]
MADE = np.array([[0, 4, 6, 8, 8], [0, 4, 8, 12, 14], [0, 4, 6, 6, 6]])


@cache
def searched(left: Triple, had: Triple, never: int) -> float:
    """The least sum of completion times, where nobody has ``never`` GPUs."""
    if not any(left):
        return 0.0
    every = [one for one in product(range(5), repeat=3) if 0 < sum(one) <= 4 and never not in one]
    legal = [one for one in every if all(gpus == 0 or rest for gpus, rest in zip(one, left, strict=True))]
    return min(followed(left, had, one, never) for one in legal)


def followed(left: Triple, had: Triple, has: Triple, never: int) -> float:
    cost, after = 0.0, []
    for job, (rest, gpus) in enumerate(zip(left, has, strict=True)):
        lost = INTERVAL - RESTART if gpus != had[job] else 0.0
        gain = MADE[job, gpus] * (INTERVAL - lost) / INTERVAL
        ends = gpus > 0 and gain >= rest
        cost += (lost + np.rint(rest * INTERVAL / MADE[job, gpus]) if ends else INTERVAL) if rest else 0.0
        after.append(0 if ends else rest - int(gain) if gpus else rest)
    on = tuple(gpus if rest else 0 for gpus, rest in zip(has, after, strict=True))
    return cost + searched(tuple(after), on, never)


@pytest.mark.slow
def test_nothing_is_better_than_the_optimum_and_it_can_be_had() -> None:
    for need in ((6, 10, 4), (12, 9, 11), (1, 1, 16)):
        for never in (NOBODY, 3):
            assert _optimum(MADE, np.array(need), never) == searched(need, (0, 0, 0), never)

"""How long one simulated iteration takes on an exported table, against what the spec allows."""

from collections.abc import Callable

import numpy as np

from app.charts.text import seconds
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Criterion
from workers.estimators.base import CriterionMissed

BATCH = 1_024
REPEATS = 7


def simulated_iteration_seconds(table: ModelTable, seed: int, clock: Callable[[], float]) -> float:
    """Seconds per simulated iteration: a batch of environments steps through the table (look-up, run effect, noise,
    exponential of every metric); the median of several repeats.
    """
    rng = np.random.default_rng(seed)
    metrics, allocations, cells, bins = table.log_mean.shape
    place = [rng.integers(0, size, BATCH) for size in (allocations, cells, bins)]
    effect = rng.normal(size=(metrics, BATCH)) * table.effect_sd[:, None]
    durations = []
    for _ in range(REPEATS):
        start = clock()
        noise = rng.normal(size=(metrics, BATCH)) * table.noise_sd[:, None]
        np.exp(table.log_mean[:, place[0], place[1], place[2]] + effect + noise)
        durations.append(clock() - start)
    return float(np.median(durations)) / BATCH


def check(criterion: Criterion, simulated_seconds: float, real_seconds: float) -> None:
    """Compare with the spec's two limits.

    Raises:
        CriterionMissed: naming the measured and the allowed seconds.
    """
    share = criterion.max_fraction * real_seconds
    allowed = min(criterion.max_seconds, share)
    if simulated_seconds > allowed:
        reason = (
            f"max_seconds, {seconds(criterion.max_seconds)}"
            if criterion.max_seconds <= share
            else f"max_fraction {criterion.max_fraction:g} of a real iteration of {seconds(real_seconds)}"
        )
        raise CriterionMissed(simulated_seconds, allowed, reason)

"""Statistics of returns over seeds and episodes, after Agarwal et al. 2021, "Deep RL at the edge of the precipice".

A policy's scores are [S, E]: S seeds of E episodes. Intervals come from a hierarchical bootstrap: seeds are drawn with
replacement, then episodes within each. All policies of an arena share one ``Resamples``, so that whatever compares
them is paired. A mean is then a product of matrices.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    mean: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """Plain numbers by name."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


def mean_interval(values: Floats) -> dict[str, float]:
    """Mean of ``values`` [E] and its 95 % interval by Student's t; infinitely wide for a single one."""
    mean, count = float(values.mean()), len(values)
    errors = float(stdtrit(count - 1, 0.975)) if count > 1 else 0.0
    half = errors * float(values.std(ddof=1)) / count**0.5 if count > 1 else float("inf")
    return {"mean": mean, "low": mean - half, "high": mean + half}


def bootstrap_interval(estimate: float, resampled: Floats) -> dict[str, float]:
    """An estimate with the 95 % percentile interval of its ``resampled`` values [R]."""
    return interval(estimate, resampled).as_dict()


class Resamples:
    """How often each episode is drawn in each of R resamples of S seeds of E episodes.

    Attributes:
        counts: [R, S · E]; every row adds up to S · E.
    """

    def __init__(
        self, seeds: int, episodes: int, resamples: int, rng: np.random.Generator, *, stratified: bool = False
    ) -> None:
        """``stratified`` resamples episodes within every seed, but takes the seeds as they are."""
        self.shape = (seeds, episodes)
        self.counts = np.empty((resamples, seeds * episodes), np.float32)
        for row in self.counts:
            drawn = np.arange(seeds) if stratified else rng.integers(seeds, size=seeds)
            places = drawn[:, None] * episodes + rng.integers(episodes, size=(seeds, episodes))
            row[:] = np.bincount(places.reshape(-1), minlength=row.size)

    def means(self, values: Floats) -> Floats:
        """Mean of ``values`` [..., S, E] in every resample, [..., R]."""
        flat = values.reshape(*values.shape[:-2], -1)
        centre = flat.mean(axis=-1, keepdims=True)  # float32 products then lose nothing that matters
        result: Floats = ((flat - centre).astype(np.float32) @ self.counts.T) / self.counts.shape[1] + centre
        return result

    def interquartile_means(self, values: Floats) -> Floats:
        """Interquartile mean of ``values`` [S, E] in every resample, [R]."""
        flat = values.reshape(-1)
        order = np.argsort(flat, kind="stable")
        upper = np.cumsum(self.counts[:, order], axis=1, dtype=np.float32)
        quarter = flat.size / 4
        np.clip(upper, quarter, 3 * quarter, out=upper)
        weights = np.diff(upper, axis=1, prepend=np.float32(quarter))
        centre = flat.mean()
        result: Floats = (weights @ (flat[order] - centre)) / (2 * quarter) + centre
        return result


def interval(estimate: float, resampled: Floats, confidence: float = 0.95) -> Interval:
    """``estimate`` with the percentile interval of its resampled values [R]."""
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(estimate), float(low), float(high))


def interquartile_mean(values: NDArray[np.floating]) -> float:
    """Mean of the middle half of ``values``, whatever their shape; entries on the quartiles count in part."""
    ordered = np.sort(np.asarray(values, np.float64).reshape(-1))
    quarter = len(ordered) / 4
    upper = np.clip(np.arange(1, len(ordered) + 1), quarter, 3 * quarter)
    weights = np.diff(upper, prepend=quarter)
    return float(weights @ ordered / (2 * quarter))


def wins(ours: NDArray[np.floating], theirs: NDArray[np.floating]) -> Floats:
    """1 where ours is larger, 0 where it is less, half where they are equal; of one shape."""
    won: Floats = (ours > theirs) + 0.5 * (ours == theirs)
    return won


def probability_of_improvement(ours: NDArray[np.floating], theirs: NDArray[np.floating], *, paired: bool) -> float:
    """P(ours > theirs), ties counting half.

    Paired: on the same episode. Unpaired: of independent draws, U/(m·n) of Mann and Whitney (Agarwal et al. 2021, 4.2).
    """
    if paired:
        return float(wins(ours, theirs).mean())
    mine, others = ours.reshape(-1), np.sort(theirs.reshape(-1))
    u = (np.searchsorted(others, mine, "left") + np.searchsorted(others, mine, "right")).sum() / 2
    return float(u / (len(mine) * len(others)))


def profile(scores: Floats, tau: Sequence[float] | Floats, resamples: Resamples, confidence: float = 0.95) -> Floats:
    """Performance profile: share of ``scores`` [S, E] above each of ``tau`` [T], and its interval; [3, T]."""
    above = (scores[None] > np.asarray(tau)[:, None, None]).astype(np.float64)
    drawn = resamples.means(above)
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1)
    return np.stack([above.mean(axis=(1, 2)), low, high])

"""Response quality: value of an answer by the variant's accuracy and by its delay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from app.kinds.inference.spec import InferenceSpec

Floats = NDArray[np.float64]
STEEPNESS = 4.0  # of the exponential: at a quarter of the way 35 % is left
FEW = 8  # number of answers from which arrays are as fast as single numbers
REMAINS = np.exp(-STEEPNESS)  # value of the exponential at the end, subtracted so that quality ends at 0


class QualityTable:
    """Response qualities of U users and V variants.

    Attributes:
        accuracy: accuracy of each variant over the best one's, [V].
        full_until, zero_at: seconds of delay up to which quality is full and from which it is 0, [U].
        exponential: whether quality falls exponentially in between, else linearly, [U].
        weight: weight of each user, with mean 1, [U].
    """

    def __init__(self, spec: InferenceSpec) -> None:
        accuracy = np.array([variant.accuracy for variant in spec.variants])
        self.accuracy: Floats = accuracy / accuracy.max()
        self.full_until: Floats = np.array([user.quality.full_until for user in spec.users])
        self.zero_at: Floats = np.array([user.quality.zero_at for user in spec.users])
        self.exponential = np.array([user.quality.shape == "exponential" for user in spec.users])
        weight = np.array([user.weight for user in spec.users])
        self.weight: Floats = weight / weight.mean()

    def by_delay(self, user: ArrayLike, delay: ArrayLike) -> Floats:
        """Return the share of quality left by a delay, 1 until ``full_until``, 0 from ``zero_at``, of the arguments'
        broadcast shape.

        Args:
            user: positions of users.
            delay: seconds from arrival to answer.
        """
        users = np.asarray(user)
        start, end, exponential = self.full_until[users], self.zero_at[users], self.exponential[users]
        late = np.minimum(np.maximum((np.asarray(delay, np.float64) - start) / (end - start), 0.0), 1.0)
        if not exponential.any():
            return 1 - late
        return np.where(exponential, (np.exp(-STEEPNESS * late) - REMAINS) / (1 - REMAINS), 1 - late)

    def quality(self, user: ArrayLike, variant: ArrayLike, delay: ArrayLike) -> Floats:
        """Return the quality of answers, 0 to 1: relative accuracy times ``by_delay``, of the broadcast shape.

        ``user`` and ``variant`` are positions, ``delay`` seconds from arrival to answer."""
        return self.accuracy[np.asarray(variant)] * self.by_delay(user, delay)

    def total(self, user: int, variant: int, delays: Sequence[float]) -> float:
        """Return the sum of the qualities of a batch's answers; ``delays``: seconds from arrival to answer of each."""
        if len(delays) >= FEW or self.exponential[user]:
            return float(self.quality(user, variant, np.array(delays)).sum())
        (start, end), accuracy, total = self._numbers[user], self._accuracy[variant], 0.0
        for delay in delays:
            late = (delay - start) / (end - start)
            total += accuracy * (1 - (0.0 if late < 0.0 else min(late, 1.0)))
        return total

    def means(self, user: int, ages: Sequence[float], seconds: Sequence[float]) -> list[float]:
        """Return the mean quality, 0 to 1, of a batch's answers if it starts with each of V variants.

        Args:
            user: position of the user.
            ages: seconds that each of the requests has waited; at least one.
            seconds: seconds of the batch with each variant, [V].
        """
        if len(ages) >= FEW or self.exponential[user]:
            delays = np.asarray(ages)[:, None] + np.asarray(seconds)
            values: list[float] = (self.accuracy * self.by_delay(user, delays).mean(axis=0)).tolist()
            return values
        (start, end), means = self._numbers[user], []
        for accuracy, own in zip(self._accuracy, seconds, strict=True):
            late = 0.0
            for age in ages:
                one = (age + own - start) / (end - start)
                late += 0.0 if one < 0.0 else min(one, 1.0)
            means.append(accuracy * (1 - late / len(ages)))
        return means

    @cached_property
    def _numbers(self) -> list[tuple[float, float]]:
        return list(zip(self.full_until.tolist(), self.zero_at.tolist(), strict=True))

    @cached_property
    def _accuracy(self) -> list[float]:
        return list(self.accuracy.tolist())


def jain(quality: ArrayLike) -> Floats:
    """Return Jain's index of fairness over the last axis of n, (Σx)²/(n·Σx²), 1/n to 1; 1 if all are 0 (Jain, 1984)."""
    x = np.asarray(quality, np.float64)
    squares = x.shape[-1] * (x**2).sum(axis=-1)
    return np.where(squares > 0, x.sum(axis=-1) ** 2 / np.where(squares > 0, squares, 1.0), 1.0)


def slope(quality: ArrayLike) -> Floats:
    """Return the gradient of Jain's index over the last axis with respect to the qualities, of the same shape;
    qualities below 0.001 are replaced by 0.001."""
    x = np.maximum(np.asarray(quality, np.float64), 1e-3)
    total, squares = x.sum(axis=-1, keepdims=True), (x**2).sum(axis=-1, keepdims=True)
    derivative: Floats = 2 * total / (x.shape[-1] * squares) * (1 - total * x / squares)
    return derivative

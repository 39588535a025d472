"""InfAdapter's choice of an interval (Salmani et al., EuroMLSys 2023, eq. 1): servers of each variant for a rate.

Σ share · accuracy − α · servers / most, subject to capacity for the rate, the most accurate variants taking as much of
it as they can; where none suffices, the most capacity. Its costs of loading are left out.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

ENOUGH = 1e-9  # share of the rate that no server is left for, at most


class Allocated(NamedTuple):
    """For R rates: servers of each of V variants, [R, V], and the shares of the requests that these take, [R, V]."""

    servers: NDArray[np.int64]
    share: NDArray[np.float64]


class Allocation:
    """Chooses the servers of each variant for an interval.

    Args:
        accuracy: of each variant, [V].
        capacity: requests per second of a server with each, [V].
        servers: how many are on, at least and at most.
        alpha: what all servers are worth in accuracy.
    """

    def __init__(self, accuracy: ArrayLike, capacity: ArrayLike, servers: tuple[int, int], alpha: float) -> None:
        self.accuracy, (least, most) = np.asarray(accuracy, np.float64), servers
        splits = np.array(list(product(range(most + 1), repeat=len(self.accuracy))))
        splits = splits[(splits.sum(axis=1) >= max(least, 1)) & (splits.sum(axis=1) <= most)]
        self.splits = splits[
            np.argsort(-(splits @ self.accuracy), kind="stable")
        ]  # of equals the first is taken, [N, V]
        self.capacity, self.cost = self.splits * np.asarray(capacity), alpha * self.splits.sum(axis=1) / most

    def chosen(self, rate: ArrayLike) -> Allocated:
        """For requests per second that are forecast, [R]."""
        rates = np.maximum(np.asarray(rate, np.float64), 1e-9)[:, None]
        left, share = np.ones((len(rates), len(self.splits))), np.zeros((len(rates), *self.splits.shape))
        for variant in np.argsort(-self.accuracy):
            share[:, :, variant] = np.minimum(left, self.capacity[:, variant] / rates)
            left -= share[:, :, variant]
        best = np.where(left > ENOUGH, -1e3 * left, share @ self.accuracy - self.cost).argmax(axis=1)
        taken = share[np.arange(len(rates)), best]
        return Allocated(self.splits[best], taken / taken.sum(axis=1, keepdims=True))

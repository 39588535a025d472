"""InfAdapter's choice of servers per variant for an interval (Salmani et al., EuroMLSys 2023, eq. 1).

Maximises Σ share · accuracy − α · servers / most, subject to capacity for the request rate; the most accurate variants
serve as much of it as they can. If no choice suffices, the one with the most capacity is taken. Loading costs are
omitted.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

ENOUGH = 1e-9  # share of the rate that no server is left for, at most


class Allocated(NamedTuple):
    """For R rates and V variants: servers of each variant, [R, V], and their shares of the requests, [R, V]."""

    servers: NDArray[np.int64]
    share: NDArray[np.float64]


class Allocation:
    """Chooses the number of servers of each variant for an interval.

    Args:
        accuracy: of each variant, [V].
        capacity: requests per second of one server with each variant, [V].
        servers: smallest and largest number of servers.
        alpha: value of all servers in units of accuracy.
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
        """The best choice for each forecast rate in requests per second, [R]."""
        rates = np.maximum(np.asarray(rate, np.float64), 1e-9)[:, None]
        left, share = np.ones((len(rates), len(self.splits))), np.zeros((len(rates), *self.splits.shape))
        for variant in np.argsort(-self.accuracy):
            share[:, :, variant] = np.minimum(left, self.capacity[:, variant] / rates)
            left -= share[:, :, variant]
        best = np.where(left > ENOUGH, -1e3 * left, share @ self.accuracy - self.cost).argmax(axis=1)
        taken = share[np.arange(len(rates)), best]
        return Allocated(self.splits[best], taken / taken.sum(axis=1, keepdims=True))

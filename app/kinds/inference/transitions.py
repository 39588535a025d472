"""The last transitions of a run, which policies that adapt learn from: batches that ended, and requests that came.

The simulator and a live run keep the same; both are facts of the run, whoever decides in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BATCHES = 16
PARTS = 8
PARTS_OF_INTERVAL = 4
"""Requests are counted in parts of a control interval, which begin at the run's start."""
NONE = -1


class Transitions(NamedTuple):
    """B runs, U users; the newest stand last.

    Attributes:
        batch: variant, size and class of the last ``BATCHES`` that ended, as a position in [C, V, K]; ``NONE`` where
            fewer have, [B, BATCHES].
        pace: seconds that they took over those expected, without loading a variant; 1 where there is none,
            [B, BATCHES].
        arrived: requests in each of the last ``PARTS`` whole parts; ``NONE`` before the run's start, [B, U, PARTS].
    """

    batch: NDArray[np.int64]
    pace: NDArray[np.float64]
    arrived: NDArray[np.int64]


def part_of(seconds: float, control_seconds: float) -> int:
    """Which part of a run a moment lies in."""
    return int(seconds * PARTS_OF_INTERVAL / control_seconds)

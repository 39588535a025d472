"""What a decision says beside its reason: once, and again when it has changed.

A run's kept row begins with the notices of its last decision, −1 − CRC-32 of each; what follows begins with the number
of reports, which is never negative.
"""

from collections.abc import Collection
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]
NONE: frozenset[int] = frozenset()


@lru_cache(maxsize=1024)
def codes(*notices: str) -> frozenset[int]:
    """What notices are remembered by; an empty one is none."""
    return frozenset(crc32(notice.encode()) for notice in notices if notice)


def with_codes(row: Row, known: Collection[int]) -> Row:
    """A packed row with the notices of the decision that it was answered with."""
    return np.concatenate([[-1.0 - number for number in sorted(known)], row]) if known else row


def without_codes(row: Row) -> tuple[Row, frozenset[int]]:
    """The packed row, and the notices before it."""
    if row[0] >= 0:
        return row, NONE
    count = int((row >= 0).argmax())
    return row[count:], frozenset(int(-1 - number) for number in row[:count].tolist())

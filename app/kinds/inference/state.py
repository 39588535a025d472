"""What is known at a decision, the same in the simulator and in the service."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CONTROL = -1
"""What ``asked`` says where it is not a server that waits for work, but the number of servers that is asked for."""
NOTHING_LOADED = -1


class State(NamedTuple):
    """B decisions; U users, C server classes.

    Attributes:
        waiting: requests in each user's queue, [B, U].
        oldest, newest: how long the first and the last of them have waited, seconds; 0 where there is none, [B, U].
        rate: smoothed requests per second, see ``smoothed``, [B, U].
        quality: mean response quality of the user's requests that were answered or dropped; 1 before the first, [B, U].
        idle, busy, starting: servers that wait for work, work, or are being started, [B, C].
        next_free: seconds until the first busy server is expected to be free; 0 where none is busy, [B].
        asked: class of the server that is to be given work, or ``CONTROL``, [B].
        loaded: variant that this server has loaded, or ``NOTHING_LOADED``, [B].
    """

    waiting: Integers
    oldest: Floats
    newest: Floats
    rate: Floats
    quality: Floats
    idle: Integers
    busy: Integers
    starting: Integers
    next_free: Floats
    asked: Integers
    loaded: Integers


def smoothed(rate: Floats, elapsed: Floats, arrived: Integers, window: float) -> Floats:
    """Requests per second after ``elapsed`` seconds in which ``arrived`` came at their end; exponential, broadcast.

    Args:
        rate: before.
        window: its time constant, seconds; the spec's ``control_seconds``.
    """
    kept: Floats = rate * np.exp(-elapsed / window) + arrived / window
    return kept

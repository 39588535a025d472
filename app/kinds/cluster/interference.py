"""What jobs do to one another on shared nodes: how much longer steps of one application take beside each other one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.throughput import NORMAL_90


class Interference(NamedTuple):
    """B applications, the first of the model's; those of whom nothing is known are as others are.

    Attributes:
        log_slowdown: natural log of what the seconds of a step of the one (row) are multiplied by beside a job of the
            other (column), [B, B]; factors of several neighbours multiply.
        sd: of that, [B, B].
        usual: of a pair of which neither is known: the log and its standard deviation, [2]; zeros: nothing is known.
    """

    log_slowdown: Floats
    sd: Floats
    usual: Floats


def unknown() -> Interference:
    """Nothing is known of any: no slow-down."""
    return Interference(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(2))


def slowdown(known: Interference, application: int, beside: Sequence[int]) -> tuple[float, float, float]:
    """What seconds are multiplied by beside jobs of other applications, and the bounds of its 90 % interval."""
    count = len(known.log_slowdown)
    pairs = [
        (known.log_slowdown[application, other], known.sd[application, other])
        if max(application, other) < count
        else (known.usual[0], known.usual[1])
        for other in beside
    ]
    log, variance = sum(log for log, _ in pairs), sum(sd**2 for _, sd in pairs)
    half = NORMAL_90 * float(np.sqrt(variance))
    middle, low, high = np.exp([log, log - half, log + half]).tolist()
    return middle, low, high

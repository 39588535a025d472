"""By when jobs should be finished, and what numbers of GPUs are worth for that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import NEVER, Floats

LEAST_SPREAD = 0.05
LOGISTIC = np.sqrt(3) / np.pi
"""Scale of a logistic distribution over its standard deviation."""
TINY, LONGEST = 1e-9, 1e18


class Deadlines(NamedTuple):
    """J jobs.

    Attributes:
        at: by when each should be finished, ``NEVER``: it has no deadline, [J].
        spread: standard deviation of the log of the time that it takes over what is expected, [J].
        worth: of being in time, against the speed of all jobs, [J].
    """

    at: Floats
    spread: Floats
    worth: Floats

    def chance(self, now: float, seconds: Floats) -> Floats:
        """How probably jobs are in time that take so many seconds from now on, [J, K]; about 0 without a deadline.

        Logarithms of what they take spread as a logistic distribution, which needs no error function.
        """
        left = np.where(self.at < NEVER, self.at - now, 0.0)[:, None]
        scale = np.maximum(self.spread, LEAST_SPREAD)[:, None] * LOGISTIC
        ratio = np.log(np.maximum(left, TINY)) - np.log(np.clip(seconds, TINY, LONGEST))
        return np.asarray(1 / (1 + np.exp(np.clip(-ratio / scale, -50.0, 50.0))), np.float64)

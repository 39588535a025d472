"""Logs of requests as counts by control interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.contract.rows import MICRO
from app.kinds.inference.model import DAY_SECONDS
from app.kinds.inference.samples.content import Requests
from workers.estimators.base import EstimationError, Floats

DATED = 1e8
"""Seconds from which on times count from 1970; earlier ones count from a start of their own."""
MOST_INTERVALS = 5_000_000


class Counts(NamedTuple):
    """Requests of U users in n whole intervals that follow one another.

    Attributes:
        counts: [U, n].
        start: seconds at which the first begins.
        seconds: of each.
    """

    counts: Floats
    start: float
    seconds: float

    @property
    def times(self) -> Floats:
        """When each interval begins, [n]."""
        return np.asarray(self.start + self.seconds * np.arange(self.counts.shape[1]), np.float64)

    @property
    def daily(self) -> bool:
        """Whether it tells of times of day: it is dated, or lasts for a day at least."""
        return self.start >= DATED or self.counts.shape[1] * self.seconds >= DAY_SECONDS

    def until(self, last: int) -> Counts:
        """The first intervals."""
        return self._replace(counts=self.counts[:, :last])


def latest(log: Requests, seconds: float) -> Requests:
    """The end of a log, of less than so many seconds."""
    if not len(log.time):
        return log
    first = int(np.searchsorted(log.time, log.time[-1] - (seconds - 1) * MICRO))
    return log._replace(time=log.time[first:], user=log.user[first:], size=log.size[first:])


def counted(logs: Sequence[Requests], users: int, seconds: float) -> list[Counts]:
    """Logs by intervals; the last one, in which a log ends, is left out where there is another.

    Raises:
        EstimationError: a log is too long for its intervals.
    """
    return [_counted(log, users, seconds) for log in logs if len(log.time)]


def _counted(log: Requests, users: int, seconds: float) -> Counts:
    first = np.floor(log.time[0] / MICRO / seconds) * seconds
    interval = ((log.time / MICRO - first) / seconds).astype(np.int64)
    count = int(interval[-1]) + 1
    if count > MOST_INTERVALS:
        said = f"a log lasts for {count:,} control intervals of {seconds:g} s; at most {MOST_INTERVALS:,} can be read"
        raise EstimationError(said, "/control_seconds")
    size = users * count
    counts = np.bincount(log.user.astype(np.int64) * count + interval, minlength=size).reshape(users, count)
    return Counts(counts[:, : max(count - 1, 1)].astype(np.float64), float(first), seconds)

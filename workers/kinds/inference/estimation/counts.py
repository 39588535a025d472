"""Logs of requests as counts by control interval."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from app.kinds.contract.rows import MICRO
from app.kinds.inference.model import DAY_SECONDS
from app.kinds.inference.samples.content import Requests
from workers.estimators.base import Floats

DATED = 1e8
"""Seconds from which on times count from 1970; earlier ones count from a start of their own."""
MOST_INTERVALS = 5_000_000
SILENCE = 7 * DAY_SECONDS
"""Without any request, from which on a log tells of no rate: services rest for nights, weekends and holidays."""


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
    """The end of a log, of so many seconds."""
    if not len(log.time):
        return log
    return _part(log, int(np.searchsorted(log.time, log.time[-1] - seconds * MICRO)), len(log.time))


def parts(log: Requests, seconds: float) -> list[Requests]:
    """A log without its long silences, in which nothing was measured: its parts, in order.

    All together last for at most ``MOST_INTERVALS`` of so many seconds: of a longer log it is the end.
    """
    cuts = [0, *(np.flatnonzero(np.diff(log.time) > SILENCE * MICRO) + 1).tolist(), len(log.time)]
    found, left = list[Requests](), MOST_INTERVALS * seconds
    for first, last in reversed([*pairwise(cuts)]):
        if left >= seconds and last > first:
            found.append(latest(_part(log, first, last), left))
            left -= span(found[-1]) + seconds
    return found[::-1]


def span(log: Requests) -> float:
    """Seconds from the first request to the last."""
    return float(log.time[-1] - log.time[0]) / MICRO if len(log.time) else 0.0


def counted(logs: Sequence[Requests], users: int, seconds: float) -> list[Counts]:
    """Parts of logs by intervals; the last one of each, in which it ends, is left out where there is another.

    Of a log with parts of several intervals those of a single one, stray moments of a clock that jumped, are left out.
    """
    return [one for log in logs for one in _counted(log, users, seconds)]


def _counted(log: Requests, users: int, seconds: float) -> list[Counts]:
    found = parts(log, seconds)
    long = [one for one in found if span(one) >= seconds] or found
    return [_intervals(one, users, seconds, dated=log.time[0] >= DATED * MICRO) for one in long]


def _intervals(log: Requests, users: int, seconds: float, *, dated: bool) -> Counts:
    first = np.floor(log.time[0] / MICRO / seconds) * seconds
    interval = ((log.time / MICRO - first) / seconds).astype(np.int64)
    count = int(interval[-1]) + 1
    size = users * count
    counts = np.bincount(log.user.astype(np.int64) * count + interval, minlength=size).reshape(users, count)
    start = float(first if dated or first < DATED else first % DAY_SECONDS)  # no clock that jumped makes a date
    return Counts(counts[:, : max(count - 1, 1)].astype(np.float64), start, seconds)


def _part(log: Requests, first: int, last: int) -> Requests:
    return log._replace(time=log.time[first:last], user=log.user[first:last], size=log.size[first:last])

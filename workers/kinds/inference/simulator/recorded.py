"""Requests as they were recorded, from which episodes take a stretch each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.transitions import NONE

Floats = NDArray[np.float64]
FORGOTTEN = 40.0  # time constants after which a request adds nothing to what is known of late


class Recorded(NamedTuple):
    """Arrivals of U users.

    Attributes:
        times: seconds, ascending, of each user.
        first: seconds at which the first episode may begin.
        last: seconds at which the last may begin.
        begins: the seconds at which episodes begin, in place of any between the two, ascending, [n]; or None.
        late: requests per second of late that are known at each of them, [n, U]; or None: nothing is.
    """

    times: Sequence[Floats]
    first: float
    last: float
    begins: Floats | None = None
    late: Floats | None = None

    @classmethod
    def of_counts(cls, counts: Sequence[NDArray[np.integer]], episode_seconds: float, seed: int) -> Recorded:
        """Of requests in each second, [n] for each user: each at any instant of its second."""
        random = np.random.default_rng(seed)
        times = [np.sort(np.repeat(np.arange(len(own)), own) + random.random(int(own.sum()))) for own in counts]
        return cls(times, 0.0, float(max(map(len, counts)) - episode_seconds))

    def beginning(self, begins: Floats, window: float) -> Recorded:
        """The same requests, met by episodes that begin at these seconds and know how many came of late.

        Args:
            begins: ascending, [n]; each at least ``window`` after the first request.
            window: time constant of what is known, seconds: see ``app.kinds.inference.state.smoothed``.
        """
        seen = 1 - np.exp((self.first - begins) / window)
        late = np.empty((len(begins), len(self.times)))
        for user, own in enumerate(self.times):
            since, until = np.searchsorted(own, begins - FORGOTTEN * window), np.searchsorted(own, begins, side="right")
            for place, at in enumerate(begins):
                recent = own[since[place] : until[place]]
                late[place, user] = np.exp((recent - at) / window).sum() / window
        return self._replace(begins=begins, late=late / seen[:, None])

    def apart(self, seconds: float) -> int:
        """How many episodes of so many seconds, evenly apart, have nothing in common."""
        return max(int((self.last - self.first) // seconds), 1)

    def at(self, share: Floats) -> tuple[Floats, Floats | float]:
        """Where episodes begin by their ``share`` of what was recorded, 0 to 1, [B]; the rates they know of, [B, U]."""
        if self.begins is None or self.late is None:
            return self.first + share * max(self.last - self.first, 0.0), 0.0
        place = np.minimum((share * len(self.begins)).astype(np.int64), len(self.begins) - 1)
        return self.begins[place], self.late[place]

    def before(self, at: Floats, seconds: float, parts: int) -> NDArray[np.int64]:
        """How many came in the parts of so many seconds before each moment, the newest last, [n, U, parts].

        ``NONE`` where nothing is known: before the first episode may begin, and where episodes begin anywhere.
        """
        edges = at[:, None] + seconds * np.arange(-parts, 1)
        counts = [np.diff(np.searchsorted(own, edges, side="right"), axis=1) for own in self.times]
        known = (edges[:, :-1] >= self.first) & (self.begins is not None)
        return np.where(known[:, None], np.stack(counts, axis=1), NONE)

    @property
    def rate(self) -> Floats:
        """Mean requests per second of each user, [U]."""
        seconds = max(own[-1] for own in self.times if len(own)) - self.first
        return np.array([len(own) / seconds for own in self.times])

    def joined(self) -> tuple[Floats, NDArray[np.int64]]:
        """All times, and where each user's begin and the last's end."""
        ends = np.concatenate([[0], np.cumsum([len(own) for own in self.times])])
        return np.concatenate(self.times), ends.astype(np.int64)

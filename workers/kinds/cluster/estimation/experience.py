"""What jobs of each application have shown by now: later jobs of it begin with that."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.profile import Profile

Gradient = tuple[float, float]


class Experience:
    """Of jobs of any number of applications, each by its name.

    Attributes:
        profiles: throughput, as all jobs of an application measured it.
        gradients: square and variance as one of its jobs measured them first.
        totals: progress after which its jobs were complete, of data as were measured.
    """

    def __init__(self, *, throughput: bool = True) -> None:
        self._throughput = throughput
        self.profiles: dict[str, Profile] = {}
        self.gradients: dict[str, Gradient] = {}
        self.totals: dict[str, list[float]] = {}
        self._fits: dict[str, dict[tuple[object, ...], Floats]] = {}

    def profile(self, application: str) -> Profile:
        """The one that all jobs of an application share; a new one where throughput is not told on."""
        if not self._throughput:
            return Profile(self._fits.setdefault(application, {}))
        return self.profiles.setdefault(application, Profile(self._fits.setdefault(application, {})))

    def completed(self, application: str, total: float) -> None:
        """A job of an application is complete after so much progress."""
        self.totals.setdefault(application, []).append(total)

    def remaining(self, application: str, done: float) -> float:
        """Progress that is left after ``done``, on average of those jobs that needed more.

        As much as is done where none is known that needed more: of long jobs those that have lasted long last longest.
        """
        more = [total - done for total in self.totals.get(application, ()) if total > done]
        return float(np.mean(more)) if more else done

"""How long jobs of each application train on the GPUs that they ask for, as a log of them tells."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION
from app.kinds.cluster.jobs import Floats, Integers

USUAL_SECONDS = 3600.0
"""Of a job, where no log says how long any trained."""
LARGEST_POWER = 2.0


class Lengths:
    """A applications; the last entry, of any other number, is of all of them together.

    Args:
        jobs: see ``Arrivals.jobs``.
        applications: A.

    Attributes:
        usual: median seconds, [A + 1].
        data: median size of the data, not a number where none is known, [A + 1].
        power: of the data over that, by which seconds grow; 1 unless the log says otherwise, [A + 1].
    """

    def __init__(self, jobs: Floats, applications: int) -> None:
        known = jobs[~np.isnan(jobs[:, DURATION])]
        own = [known[known[:, APPLICATION] == one] for one in range(applications)]
        each = [some if len(some) else known for some in own] + [known]
        self._seconds = [np.sort(some[:, DURATION]) for some in each]
        self.usual = np.array([float(np.median(one)) if len(one) else USUAL_SECONDS for one in self._seconds])
        sized = [some[some[:, DATA] > 0] for some in (*own, known[:0])]  # sizes are in a unit for each application
        self.data = np.array([float(np.median(some[:, DATA])) if len(some) else np.nan for some in sized])
        self.power = np.array([_power(some) for some in sized])

    def scale(self, application: Integers, data: Floats) -> Floats:
        """By what the seconds of jobs with so much data differ from the usual ones, [J]."""
        return np.asarray(self.sized(application, data) ** self.power[application], np.float64)

    def sized(self, application: Integers, data: Floats) -> Floats:
        """Sizes of data over the usual one of each application; 1 where either isn't known, [J]."""
        more = data / self.data[application]
        return np.where(more > 0, more, 1.0)

    def left(self, application: Integers, ran: Floats) -> Floats:
        """Seconds that are left after ``ran`` [J], on average of those jobs that trained for longer, [J].

        As much as it ran where no job did: of long jobs those that have lasted long last longest. Where nothing is
        known, it begins with the usual seconds.
        """
        found = np.empty(len(ran))
        for one in np.unique(application).tolist():
            at, seconds = np.flatnonzero(application == one), self._seconds[one]
            rest = np.maximum(ran[at], 0.0 if len(seconds) else USUAL_SECONDS)
            found[at] = mean_left(seconds, ran[at], rest)
        return found


def mean_left(known: Floats, done: Floats, otherwise: Floats) -> Floats:
    """What is left after ``done`` [J] on average of those ``known``, ascending, that are more; else ``otherwise``."""
    more = len(known) - np.searchsorted(known, done, side="right")
    sums = np.append(np.cumsum(known[::-1])[::-1], 0.0)[len(known) - more]
    return np.asarray(np.where(more > 0, sums / np.maximum(more, 1) - done, otherwise), np.float64)


def _power(jobs: Floats) -> float:
    """Slope of the logs of seconds over those of data, by least squares, towards 1 as of one job e times as large."""
    if not len(jobs):
        return 1.0
    data, seconds = np.log(jobs[:, DATA]), np.log(np.maximum(jobs[:, DURATION], 1.0))
    data, seconds = data - data.mean(), seconds - seconds.mean()
    return float(np.clip((data @ seconds + 1.0) / (data @ data + 1.0), 0.0, LARGEST_POWER))

"""Jobs that measure themselves, as under Pollux: throughput fitted to their steps, goodput, and the best batch.

Source: Qiao et al., “Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning”, OSDI 2021.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.placement import Outlook
from app.kinds.cluster.throughput import (
    Best,
    Limits,
    ProfilePlace,
    ProfileTimes,
    candidates,
    choose_best,
    fit,
    matches_prediction,
    step_seconds,
)


class JobStatistics(NamedTuple):
    """Throughput and gradient statistics of J jobs.

    Attributes:
        seconds: α and β of computing, of synchronisation across nodes and within one, and γ (Pollux, section 3.2),
            [J, 7].
        squared, variance: squared norm and variance of the gradient at the initial batch, [J].
        initial, largest: batch limits over all GPUs, in samples, [J].
        smallest_local, largest_local: batch limits per GPU and pass, in samples, [J].
    """

    seconds: Floats
    squared: Floats
    variance: Floats
    initial: Integers
    largest: Integers
    smallest_local: Integers
    largest_local: Integers

    @property
    def limits(self) -> Limits:
        """Batch limits of the J jobs, in samples."""
        return Limits(*self[3:])


def best(known: JobStatistics, nodes: Integers, gpus: Integers) -> Best:
    """Return, for each of J jobs on each of R numbers of ``gpus`` and ``nodes`` ([R] or [J, R]), the batch of largest
    goodput among ``TRIED`` sizes in equal ratios from the smallest to the largest allowed."""
    nodes, gpus = np.broadcast_arrays(np.atleast_2d(nodes), np.atleast_2d(gpus))
    nodes, gpus = nodes[:, :, None], gpus[:, :, None]  # [1 or J, R, 1]
    tried = candidates(known.limits, gpus)
    return choose_best(tried, goodput_at(known, nodes, gpus, tried.atomic, tried.accumulated))


def goodput_at(known: JobStatistics, nodes: Integers, gpus: Integers, atomic: Floats, accumulated: Floats) -> Floats:
    """Return the goodput in samples per second of J jobs at given batches; arrays broadcast to [J, R, K]. ``atomic``:
    samples per GPU and pass; ``accumulated``: further passes per update."""
    seconds = step_seconds(known.seconds[:, None, None, :], nodes, gpus, atomic)
    computing = known.seconds[:, 0, None, None] + known.seconds[:, 1, None, None] * atomic
    total = gpus * atomic * (accumulated + 1)
    scale = total / np.asarray(known.initial)[:, None, None]
    squared, variance = known.squared[:, None, None], known.variance[:, None, None]
    useful = (variance + squared) / (variance / scale + squared) / scale
    return np.asarray(total / (accumulated * computing + seconds) * useful, np.float64)


def seconds_by_table(outlook: Outlook, gpus: Integers) -> Floats:
    """Return the seconds to completion, [J, K], of each of J jobs on each of its K numbers of GPUs, ``gpus`` [J, K].

    They are ``update_seconds`` × ``updates`` of ``outlook``, infinite for numbers that a job can't use. Raises
    IndexError if a number of GPUs is beyond the outlook's table."""
    with np.errstate(invalid="ignore"):
        left = np.take_along_axis(outlook.update_seconds(), gpus, axis=1) * outlook.updates()[:, None]
    return np.where(np.isnan(left), np.inf, left)


class Profile:
    """Measured steps of one job, and the throughput model fitted to them. It is refitted when a measurement differs by
    more than ``SURPRISE`` (in log seconds) from its prediction; ``fits`` caches fits across jobs of an application.

    Attributes:
        most: largest number of GPUs measured; 0 before a measurement.
        parameters: parameters of the throughput model, [7]; None before a measurement.
    """

    def __init__(self, fits: dict[tuple[object, ...], Floats]) -> None:
        self.most = 0
        self.parameters: Floats | None = None
        self._fits = fits
        self._seen: dict[ProfilePlace, ProfileTimes] = {}
        self._fitted: dict[ProfilePlace, ProfileTimes] = {}

    def measure(self, place: ProfilePlace, times: ProfileTimes) -> bool:
        """Add a measurement of a place that was not yet measured, else ignore it; return whether the parameters
        changed."""
        if place in self._seen:
            return False
        self._seen[place] = times
        self.most = max(self.most, place[1])
        if self.parameters is not None and matches_prediction(self.parameters, self._fitted, place, times):
            return False
        self._fitted[place] = times
        key = tuple(self._fitted.items())
        if key not in self._fits:
            self._fits[key] = fit(self._fitted)
        self.parameters = self._fits[key]
        return True

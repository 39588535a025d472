"""What is expected of jobs whose applications were measured, by those measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from app.kinds.cluster.allocation.situation import seconds_by_table
from app.kinds.cluster.jobs import Floats, Integers
from workers.kinds.cluster.simulator.measured import Application

if TYPE_CHECKING:
    from workers.kinds.cluster.simulator.training import Progress


class MeasuredOutlook:
    """See ``Outlook``: J jobs at their submitted batch sizes.

    Args:
        applications: of the jobs, [J].
        batches: over all GPUs, [J].
        maximum: GPUs that each can use, [J].
        capacity: GPUs of each node, [N].
        progress: how far they are, [J].
    """

    def __init__(
        self,
        applications: Sequence[Application],
        batches: Sequence[int],
        maximum: Integers,
        capacity: Integers,
        progress: Progress,
    ) -> None:
        self._jobs = list(zip(applications, batches, strict=True))
        self._maximum, self._epoch, self._capacity, self._progress = maximum, progress.epoch, capacity, progress

    def update_seconds(self) -> Floats:
        """See ``Outlook``."""
        gpus, node = int(self._capacity.sum()), max(1, int(self._capacity.max()))
        found = np.full((len(self._jobs), gpus + 1), np.inf)
        for row, (application, batch), most in zip(found, self._jobs, self._maximum.tolist(), strict=True):
            known = application.packed_seconds(batch, min(most, gpus), node)
            row[1 : len(known) + 1] = known
        return found

    def updates(self) -> Floats:
        """See ``Outlook``: iterations measured at the batch size; at the last epoch at least one."""
        left = [
            application.updates_left(batch, epoch)
            for (application, batch), epoch in zip(self._jobs, self._epoch.tolist(), strict=True)
        ]
        return np.array(left, np.float64) * self._progress.data

    def goodput(self, gpus: Integers) -> Floats:
        """See ``Outlook``: scale-invariant iterations a second, by the gradients of the epoch that each is in."""
        seconds = self.update_seconds()[:, gpus]
        gains = [
            application.gain(application.initial, batch)[epoch]
            for (application, batch), epoch in zip(self._jobs, self._epoch.tolist(), strict=True)
        ]
        return np.asarray(np.array(gains)[:, None] / seconds, np.float64)

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """See ``Outlook``: as the metric was measured in truth."""
        applications = [application for application, _ in self._jobs]
        return metric_gains(applications, self._progress, seconds * self.goodput(gpus))

    def seconds_left(self, gpus: Integers) -> Floats:
        """See ``Outlook``."""
        return seconds_by_table(self, gpus)


def metric_gains(applications: Sequence[Application], progress: Progress, iterations: Floats) -> Floats:
    """Part of its whole course by which the metric of each job improves in further scale-invariant ones, [J, R]."""
    found = np.zeros_like(iterations)
    each = zip(found, applications, progress.done / progress.data, iterations / progress.data[:, None], strict=True)
    for row, application, done, further in each:
        ends, course = application.course
        row[:] = np.interp(done + further, ends, course) - np.interp(done, ends, course)
    return found

"""What is expected of the jobs of a live cluster: seconds of steps as believed, at the pace that was measured."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from app.kinds.cluster.allocation.neighbours import slowdowns
from app.kinds.cluster.beliefs import Beliefs
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.live.records import Records


class BelievedOutlook:
    """See ``Outlook``: J jobs at the batch sizes that they told last.

    What is left of a job is counted in steps: by its own pace as soon as that is measured, and before by what jobs of
    its application usually take, of as much data; of one that doesn't tell its end by those that trained for longer; of
    a member's run by the iterations that are left.

    Args:
        beliefs: of the domain model.
        jobs: that are there, [J].
        records: what was reported of them, [J].
        gpus: all there are, G.

    Attributes:
        neighbours: what the jobs do to one another on shared nodes; None: nothing is known of it.
    """

    def __init__(self, beliefs: Beliefs, jobs: Jobs, records: Records, gpus: int) -> None:
        self._beliefs, self._jobs, self._records, self._gpus = beliefs, jobs, records, gpus
        self._application = beliefs.positions(records.application)
        self.neighbours = beliefs.neighbours(records.application)
        self._batch = np.where(records.batch > 0, records.batch, np.nan).astype(np.float64)

    def update_seconds(self) -> Floats:
        """See ``Outlook``."""
        every = np.broadcast_to(np.arange(self._gpus + 1), (len(self._application), self._gpus + 1))
        return self._seconds(every)

    def updates(self) -> Floats:
        """See ``Outlook``."""
        return self._left

    def goodput(self, gpus: Integers) -> Floats:
        """See ``Outlook``: steps a second."""
        every = np.broadcast_to(gpus, (len(self._application), len(gpus)))
        return np.asarray(1.0 / self._seconds(every), np.float64)

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """See ``Outlook``: as 1/(k + 1) after k iterations, which is how first-order methods converge.

        Of a job that counts no iterations, k is intervals of so many seconds on the GPUs that it asked for.
        """
        records, jobs = self._records, self._jobs
        every = np.broadcast_to(gpus, (len(self._application), len(gpus)))
        speed = 1.0 / (self._seconds(every) * self._left[:, None])  # parts of what is left a second
        counts = np.isfinite(records.iterations)
        asked = self._seconds(jobs.asked[:, None])[:, 0] * self._left
        done = np.where(counts, records.iteration, jobs.running / seconds)
        left = np.where(counts, np.maximum(records.iterations - records.iteration, 0.0), asked / seconds)
        after = done[:, None] + left[:, None] * np.minimum(speed * seconds, 1.0)
        return np.asarray(1.0 / (done[:, None] + 1.0) - 1.0 / (after + 1.0), np.float64)

    def seconds_left(self, gpus: Integers) -> Floats:
        """See ``Outlook``."""
        return np.asarray(self._seconds(gpus) * self._left[:, None], np.float64)

    def worth(self, power: float) -> Floats:
        """What each job's completion time is worth by a power of its data over the usual of its application, [J]."""
        sized = self._beliefs.lengths.sized(self._application, self._records.data)
        return np.asarray(sized**power, np.float64)

    @cached_property
    def _left(self) -> Floats:
        """Steps until each is finished, [J]; a step at least."""
        records, jobs = self._records, self._jobs
        reference = np.where(np.isfinite(records.pace), records.paced_on, jobs.asked)
        step = self._beliefs.step_seconds(self._application, self._batch, reference[:, None])[:, 0]
        step = step * self._slower
        usual = self._beliefs.usual_seconds(self._application, records.data)
        whole = self._beliefs.iterations(self._application)
        left = np.where(np.isfinite(records.iterations), records.iterations, whole) - records.iteration
        measured = left / records.pace
        expected = np.where(np.isfinite(whole), left, self._unmeasured(usual) / step)
        return np.asarray(np.maximum(np.where(np.isfinite(measured), measured / step, expected), 1.0), np.float64)

    @property
    def _slower(self) -> Floats:
        """What the steps whose pace was measured were multiplied by beside others, [J]."""
        if self.neighbours is None:
            return np.ones(len(self._application))
        there = np.isfinite(self._records.pace) & (self._records.paced_on == self._jobs.gpus)
        return np.where(there, slowdowns(self.neighbours, self._jobs.held), 1.0)

    def _unmeasured(self, usual: Floats) -> Floats:
        """Seconds that are left of jobs whose pace or end isn't known, [J]: by what each did, or how long it ran."""
        records = self._records
        done = np.where(np.isfinite(records.iterations), records.iteration / records.iterations, np.nan)
        rest = self._beliefs.seconds_left(self._application, records.data, self._jobs.running)
        return np.where(np.isfinite(done), usual * np.clip(1.0 - done, 0.0, 1.0), rest)

    def _seconds(self, gpus: Integers) -> Floats:
        seconds = self._beliefs.step_seconds(self._application, self._batch, np.maximum(gpus, 1))
        return np.where((gpus > 0) & (gpus <= self._jobs.maximum[:, None]), seconds, np.inf)

"""Tasks as arrays: what formats are read into, simulators play, and samples keep."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]


class Trace(NamedTuple):
    """N tasks in order of submission; what is unknown is not a number (times, bytes) or −1 (indices).

    Attributes:
        names: identifier of each task, unique, [N].
        submit: seconds after the trace's origin, ascending, [N]; a task becomes ready when it is submitted and all
            of its parents have ended.
        runtime: seconds at speed 1, [N]; not a number for a task that has not run.
        estimate: seconds that the user asked for, [N].
        processors: [N].
        memory: bytes, [N].
        user: index into ``users``, [N].
        deadline: seconds after the origin, [N].
        group: index of the workflow that a task belongs to, [N]; −1 for a job by itself.
        parent_start: the parents of task i are ``parents[parent_start[i]:parent_start[i + 1]]``, [N + 1].
        parents: indices of tasks, each less than N, [E].
        data: bytes that go along each of those edges, [E].
        users: names, [U].
        origin: seconds since 1970 of time 0; 0 when unknown.
        predicted: seconds that a run-time predictor says, [N]; not stored. None: users are believed.
    """

    names: tuple[str, ...]
    submit: Seconds
    runtime: Seconds
    estimate: Seconds
    processors: NDArray[np.int64]
    memory: NDArray[np.float64]
    user: NDArray[np.int64]
    deadline: Seconds
    group: NDArray[np.int64]
    parent_start: NDArray[np.int64]
    parents: NDArray[np.int64]
    data: NDArray[np.float64]
    users: tuple[str, ...] = ()
    origin: float = 0.0
    predicted: Seconds | None = None

    @property
    def tasks(self) -> int:
        """Number of tasks, N."""
        return len(self.submit)

    @property
    def requested(self) -> Seconds:
        """What the user asked for, [N]: the estimate, and where there is none what is predicted, or the run time."""
        return np.where(
            np.isnan(self.estimate), self.runtime if self.predicted is None else self.predicted, self.estimate
        )

    @property
    def expected(self) -> Seconds:
        """What a scheduler plans with, [N]: what is predicted, or else ``requested``."""
        return self.requested if self.predicted is None else self.predicted

    def scaled(self, factor: Seconds | float) -> "Trace":
        """The same with run times that are ``factor`` ([N]) times as long, as asked for and as predicted."""
        predicted = None if self.predicted is None else self.predicted * factor
        return self._replace(runtime=self.runtime * factor, estimate=self.estimate * factor, predicted=predicted)


def independent(
    submit: Seconds, runtime: Seconds, estimate: Seconds, processors: NDArray[np.int64], user: NDArray[np.int64]
) -> Trace:
    """Batch jobs without parents, in order of submission, named by their index; [N] each."""
    count = len(submit)
    unknown = np.full(count, np.nan)
    return Trace(
        names=tuple(map(str, range(count))),
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        processors=processors,
        memory=unknown,
        user=user,
        deadline=unknown,
        group=np.full(count, -1),
        parent_start=np.zeros(count + 1, np.int64),
        parents=np.zeros(0, np.int64),
        data=np.zeros(0),
        users=tuple(map(str, range(int(user.max(initial=-1)) + 1))),
    )


def selected(trace: Trace, rows: slice | NDArray[np.bool_]) -> Trace:
    """Some of a trace's tasks, in their order, without parents."""
    chosen = np.arange(trace.tasks)[rows]
    return trace._replace(
        names=tuple(trace.names[row] for row in chosen.tolist()),
        submit=trace.submit[rows],
        runtime=trace.runtime[rows],
        estimate=trace.estimate[rows],
        processors=trace.processors[rows],
        memory=trace.memory[rows],
        user=trace.user[rows],
        deadline=trace.deadline[rows],
        group=trace.group[rows],
        predicted=None if trace.predicted is None else trace.predicted[rows],
        parent_start=np.zeros(len(chosen) + 1, np.int64),
        parents=np.zeros(0, np.int64),
        data=np.zeros(0),
    )

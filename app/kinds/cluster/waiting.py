"""Predicted start times of waiting jobs, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster import state as counting
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import ClusterState
from app.kinds.cluster.outlook import BelievedOutlook
from app.kinds.cluster.placement import slowdowns

MOST = 100
"""Most waiting jobs with a predicted start."""


class ExpectedStart(NamedTuple):
    """Predicted seconds until a job starts, and bounds of their 90 % interval (None: too few jobs have started)."""

    job: str
    seconds: float
    between: tuple[float, float] | None


def seconds_left(state: ClusterState, outlook: BelievedOutlook) -> Floats:
    """Return the seconds until each of J jobs ends on its GPUs, slowed down by its neighbours, and with its restart if
    one is under way; infinite: unknown, or it has no GPUs, [J]."""
    jobs, gpus = state.jobs, state.jobs.gpus
    left = outlook.expected_seconds(gpus[:, None])[:, 0]
    if outlook.neighbours is not None:
        left = left * slowdowns(outlook.neighbours, jobs.allocation)
    return np.where(outlook.times_known & (gpus > 0), left + jobs.restarting, np.inf)


def expected_starts(state: ClusterState, left: Floats, least: float) -> tuple[Integers, Floats]:
    """Return the positions of the K waiting jobs whose start is known, and the seconds until they start, [K] each. In
    order of queue and submission, each starts once running jobs have released its minimum of GPUs, on whatever nodes.
    At most ``MOST`` jobs are considered.

    Args:
        state: state after the decision.
        left: seconds to completion of each of J jobs that run; infinite: unknown, [J].
        least: seconds until the next decision, a lower bound of each start.
    """
    jobs, gpus = state.jobs, state.jobs.gpus
    runs = np.flatnonzero(gpus > 0)
    waits = np.flatnonzero(gpus == 0)
    waits = waits[np.lexsort((jobs.submitted[waits], jobs.queue[waits]))][:MOST]
    order = runs[np.argsort(left[runs], kind="stable")]
    there = int(state.capacity.sum()) - int(gpus.sum()) + np.concatenate([[0], np.cumsum(gpus[order])])
    first = np.searchsorted(there, np.cumsum(jobs.minimum[waits]))
    seconds = np.concatenate([[least], np.fmax(left[order], least), [np.inf]])[first]
    known = np.isfinite(seconds)
    return waits[known], seconds[known]


def predict_starts(
    state: ClusterState, outlook: BelievedOutlook, least: float
) -> tuple[ClusterState, list[ExpectedStart]]:
    """Predict the starts of waiting jobs; return the state with the predictions recorded, and the predictions.
    ``least`` is the number of seconds until the next decision, a lower bound of each start."""
    if not (state.jobs.gpus == 0).any():
        return state, []
    at, seconds = expected_starts(state, seconds_left(state, outlook), least)
    bounds = counting.interval(state.off_starts)
    result = [
        ExpectedStart(state.names[job], each, None if bounds is None else (bounds[0] * each, bounds[1] * each))
        for job, each in zip(at.tolist(), seconds.tolist(), strict=True)
    ]
    return counting.record_predictions(state, at, seconds, counting.START), result


def record_starts(state: ClusterState, which: NDArray[np.bool_]) -> ClusterState:
    """Return ``state`` with the prediction errors of the jobs that start recorded, and their predictions reset.
    ``which`` is a mask of the jobs that start, [J]."""
    if not which.any():
        return state
    off = counting.prediction_errors(state, np.flatnonzero(which).tolist(), state.now, counting.START)
    records, (at, seconds, count) = state.records, counting.START
    columns = {name: getattr(records, name).copy() for name in counting.START}
    columns[at][which], columns[seconds][which], columns[count][which] = np.nan, np.nan, 0
    return state._replace(records=records._replace(**columns), off_starts=off)

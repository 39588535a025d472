"""Settings and measurements that launchers reported of the jobs present: J jobs in the order of the job table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.report import Progressed, Submitted

UNKNOWN = np.nan
CHANGING = (
    "batch",
    "iteration",
    "value",
    "rises",
    "noise_scale",
    "pace",
    "paced_on",
    "trained",
    "restarts",
    "rate",
    "done",
    "done_then",
    "uncounted",
)

WHOLE = (
    "batch",
    "paced_on",
    "restarts",
    "batch_initial",
    "batch_maximum",
    "gpu_batch_minimum",
    "gpu_batch_maximum",
    "predictions",
    "awaits",
)
"""Columns of integer type."""


class Records(NamedTuple):
    """Reported settings and measurements of J jobs, [J] each; unknown is NaN, or 0 in integer columns.

    Attributes:
        application: name; empty: not reported.
        batch: samples per step over all GPUs, as reported last.
        data: data size, in a unit of the application.
        iterations: number of iterations at which the job is finished.
        iteration: iterations completed.
        value: last reported loss or metric.
        rises: whether ``value`` is a metric (higher is better).
        noise_scale: gradient noise scale, in samples.
        pace: iterations per second between the last two reports on the same nodes.
        paced_on: number of GPUs while ``pace`` was measured.
        trained, restarts: ``running`` (plus the restart left, seconds) and ``restarts`` of the job table at the last
            progress report or start.
        batch_initial: samples per step as submitted; 0: not reported.
        batch_maximum: largest batch in samples that the job may choose; 0: its batch is fixed.
        gpu_batch_minimum, gpu_batch_maximum: fewest and most samples per GPU and pass; 0: no limit.
        rate: goodput of the last reported steps, in samples per second at the initial batch's efficiency.
        done: samples trained until the last reported steps, at the initial batch's efficiency.
        done_then: ``done`` when ``iteration`` last changed.
        uncounted: seconds trained since ``done`` was updated.
        predicted_at, predicted: time of one randomly drawn prediction of the job's end, and the seconds predicted.
        predictions: number of predictions of the job's end.
        awaited_at, awaited, awaits: the same three for the job's next start, while it waits.
    """

    application: NDArray[np.object_]
    batch: Integers
    data: Floats
    iterations: Floats
    iteration: Floats
    value: Floats
    rises: NDArray[np.bool_]
    noise_scale: Floats
    pace: Floats
    paced_on: Integers
    trained: Floats
    restarts: Integers
    batch_initial: Integers
    batch_maximum: Integers
    gpu_batch_minimum: Integers
    gpu_batch_maximum: Integers
    rate: Floats
    done: Floats
    done_then: Floats
    uncounted: Floats
    predicted_at: Floats
    predicted: Floats
    predictions: Integers
    awaited_at: Floats
    awaited: Floats
    awaits: Integers


def none() -> Records:
    """Return the records of a cluster without jobs."""
    return of(())


def untold(count: int) -> Records:
    """Return the records of ``count`` jobs without any reported setting or measurement."""
    unknown, zeros, whole = np.full(count, UNKNOWN), np.zeros(count), np.zeros(count, np.int64)
    fields = {"application": np.full(count, "", object), "rises": np.zeros(count, np.bool_)}
    fields |= dict.fromkeys(("iteration", "trained", "done", "done_then", "uncounted"), zeros)
    fields |= dict.fromkeys(WHOLE, whole)
    return Records(**{name: fields.get(name, unknown) for name in Records._fields})


def of(came: Sequence[Submitted]) -> Records:
    """Return the records of newly submitted jobs, in the order of ``came``."""
    batch = np.array([job.batch or 0 for job in came], np.int64)
    return untold(len(came))._replace(
        application=np.array([job.application or "" for job in came], object),
        data=np.array([job.data or UNKNOWN for job in came], np.float64),
        iterations=np.array([job.iterations or UNKNOWN for job in came], np.float64),
        batch=batch,
        batch_initial=batch,
        batch_maximum=np.array([job.batch_maximum or 0 for job in came], np.int64),
        gpu_batch_minimum=np.array([job.gpu_batch_minimum or 0 for job in came], np.int64),
        gpu_batch_maximum=np.array([job.gpu_batch_maximum or 0 for job in came], np.int64),
    )


def append_jobs(records: Records, came: Records) -> Records:
    """Return ``records`` with those of the new jobs ``came`` at the end."""
    return Records._make(np.concatenate(pair) for pair in zip(records, came, strict=True))


def keep(records: Records, which: Sequence[bool] | NDArray[np.bool_]) -> Records:
    """Return the records of the jobs selected by the mask ``which`` [J], in their order."""
    chosen = np.asarray(which, np.bool_)
    return Records._make(column[chosen] for column in records)


def update_progress(records: Records, at: Sequence[int], entries: Sequence[Progressed], jobs: Jobs) -> Records:
    """Return ``records`` updated with reported progress; fields that a report leaves out stay.

    Args:
        records: records before the report.
        at: for each of ``entries``, the index of its job in ``records``.
        entries: reported progress of some jobs.
        jobs: job table at the time of the report.
    """
    new = records._replace(**{name: getattr(records, name).copy() for name in CHANGING})
    for job, one in zip(at, entries, strict=True):
        new.iteration[job] = one.iteration
        if one.loss is not None or one.metric is not None:
            new.value[job], new.rises[job] = (one.metric, True) if one.loss is None else (one.loss, False)
        if one.batch is not None:
            new.batch[job] = one.batch
        if one.noise_scale is not None:
            new.noise_scale[job] = one.noise_scale
    _pace(records, new, np.array(at, np.int64), jobs)
    return new


def _pace(before: Records, new: Records, at: Integers, jobs: Jobs) -> None:
    """Update in ``new``, in place, the iterations per second of those jobs ``at`` [K] that stayed on their nodes.
    ``before`` are the records before the report; a job must have trained and gained iterations since."""
    seconds, gained = jobs.running[at] - before.trained[at], new.iteration[at] - before.iteration[at]
    measured = (jobs.restarts[at] == before.restarts[at]) & (seconds > 0) & (gained > 0)
    rows = at[measured]
    new.pace[rows], new.paced_on[rows] = gained[measured] / seconds[measured], jobs.gpus[rows]
    new.trained[at], new.restarts[at] = jobs.running[at] + jobs.restarting[at], jobs.restarts[at]


def add_training_time(records: Records, jobs: Jobs, seconds: float) -> Records:
    """Return ``records`` after ``seconds`` on the current nodes; seconds of restarts don't count as training."""
    more = np.where(jobs.allocation.any(axis=1), np.maximum(seconds - jobs.restarting, 0.0), 0.0)
    return records._replace(uncounted=records.uncounted + more)


def reset_training_time(records: Records, which: NDArray[np.bool_], jobs: Jobs) -> Records:
    """Return ``records`` with training time counted from now for the jobs that just started, by mask ``which`` [J]."""
    trained, restarts = records.trained.copy(), records.restarts.copy()
    trained[which], restarts[which] = (jobs.running + jobs.restarting)[which], jobs.restarts[which]
    return records._replace(trained=trained, restarts=restarts)

"""What launchers have reported of the jobs that are there, beside what they hold: J jobs in the order of the table."""

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
"""Columns of whole numbers."""


class Records(NamedTuple):
    """What launchers have reported of J jobs, [J] each; NaN where it is unknown, or 0 where it counts something.

    Attributes:
        application: names; empty where none was said.
        batch: samples of a step, over all GPUs, as told last.
        data: its size.
        iterations: until the job is finished.
        iteration: that are done.
        value: loss or metric that was measured last.
        rises: whether that is a metric, the more the better.
        noise_scale: of the gradient, in samples.
        pace: iterations a second that it trained, between its last reports that saw it on the same nodes.
        paced_on: GPUs on which that was.
        trained, restarts: as in the table when its last progress was reported, or when it was started since; what was
            left of a restart counts as gone.
        batch_initial: samples of a step, as submitted; 0: not told.
        batch_maximum, gpu_batch_minimum, gpu_batch_maximum: limits of a batch that the job chooses; 0: not told.
        rate: samples a second (``experience``) of the steps that were reported last.
        done: samples that it has trained on by then.
        done_then: the same, when its iteration was last reported to have grown.
        uncounted: seconds for which it has trained since.
        predicted_at, predicted: when one of the predictions of its end was made, drawn at random, and the seconds that
            were expected; NaN: none was.
        predictions: how many were made.
        awaited_at, awaited, awaits: the same of its next start, while it waits.
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
    """Records of a cluster without jobs."""
    return of(())


def untold(count: int) -> Records:
    """Of so many jobs of which nothing was told."""
    unknown, zeros, whole = np.full(count, UNKNOWN), np.zeros(count), np.zeros(count, np.int64)
    given = {"application": np.full(count, "", object), "rises": np.zeros(count, np.bool_)}
    given |= dict.fromkeys(("iteration", "trained", "done", "done_then", "uncounted"), zeros)
    given |= dict.fromkeys(WHOLE, whole)
    return Records(**{name: given.get(name, unknown) for name in Records._fields})


def of(came: Sequence[Submitted]) -> Records:
    """Of jobs that have just come."""
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


def joined(records: Records, came: Records) -> Records:
    """More jobs at the end."""
    return Records._make(np.concatenate(pair) for pair in zip(records, came, strict=True))


def keep(records: Records, which: Sequence[bool] | NDArray[np.bool_]) -> Records:
    """Some of the jobs, in their order."""
    chosen = np.asarray(which, np.bool_)
    return Records._make(column[chosen] for column in records)


def progressed(records: Records, at: Sequence[int], told: Sequence[Progressed], jobs: Jobs) -> Records:
    """What was told of the jobs at these positions; what isn't told stays known.

    Args:
        records: before.
        at: positions of the jobs that are ``told`` of.
        told: what was.
        jobs: the table, at the moment of the report.
    """
    new = records._replace(**{name: getattr(records, name).copy() for name in CHANGING})
    for job, one in zip(at, told, strict=True):
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
    """Measure how fast jobs went on, [K] of ``at``; those that were moved meanwhile are measured from now on."""
    seconds, gained = jobs.running[at] - before.trained[at], new.iteration[at] - before.iteration[at]
    measured = (jobs.restarts[at] == before.restarts[at]) & (seconds > 0) & (gained > 0)
    rows = at[measured]
    new.pace[rows], new.paced_on[rows] = gained[measured] / seconds[measured], jobs.gpus[rows]
    new.trained[at], new.restarts[at] = jobs.running[at] + jobs.restarting[at], jobs.restarts[at]


def trained(records: Records, jobs: Jobs, seconds: float) -> Records:
    """After ``seconds`` for which jobs had the nodes that they have; while a job restarts it doesn't train."""
    more = np.where(jobs.held.any(axis=1), np.maximum(seconds - jobs.restarting, 0.0), 0.0)
    return records._replace(uncounted=records.uncounted + more)


def started(records: Records, which: NDArray[np.bool_], jobs: Jobs) -> Records:
    """Jobs that held nothing before train from now on, [J]; they have not gone on while they waited."""
    trained, restarts = records.trained.copy(), records.restarts.copy()
    trained[which], restarts[which] = (jobs.running + jobs.restarting)[which], jobs.restarts[which]
    return records._replace(trained=trained, restarts=restarts)

"""Work that jobs have done, counted in samples at their efficiency, and calibration of predictions by their errors.

A sample counts by its statistical efficiency relative to the application's first batch: so work grows evenly over a
job's run whatever its GPUs and batches, and jobs of one application need about the same amount."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np

from app.kinds.cluster import experience
from app.kinds.cluster.experience import ApplicationMeasurements, MeasuredStep
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.layout import ClusterState
from app.kinds.cluster.records import Records
from app.kinds.cluster.report import Progressed

MOST_OFF = 256
"""Most prediction errors kept."""
END = "predicted_at", "predicted", "predictions"
"""Columns of ``Records`` for predictions of a job's end: time of the prediction, seconds predicted, number of
predictions."""
START = "awaited_at", "awaited", "awaits"
"""Columns of ``Records`` for predictions of a job's start: time of the prediction, seconds predicted, and their
number."""


def done(records: Records) -> Floats:
    """Return the samples that each of J jobs has trained by now, by the rate reported last, [J]; NaN: no rate."""
    return np.asarray(records.done + records.rate * records.uncounted, np.float64)


def count_steps(after: ClusterState, before: ClusterState, steps: Mapping[int, Progressed]) -> ClusterState:
    """Return ``after`` with the reported steps counted; records of ``after`` change in place. Steps without seconds or
    a batch, or of a job without an application, are not counted. Jobs that resumed from a checkpoint lose the samples
    trained since.

    Args:
        after: state after the report.
        before: state before it.
        steps: reported progress, by position of the job in ``after``.
    """
    records, jobs, shown = after.records, after.jobs, dict(after.experience)
    was = dict(zip(before.names, before.records.iteration.tolist(), strict=True))
    for at, one in steps.items():
        now, own, batch = one.iteration, records.application[at], int(records.batch[at])
        gpus = one.gpus or int(jobs.gpus[at])
        if one.seconds is not None and gpus and batch and own:
            # Application's measurements, new if there are none, with the job's noise scale if none was known
            known = shown.get(own) or ApplicationMeasurements(int(records.batch_initial[at] or records.batch[at]))
            if np.isinf(known.noise_scale) and np.isfinite(records.noise_scale[at]):
                known = known._replace(noise_scale=float(records.noise_scale[at]))
            noise = records.noise_scale[at] if np.isfinite(records.noise_scale[at]) else known.noise_scale
            records.rate[at] = experience.rate(known.initial, float(batch), one.seconds, noise)
            records.done[at] += records.rate[at] * records.uncounted[at]
            records.uncounted[at] = 0.0
            shown[own] = known if one.beside else experience.add_step(known, _step(one, records, jobs, at, known))
        last = was.get(after.names[at], 0.0)
        if now < last:  # back at a checkpoint
            records.done[at] = records.done_then[at] * now / last
        if now != last:
            records.done_then[at] = records.done[at]
    return after._replace(experience=experience.limit_experience(shown, records.application.tolist()))


def _step(one: Progressed, records: Records, jobs: Jobs, at: int, known: ApplicationMeasurements) -> MeasuredStep:
    """Return the reported step of the job at position ``at``; with accumulated gradients, a step of a single pass."""
    gpus, seconds = one.gpus or int(jobs.gpus[at]), one.seconds or 0.0
    row = jobs.allocation[at]
    nodes = one.nodes or (int((row > 0).sum()) if row.sum() == gpus else -(-gpus // max(int(row.max()), 1)))
    local, most = -(-int(records.batch[at]) // gpus), int(records.gpu_batch_maximum[at])
    parts = max(-(-local // most), 1) if most else 1
    step = MeasuredStep(nodes, gpus, -(-local // parts), seconds, seconds, 1)
    if one.computing is not None:
        computing = min(one.computing, seconds) / parts
    elif gpus == 1 or not known.places:
        computing = seconds / parts
    else:
        computing = min(experience.times(known, step)[0], seconds / parts)
    return step._replace(seconds=seconds - (parts - 1) * computing, computing=computing)


def record_predictions(
    state: ClusterState, at: Integers, seconds: Floats, of: tuple[str, str, str] = END
) -> ClusterState:
    """Return ``state`` with predicted ``seconds`` [K] until the ends (or starts) of K jobs at positions ``at`` [K]. One
    prediction per job is kept, by reservoir sampling: the n-th replaces it with probability 1/n, by a hash of the job's
    name and n. ``of``: columns of ``Records``, ``END`` or ``START``."""
    records = state.records
    columns = {name: getattr(records, name).copy() for name in of}
    moment, predicted, number = (columns[name] for name in of)
    for job, expected in zip(at.tolist(), seconds.tolist(), strict=True):
        number[job] += 1
        count = int(number[job])
        if crc32(f"{state.names[job]} {count}".encode()) % count == 0:
            moment[job], predicted[job] = state.now, expected
    return state._replace(records=records._replace(**columns))


def prediction_errors(
    state: ClusterState, over: Sequence[int], now: float, of: tuple[str, str, str] = END
) -> tuple[float, ...]:
    """Return the last ``MOST_OFF`` prediction errors, with those of the jobs at positions ``over``, which end or start
    now. An error is the natural logarithm of actual over predicted seconds. ``now``: seconds since the run's start;
    ``of``: ``END`` or ``START``."""
    moments = list(state.off if of == END else state.off_starts)
    moment, predicted = (getattr(state.records, name) for name in of[:2])
    for at in over:
        took = max(now - float(moment[at]), 1.0)
        if np.isfinite(took) and predicted[at] > 0:
            moments.append(float(np.log(took / predicted[at])))
    return tuple(moments[-MOST_OFF:])


def interval(errors: Sequence[float]) -> tuple[float, float] | None:
    """Return factors on predicted seconds for the bounds of a 90 % interval; None with fewer than 19 errors. Split
    conformal prediction (Vovk et al., 2005): valid if future jobs resemble the finished ones. ``errors`` are natural
    logarithms of actual over predicted seconds."""
    ranked, count = sorted(errors), len(errors)
    low, high = math.floor(0.05 * (count + 1)), math.ceil(0.95 * (count + 1))
    if low < 1 or high > count:
        return None
    return math.exp(ranked[low - 1]), math.exp(ranked[high - 1])


def add_finished_jobs(state: ClusterState, finished: Sequence[int]) -> experience.Experience:
    """Return the experience of ``state`` with the samples needed by the jobs that finished, at positions ``finished``.
    Jobs that were never measured are ignored."""
    shown, records, samples = dict(state.experience), state.records, done(state.records)
    for at in finished:
        known = shown.get(records.application[at])
        if known is not None and np.isfinite(samples[at]):
            shown[records.application[at]] = experience.add_finished_job(
                known, float(samples[at]), float(np.nan_to_num(records.data[at]))
            )
    return shown

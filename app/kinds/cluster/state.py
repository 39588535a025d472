"""Count what jobs train, in samples at their efficiency, by the steps that they report; and keep what they have shown.

The unit is that of ``experience``: it grows evenly from the beginning of a job to its end, whatever GPUs and batches it
has meanwhile, and jobs of an application need about the same of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np

from app.kinds.cluster import experience
from app.kinds.cluster.experience import Measured, Shown
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.layout import ClusterState
from app.kinds.cluster.records import Records
from app.kinds.cluster.report import Progressed

MOST_OFF = 256
"""Predictions that are compared with what came."""
END = "predicted_at", "predicted", "predictions"
START = "awaited_at", "awaited", "awaits"
"""Columns of ``Records`` with predictions of ends, and of starts."""


def done(records: Records) -> Floats:
    """Samples that jobs have trained on by now, at the rate that they reported last; NaN: none was reported, [J]."""
    return np.asarray(records.done + records.rate * records.uncounted, np.float64)


def measured(after: ClusterState, before: ClusterState, steps: Mapping[int, Progressed]) -> ClusterState:
    """The state with the steps counted that a report tells of, by position of their jobs.

    Steps without a batch, or of a job that names no application, tell nothing of others, and aren't counted.
    """
    told, jobs, shown = after.records, after.jobs, dict(after.experience)
    was = dict(zip(before.names, before.records.iteration.tolist(), strict=True))
    for at, one in steps.items():
        now, own, gpus, batch = one.iteration, told.application[at], one.gpus or int(jobs.gpus[at]), int(told.batch[at])
        if one.seconds is not None and gpus and batch and own:
            known = _known(shown, own, told, at)
            noise = told.noise_scale[at] if np.isfinite(told.noise_scale[at]) else known.noise_scale
            told.rate[at] = experience.rate(known.initial, float(batch), one.seconds, noise)
            told.done[at] += told.rate[at] * told.uncounted[at]
            told.uncounted[at] = 0.0
            shown[own] = known if one.beside else experience.measured(known, _step(one, told, jobs, at, known))
        last = was.get(after.names[at], 0.0)
        if now < last:  # back at a checkpoint
            told.done[at] = told.done_then[at] * now / last
        if now != last:
            told.done_then[at] = told.done[at]
    return after._replace(experience=experience.bounded(shown, told.application.tolist()))


def _known(shown: Mapping[str, Shown], own: str, told: Records, at: int) -> Shown:
    known = shown.get(own) or Shown(int(told.batch_initial[at] or told.batch[at]))
    if np.isinf(known.noise_scale) and np.isfinite(told.noise_scale[at]):
        known = known._replace(noise_scale=float(told.noise_scale[at]))
    return known


def _step(one: Progressed, told: Records, jobs: Jobs, at: int, known: Shown) -> Measured:
    """The part of a step whose gradients are accumulated at once."""
    gpus, seconds = one.gpus or int(jobs.gpus[at]), one.seconds or 0.0
    held = jobs.held[at]
    nodes = one.nodes or (int((held > 0).sum()) if held.sum() == gpus else -(-gpus // max(int(held.max()), 1)))
    local, most = -(-int(told.batch[at]) // gpus), int(told.gpu_batch_maximum[at])
    parts = max(-(-local // most), 1) if most else 1
    step = Measured(nodes, gpus, -(-local // parts), seconds, seconds, 1)
    if one.computing is not None:
        computing = min(one.computing, seconds) / parts
    elif gpus == 1 or not known.places:
        computing = seconds / parts
    else:
        computing = min(experience.times(known, step)[0], seconds / parts)
    return step._replace(seconds=seconds - (parts - 1) * computing, computing=computing)


def predicted(state: ClusterState, at: Integers, seconds: Floats, of: tuple[str, str, str] = END) -> ClusterState:
    """The state with predictions of the ends or starts of jobs [K], of which one a job is compared with what comes.

    Each of a job's is as likely to be that one: the n-th replaces the one before in one case of n.
    """
    told = state.records
    columns = {name: getattr(told, name).copy() for name in of}
    moment, said, number = (columns[name] for name in of)
    for job, expected in zip(at.tolist(), seconds.tolist(), strict=True):
        number[job] += 1
        count = int(number[job])
        if crc32(f"{state.names[job]} {count}".encode()) % count == 0:
            moment[job], said[job] = state.now, expected
    return state._replace(records=told._replace(**columns))


def off(state: ClusterState, over: Sequence[int], now: float, of: tuple[str, str, str] = END) -> tuple[float, ...]:
    """How far predictions were off, with those of the jobs at these positions that have finished, or start."""
    found = list(state.off if of == END else state.off_starts)
    moment, said = (getattr(state.records, name) for name in of[:2])
    for at in over:
        took = max(now - float(moment[at]), 1.0)
        if np.isfinite(took) and said[at] > 0:
            found.append(float(np.log(took / said[at])))
    return tuple(found[-MOST_OFF:])


def interval(errors: Sequence[float]) -> tuple[float, float] | None:
    """By what to multiply the seconds that are expected, for the bounds that nine of ten jobs end within.

    Conformal (Vovk et al., 2005): as far as jobs that come are like those that have finished. None: too few have.

    Args:
        errors: logarithms of what jobs took over what was expected.
    """
    ranked, count = sorted(errors), len(errors)
    low, high = math.floor(0.05 * (count + 1)), math.ceil(0.95 * (count + 1))
    if low < 1 or high > count:
        return None
    return math.exp(ranked[low - 1]), math.exp(ranked[high - 1])


def ended(state: ClusterState, finished: Sequence[int]) -> experience.Experience:
    """What a state knows after the jobs at these positions have finished; of a job that was never measured nothing."""
    shown, told, samples = dict(state.experience), state.records, done(state.records)
    for at in finished:
        known = shown.get(told.application[at])
        if known is not None and np.isfinite(samples[at]):
            shown[told.application[at]] = experience.ended(
                known, float(samples[at]), float(np.nan_to_num(told.data[at]))
            )
    return shown

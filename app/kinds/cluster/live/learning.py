"""How the jobs of a live cluster learn: their curves, thinned, and what convergence has made of them; J jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.allocation import convergence
from app.kinds.cluster.allocation.convergence import UNLIMITED, Converging, Progress, Tolerance, judged
from app.kinds.cluster.jobs import NEVER, Floats, Integers, Jobs
from app.kinds.cluster.learning_curves import POINTS, LearningCurves, Seen, ahead
from app.kinds.cluster.live.records import Records


class Learning(NamedTuple):
    """See the module.

    Attributes:
        iteration, value: points of curves in order, values rising, NaN after the last, [J, 24] each.
        converging: what convergence has made of the jobs.
    """

    iteration: Floats
    value: Floats
    converging: Converging


def none(jobs: int = 0) -> Learning:
    """Jobs that have shown nothing."""
    return Learning(np.full((jobs, POINTS), np.nan), np.full((jobs, POINTS), np.nan), convergence.none(jobs))


def keep(learning: Learning, which: Sequence[bool] | NDArray[np.bool_]) -> Learning:
    """Some of the jobs, in their order."""
    chosen = np.asarray(which, np.bool_)
    kept = convergence.keep(learning.converging, chosen)
    return Learning(learning.iteration[chosen], learning.value[chosen], kept)


def join(learning: Learning, jobs: int) -> Learning:
    """More jobs at the end."""
    new = none(jobs)
    iteration = np.concatenate([learning.iteration, new.iteration])
    value = np.concatenate([learning.value, new.value])
    return Learning(iteration, value, convergence.join(learning.converging, jobs))


def told(learning: Learning, at: Sequence[int], records: Records) -> Learning:
    """What the jobs at these positions have shown last; who went back to a checkpoint shows it anew."""
    iteration, value = learning.iteration.copy(), learning.value.copy()
    for job in at:
        now, shown = float(records.iteration[job]), float(records.value[job])
        if np.isnan(shown):
            continue
        shown = shown if records.rises[job] else -shown
        own = np.flatnonzero(iteration[job] < now)
        own = own[::2] if len(own) == POINTS else own
        points = [[*column[job, own].tolist(), last] for column, last in ((iteration, now), (value, shown))]
        iteration[job], value[job] = np.nan, np.nan
        iteration[job, : len(own) + 1], value[job, : len(own) + 1] = points
    return learning._replace(iteration=iteration, value=value)


class Expecting(NamedTuple):
    """What is known of how jobs go on.

    Attributes:
        curves: of the domain model.
        classes: of the jobs among them, −1: none, [J].
        until: iteration at which each is finished, NaN: not known, [J].
        sizes: see ``Progress``.
    """

    curves: LearningCurves
    classes: Integers
    until: Floats
    sizes: Integers


def converged(learning: Learning, expecting: Expecting, jobs: Jobs, now: float, tolerance: Tolerance) -> Learning:
    """Ceilings by what is left to gain of jobs that hold GPUs and whose end is known."""
    at = np.flatnonzero(np.isfinite(expecting.until) & np.isfinite(learning.value[:, 0]) & (jobs.gpus > 0))
    if not at.size:
        return learning
    seen = Seen(learning.iteration[at], learning.value[at])
    left = ahead(expecting.curves, expecting.classes[at], seen, expecting.until[at])
    own = Converging._make(column[at] for column in learning.converging)
    after = judged(own, Progress(*left, jobs.gpus[at], jobs.minimum[at], expecting.sizes), now, tolerance)
    columns = [column.copy() for column in learning.converging]
    for column, values in zip(columns, after, strict=True):
        column[at] = values
    return learning._replace(converging=Converging._make(columns))


def lowered(before: Learning, after: Learning) -> dict[int, int]:
    """GPUs at most of the jobs that convergence has limited anew, by position."""
    old, new = before.converging.ceiling, after.converging.ceiling
    return {at: int(new[at]) for at in np.flatnonzero((old != new) & (new != UNLIMITED)).tolist()}


def notes(before: Learning, after: Learning) -> dict[int, str]:
    """Words on the jobs that convergence has done something to, by position."""
    old, new = before.converging.ceiling, after.converging.ceiling
    free = np.flatnonzero((old != new) & (new == UNLIMITED)).tolist()
    words = {at: f"little is left to gain: {most:,} GPUs at most" for at, most in lowered(before, after).items()}
    return words | dict.fromkeys(free, "it gains again: no limit any more")


def pack(learning: Learning) -> list[Any] | None:
    """As plain lists, for JSON: points of each job as they are there, no limit and never as null; null: no points."""
    there = np.isfinite(learning.value)
    if not there.any():
        return None
    points = [[column[job, own].tolist() for column in learning[:2]] for job, own in enumerate(there)]
    ceiling, since, expected, restored = learning.converging
    limits = [None if value == UNLIMITED else value for value in ceiling.tolist()]
    others = [[value if np.isfinite(value) else None for value in column.tolist()] for column in (since, expected)]
    return [points, limits, *others, restored.tolist()]


def unpack(stored: list[Any] | None, jobs: int) -> Learning:
    """What ``pack`` gave, through JSON."""
    if stored is None:
        return none(jobs)
    points, ceiling, since, expected, restored = stored
    made = none(len(points))
    for job, (iteration, value) in enumerate(points):
        made.iteration[job, : len(iteration)], made.value[job, : len(value)] = iteration, value
    return made._replace(
        converging=Converging(
            np.array([UNLIMITED if value is None else value for value in ceiling], np.int64),
            np.array([-NEVER if value is None else value for value in since], np.float64),
            np.array([np.nan if value is None else value for value in expected], np.float64),
            np.array(restored, np.bool_),
        )
    )

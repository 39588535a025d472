"""Jobs that have little left to gain give GPUs back: halved window by window down to a floor, restored if they revive.

A job turns round once at most: what was restored is never shrunk again, so nothing flaps. The state is J columns that
the service keeps with a run; what is left to gain comes from learning curves (``app.kinds.cluster.learning_curves``),
and how much of it is too little is told in parts of what a job has reached.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.allocation.situation import Rule, Situation, Wanted
from app.kinds.cluster.jobs import NEVER, Floats, Integers

UNLIMITED = np.iinfo(np.int64).max
REVIVED = 2.0


class Converging(NamedTuple):
    """J jobs.

    Attributes:
        ceiling: GPUs that each may have, ``UNLIMITED`` as long as it isn't shrunk, [J].
        since: when that was last changed, −``NEVER`` before, [J].
        expected: level up to which a job that is shrunk was expected to come at most, when it was first shrunk, [J].
        restored: whether it was shrunk and restored, [J].
    """

    ceiling: Integers
    since: Floats
    expected: Floats
    restored: NDArray[np.bool_]


class Progress(NamedTuple):
    """How J jobs do, [J] each, in the unit of their rising values; NaN where nothing can be said.

    Attributes:
        level: where they are.
        gain: what is expected to be gained until their end.
        half: of its 90 % interval; NaN where that isn't known, and no job is shrunk.
        gpus: that they have.
        floor: GPUs below which they are not shrunk.
        sizes: numbers of GPUs to which they are, ascending from 0, [R]; any, where there are none.
    """

    level: Floats
    gain: Floats
    half: Floats
    gpus: Integers
    floor: Integers
    sizes: Integers = np.zeros(0, np.int64)


class Tolerance(NamedTuple):
    """When a job has converged.

    Attributes:
        gain: part of the level below which what is left to gain is small; what a job loses is on average no more, as
            long as what it is expected to gain is right on average.
        doubt: half intervals that are added to what is expected to be left.
        window_seconds: between two halvings.
    """

    gain: float = 0.01
    doubt: float = 0.5
    window_seconds: float = 3600.0


def none(jobs: int) -> Converging:
    """Jobs that just came."""
    untold = np.full(jobs, np.nan)
    return Converging(np.full(jobs, UNLIMITED), np.full(jobs, -NEVER), untold, np.zeros(jobs, np.bool_))


def keep(converging: Converging, which: NDArray[np.bool_]) -> Converging:
    """Some of the jobs, in their order."""
    return Converging._make(column[which] for column in converging)


def join(converging: Converging, jobs: int) -> Converging:
    """More jobs at the end."""
    return Converging._make(np.concatenate(pair) for pair in zip(converging, none(jobs), strict=True))


def judged(converging: Converging, progress: Progress, now: float | Floats, tolerance: Tolerance) -> Converging:
    """Ceilings after what is known now; all arrays may have any other shape, and ``now`` one that goes with it.

    A job is halved, or has less where half doesn't fit nodes, where what is left to gain, with its doubt, is below the
    tolerance, and a window has passed since it was halved last. It is restored for good where more is left than
    ``REVIVED`` tolerances, or where it has come further than was expected at most when it was first shrunk.
    """
    scale = np.maximum(np.abs(progress.level), 1e-12)
    with np.errstate(invalid="ignore"):
        left = progress.gain + tolerance.doubt * progress.half
        small = left <= tolerance.gain * scale
        further = progress.level > converging.expected + tolerance.gain * scale
        large = progress.gain > REVIVED * tolerance.gain * scale
    shrunk = converging.ceiling < UNLIMITED
    revived = shrunk & (further | large)
    lower = np.maximum(_largest(progress.gpus // 2, progress.sizes), progress.floor)
    due = now - converging.since >= tolerance.window_seconds
    halved = small & due & ~converging.restored & ~revived & (lower < np.minimum(progress.gpus, converging.ceiling))
    first = halved & ~shrunk
    return Converging(
        ceiling=np.where(revived, UNLIMITED, np.where(halved, lower, converging.ceiling)),
        since=np.where(halved | revived, now, converging.since),
        expected=np.where(first, progress.level + progress.gain + progress.half, converging.expected),
        restored=converging.restored | revived,
    )


def _largest(gpus: Integers, sizes: Integers) -> Integers:
    """The largest of ``sizes`` that are no more than ``gpus``, of any shape."""
    return sizes[np.searchsorted(sizes, gpus, side="right") - 1] if len(sizes) else gpus


def limited(rule: Rule, converging: Converging) -> Rule:
    """A rule in whose eyes no job asks for more than its ceiling; what that frees is there for the others."""

    def within(situation: Situation) -> Wanted:
        jobs = situation.jobs
        ceiling = np.maximum(converging.ceiling, jobs.minimum)
        changed = {name: np.minimum(getattr(jobs, name), ceiling) for name in ("asked", "maximum")}
        return rule(situation._replace(jobs=jobs._replace(**changed)))

    return within

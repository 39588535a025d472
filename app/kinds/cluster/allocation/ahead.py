"""What becomes of a situation's jobs until all have ended, for many first allocations at once; nobody else comes.

C of them, J jobs, K numbers of GPUs for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.allocation.completion import STEADY, TINY, Constants
from app.kinds.cluster.allocation.priority import LATE
from app.kinds.cluster.jobs import Floats, Integers

Booleans = NDArray[np.bool_]
UNENDING = 1e9
"""Seconds of jobs that nothing can run."""
ROUNDED = 1e-6


class Ahead(NamedTuple):
    """What is played.

    Attributes:
        sizes: numbers of GPUs, not descending, from 0, [J, K].
        seconds: until each job is finished on them; infinite where it can't have so many, [J, K].
        worth: of a second of each one's completion time, [J].
        level: of urgency; it stays as it is, [J].
        gpus, restarting: GPUs that each has, and seconds until it trains on them, [J].
        total: GPUs that there are.
        restart: seconds that a change costs.
        interval: seconds after which GPUs are given anew.
        constants: of the rule that goes on.
    """

    sizes: Integers
    seconds: Floats
    worth: Floats
    level: Integers
    gpus: Integers
    restarting: Floats
    total: int
    restart: float
    interval: float
    constants: Constants


class _Shares(NamedTuple):
    """By the number of jobs that are left, on an equal share: what speeds count over it, and seconds on it.

    [J + 1, J, K] and [J + 1, J].
    """

    speeds: Floats
    seconds: Floats


def costs(ahead: Ahead, first: Integers) -> Floats:
    """Weighted sums of the seconds until jobs have ended, [C], where they have ``first`` [C, J] until one has."""
    gpus, left, cost, shares = first, np.ones(first.shape), np.zeros(len(first)), _shares(ahead)
    there, lost = np.ones(first.shape, np.bool_), np.where(first == ahead.gpus, ahead.restarting, ahead.restart)
    for _ in range(first.shape[1]):
        whole = _whole(ahead, gpus)
        until = np.where(there & (gpus > 0), lost + left * whole, np.inf)
        end = until.min(axis=1)
        passed = np.where(np.isfinite(end), np.ceil(end / ahead.interval - ROUNDED) * ahead.interval, UNENDING)[:, None]
        cost += (ahead.worth * there * np.minimum(until, passed)).sum(axis=1)
        left = np.maximum(left - np.where(gpus > 0, np.maximum(passed - lost, 0.0), 0.0) / whole, 0.0)
        there = there & (until > passed + ROUNDED) & np.isfinite(end)[:, None]
        if not there.any():
            break
        lost, before = np.maximum(lost - passed, 0.0), gpus
        gpus = _given(ahead, shares, left, there, before)
        lost = np.where(gpus == before, lost, ahead.restart)
    return cost


def _whole(ahead: Ahead, gpus: Integers) -> Floats:
    """Seconds of all that is left of each job on so many GPUs, [C, J]; of who has none anything."""
    at = np.minimum((ahead.sizes < gpus[..., None]).sum(axis=2), ahead.sizes.shape[1] - 1)
    return np.where(gpus > 0, ahead.seconds[np.arange(gpus.shape[1]), at], 1.0)


def _shares(ahead: Ahead) -> _Shares:
    fair = np.maximum(ahead.total // np.maximum(np.arange(len(ahead.worth) + 1), 1), 1)[:, None, None]
    share = np.where(ahead.sizes <= fair, ahead.seconds, np.inf).min(axis=2)
    share = np.where(np.isfinite(share), share, ahead.seconds.min(axis=1))
    share = np.where(np.isfinite(share), share, 0.0)
    return _Shares((share[:, :, None] / ahead.seconds) ** ahead.constants.damping, share)


def _given(ahead: Ahead, shares: _Shares, left: Floats, there: Booleans, has: Integers) -> Integers:
    """GPUs of each job as ``completing`` gives them, [C, J]; ``left``: part that is left of each."""
    count = there.sum(axis=1)
    seconds = left * shares.seconds[count]
    lost = ahead.restart / np.clip(seconds, max(ahead.restart, TINY), ahead.constants.horizon_seconds)
    runs, stays = (has > 0)[..., None], ahead.sizes == has[..., None]
    moved = np.where(runs, np.maximum(1.0 - lost, 0.0)[..., None], 1.0)
    kept = np.where(stays & runs, (1.0 + lost)[..., None], moved)
    ranked = np.where(there, seconds * (1 + STEADY) ** -np.log2(1.0 + has), -1.0)
    value = (_places(ranked, ahead.constants) * ahead.worth * there)[..., None] * shares.speeds[count] * kept
    return _marginal(ahead, value, _begun(ahead, value, there))


def _places(seconds: Floats, constants: Constants) -> Floats:
    """See ``completion.places``, of all C at once, [C, J]."""
    place = np.empty(seconds.shape)
    numbers = np.broadcast_to(np.arange(1.0, seconds.shape[1] + 1), seconds.shape)
    np.put_along_axis(place, np.argsort(-seconds, axis=1, kind="stable"), numbers, axis=1)
    power = 1 / (1 - constants.scaling)
    return np.asarray((place**power - (place - 1) ** power) ** (1 / power), np.float64)


def _begun(ahead: Ahead, value: Floats, there: Booleans) -> Integers:
    """See ``completion``: 1 who begins with its fewest GPUs, 0 with none, −1 not at all, [C, J]."""
    last = np.where(there, ahead.level, LATE).max(axis=1)[:, None]
    early = there & ((ahead.level < last) | (ahead.level == LATE)) & (ahead.sizes[:, 1] <= ahead.total)
    if not early.any():
        return np.where(there, 0, -1)
    order = np.lexsort((-value[..., 1], np.broadcast_to(ahead.level, there.shape)), axis=1)
    used = np.take_along_axis(np.where(early, ahead.sizes[:, 1], 0), order, axis=1).cumsum(axis=1)
    fits = np.empty(there.shape, np.bool_)
    np.put_along_axis(fits, order, used <= ahead.total, axis=1)
    return np.where(fits & there, early.astype(np.int64), -1)


def _marginal(ahead: Ahead, value: Floats, begin: Integers) -> Integers:
    """See ``allocation.marginal``: GPUs of each job, of all C at once, [C, J]."""
    at, jobs = begin.copy(), np.arange(begin.shape[1])
    while True:
        position = np.maximum(at, 0)
        has = ahead.sizes[jobs, position]
        more = ahead.sizes - has[..., None]
        fits = (more > 0) & (more <= (ahead.total - has.sum(axis=1))[:, None, None]) & (at >= 0)[..., None]
        gain = value - np.take_along_axis(value, position[..., None], axis=2)
        slope = np.where(fits, gain / np.maximum(more, 1), 0.0).reshape(len(at), -1)
        best = slope.argmax(axis=1)
        rows = np.flatnonzero(slope[np.arange(len(at)), best] > 0)
        if not rows.size:
            return np.asarray(has, np.int64)
        job, size = np.divmod(best[rows], value.shape[2])
        at[rows, job] = size

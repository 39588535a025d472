"""What a policy sees of the tasks that wait: features of each candidate, computed once for snapshot and for training.

``survey`` looks at the queue as a whole, ``describe`` at its members: with arrays [Q] in the service, and with the
numbers of one task in compiled simulators, whose own ``survey`` in one pass
a test holds equal to this one. All features are of order 1, and free of units: a scorer that was trained on
one machine may be asked on another. They hold what MARS (min(wait), request, processors, can start now) and RLScheduler
(Zhang et al. 2020) show, and the reservation that EASY would make: whether a start keeps the most urgent of those that
do not fit from its earliest start.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling.dispatch import EASY, NONE, Indices
from app.kinds.workflow.trace import Seconds

FEATURES = (
    "urgency",  # the base strategy's score: the advice that learned scores are added to
    "length",  # log of the requested time
    "size",  # log of processors, over that of the machine's
    "share",  # of the machine's processors
    "slowdown",  # w / (w + r): 0 on arrival, towards 1 as the wait outgrows the requested time
    "waited_hour",
    "waited_day",
    "fits",
    "delay_relative",  # of its earliest start, d / (d + r)
    "delay_hour",
    "free",  # share of the machine that is free
    "queue",  # q / (q + 20)
    "longer",  # than the others that wait, in logs
    "larger",
    "late_hour",  # by how much a start now would delay the reserved task
    "harms",  # whether it would
    "until_next_end",
    "usual",  # log of what the user's last two tasks took (Tsafrir et al. 2007)
    "overestimate",  # log of usual over requested
    "backfills",  # whether the mechanism lets others overtake
    "easy",
)
WIDTH = len(FEATURES)
Features = tuple[NDArray[np.floating[Any]], ...]
HOUR, DAY, SHORTEST = 3600.0, 86400.0, 10.0
LOG_SCALE, QUEUE_SCALE = 12.0, 20.0
PATIENCE = 1.5  # worth of an unbounded wait against the log of the requested time
FAR = 1e9  # seconds; where nothing is reserved
VISIBLE = 128  # candidates at most: the oldest, and the most urgent of the others
OLDEST = 32
LONGEST_DELAY = 43_200.0  # seconds of waiting after which no inspector puts a task off (72 times 10 minutes there)

STATE = (
    "bias",
    "free",
    "queue",
    "work",
    "length",
    "size",
    "longest_wait",
    "blocked",
    "gap",
    "spread",
    "short",
    "small",
    "backfills",
    "easy",
)
STATE_WIDTH = len(STATE)


class Survey(NamedTuple):
    """A queue of Q candidates on a machine.

    Attributes:
        urgency: the base strategy's score, the highest first, [Q].
        request: requested time, at least 10 seconds, [Q].
        need: processors, [Q].
        length: log of ``request``, [Q].
        size: log of processors over that of the machine's, [Q].
        usual: log of what the user's last two tasks took, at most ``length``, [Q].
        waited: seconds, [Q].
        delay: seconds to the earliest start as far as running tasks go, [Q].
        free: processors.
        processors: of the machine.
        gap: seconds to the earliest start of the reserved task: the most urgent of those that do not fit.
        spare: processors that it leaves then.
        next_end: seconds until the next running task is expected to end.
        mean_length: of ``length``.
        mean_size: of ``size``.
        backfills: 1 where others may overtake, else 0.
        easy: 1 under EASY, else 0.
    """

    urgency: Seconds
    request: Seconds
    need: Seconds
    length: Seconds
    size: Seconds
    usual: Seconds
    waited: Seconds
    delay: Seconds
    free: float
    processors: float
    gap: float
    spare: float
    next_end: float
    mean_length: float
    mean_size: float
    backfills: float
    easy: float


def visible(expected: Seconds, processors: Indices) -> Indices:
    """The candidates among Q waiting tasks in order of submission: all, or the oldest 32 and the 96 of least r·√n."""
    if len(expected) <= VISIBLE:
        return np.arange(len(expected))
    work = np.maximum(expected, SHORTEST) * np.sqrt(processors)
    work[:OLDEST] = 0.0
    kept = np.zeros(len(expected), np.bool_)
    kept[np.argsort(work, kind="mergesort")[:VISIBLE]] = True
    return np.flatnonzero(kept)


class Waiting(NamedTuple):
    """Q candidates.

    Attributes:
        waited: seconds, [Q].
        expected: seconds that a task is planned with, [Q].
        processors: [Q].
        usual: what the user's last two tasks took on average, seconds; not a number where unknown, [Q].
    """

    waited: Seconds
    expected: Seconds
    processors: Indices
    usual: Seconds


def survey(
    mechanism: int, now: float, waiting: Waiting, machine: int, free: int, ends: Seconds, held: Indices
) -> Survey:
    """Look at the candidates at ``now``.

    Args:
        mechanism: index into ``MECHANISMS``.
        now: seconds.
        waiting: at least one task.
        machine: its processors.
        free: processors of it that are free.
        ends: when each running task is expected to end, ascending, seconds, [R].
        held: processors of each of those, [R].
    """
    count, need, waited = len(ends), waiting.processors, waiting.waited
    request = np.maximum(waiting.expected, SHORTEST)
    length = np.log(request)
    wide = need.astype(np.float64)
    log_wide = np.log(wide)
    size = log_wide / np.log(max(machine, 2))
    known = np.where(np.isnan(waiting.usual), request, np.maximum(waiting.usual, SHORTEST))
    usual = np.log(np.minimum(known, request))
    urgency = PATIENCE * waited / (waited + request) - length - 0.5 * log_wide
    free_then = np.empty(count + 1, np.int64)
    when = np.empty(count + 1)
    free_then[0], when[0] = free, now
    free_then[1:] = free + np.cumsum(held)
    when[1:] = np.maximum(ends, now)
    at = np.minimum(np.searchsorted(free_then, need), count)
    delay = when[at] - now
    gap, spare = FAR, float(machine)
    head = int(np.argmax(np.where(need <= free, -np.inf, urgency)))
    if need[head] > free:
        gap, spare = delay[head], float(free_then[at[head]] - need[head])
    next_end = when[1] - now if count > 0 else 0.0
    return Survey(
        urgency,
        request,
        wide,
        length,
        size,
        usual,
        waited,
        delay,
        float(free),
        float(machine),
        gap,
        spare,
        next_end,
        length.mean(),
        size.mean(),
        0.0 if mechanism == NONE else 1.0,
        1.0 if mechanism == EASY else 0.0,
    )


def describe(seen: Survey, urgency: Seconds, request: Seconds, need: Seconds, more: tuple[Seconds, ...]) -> Features:
    """The features of candidates: of arrays [Q], or of one task's numbers, as ``Survey`` has them.

    ``more`` are length, size, usual, waited and delay.
    """
    length, size, usual, waited, delay = more
    fits = (need < seen.free + 0.5) * 1.0
    late = np.maximum(request - seen.gap, 0.0) * fits * (need > seen.spare + 0.5)
    same = 0.0 * length
    return (
        urgency,
        length / LOG_SCALE,
        size,
        need / seen.processors,
        waited / (waited + request),
        waited / (waited + HOUR),
        waited / (waited + DAY),
        fits,
        delay / (delay + request),
        delay / (delay + HOUR),
        same + seen.free / seen.processors,
        same + len(seen.length) / (len(seen.length) + QUEUE_SCALE),
        (length - seen.mean_length) / LOG_SCALE,
        size - seen.mean_size,
        late / (late + HOUR),
        (late > 0.0) * 1.0,
        seen.next_end / (seen.next_end + request),
        usual / LOG_SCALE,
        (usual - length) / LOG_SCALE,
        same + seen.backfills,
        same + seen.easy,
    )


def features(seen: Survey) -> NDArray[np.float64]:
    """Features of all candidates, [Q, F]."""
    more = (seen.length, seen.size, seen.usual, seen.waited, seen.delay)
    return np.stack(describe(seen, seen.urgency, seen.request, seen.need, more), axis=1)


def state(seen: Survey) -> Seconds:
    """What a gate sees: the queue and the machine as a whole, [``STATE_WIDTH``]."""
    queued = len(seen.length)
    work = np.log(1.0 + (seen.request * seen.need).sum() / seen.processors)
    longest = seen.waited.max()
    found = np.empty(14)
    found[0], found[1], found[2] = 1.0, seen.free / seen.processors, queued / (queued + QUEUE_SCALE)
    found[3], found[4], found[5] = work / LOG_SCALE, seen.mean_length / LOG_SCALE, seen.mean_size
    found[6] = longest / (longest + DAY)
    found[7] = 1.0 if seen.gap < FAR else 0.0
    found[8] = seen.gap / (seen.gap + HOUR) if seen.gap < FAR else 0.0
    found[9] = seen.length.std() / LOG_SCALE * 4.0
    found[10] = (seen.length < np.log(600.0)).mean()
    found[11] = (seen.size < 0.25).mean()
    found[12], found[13] = seen.backfills, seen.easy
    return found

"""Batch jobs on one pool of processors, event by event.

Submissions and ends are taken one at a time, and a decision follows each. Of events at the same second, submissions
come first, in the order of the trace, then ends, in the order of the starts: so do pyss (in predictsim; Gaussier et al.
2015) and RLScheduler's simulator (Zhang et al. 2020), whose schedules are reproduced. As in pyss, EASY counts the
processors of a job that ends as expected as free from the first event of that second on.

``simulate`` plays rules to the end. A learner plays step by step, each with functions that compile:

    advance(play, mechanism, fill)            # goes on until a pick is due; False at the end
    choose(play, mechanism, fill, task)       # starts it, or makes it the head that all wait for; −1 waits an event
"""

from typing import NamedTuple

import numpy as np

from app.kinds.workflow import dispatch, rules
from app.kinds.workflow.dispatch import EASY, UNLIMITED, Head, Indices, Pool, Tasks, decide, empty_pool
from app.kinds.workflow.rules import FCFS, scores
from app.kinds.workflow.spec import Limits
from app.kinds.workflow.trace import Seconds, Trace
from workers.simulators.workflow.compiling import compilable, kernel

compilable(dispatch.empty_pool, dispatch.allowed, dispatch.start, dispatch.earliest, dispatch.in_line)
compilable(dispatch.overtake, dispatch.decide, rules.formula, rules.scores)

NOW, UNTIL = range(2)
NO_LIMITS = Limits()
QUEUED, ARRIVING, ALIVE, HEAD, SPARE, DECISIONS, PAUSED = range(7)


class Play(NamedTuple):
    """L jobs on their way through a pool on which at most R run; changed in place.

    For B plays in lock-step keep each array with a leading dimension B, and build a ``Play`` of rows: all functions
    below take one play.

    Attributes:
        tasks: of the sequence, [L] each.
        pool: the machine.
        runtime: seconds, [L].
        begun: when each task started, seconds; not a number before, [L].
        queue: tasks that wait, in order of submission, in the first ``counts[QUEUED]`` of [L].
        chosen: scratch, [L].
        finish: when each running task ends, descending, in the first ``counts[ALIVE]`` of [R].
        running: each of those, −1 for one that is off the machine already, [R].
        clock: now, and the head's earliest start, seconds, [2].
        counts: waiting, next to be submitted, running, head (−1: none), processors spare at the head's start,
            decisions, and whether the next pick is put off to the next event, [7].
    """

    tasks: Tasks
    pool: Pool
    runtime: Seconds
    begun: Seconds
    queue: Indices
    chosen: Indices
    finish: Seconds
    running: Indices
    clock: Seconds
    counts: Indices


@kernel
def next_event(play: Play, mechanism: int) -> bool:
    """Take the next submission or end; False when there is none."""
    tasks, count = play.tasks, play.counts
    arriving, alive = count[ARRIVING], count[ALIVE]
    if arriving < len(play.runtime) and (alive == 0 or tasks.submit[arriving] <= play.finish[alive - 1]):
        play.clock[NOW] = tasks.submit[arriving]
        tasks.waiting[arriving] = True
        play.queue[count[QUEUED]] = arriving
        count[QUEUED] += 1
        count[ARRIVING] += 1
    elif alive > 0:
        play.clock[NOW] = play.finish[alive - 1]
        count[ALIVE] -= 1
        if play.running[alive - 1] >= 0:
            leave(play, play.running[alive - 1])
    else:
        return False
    if mechanism == EASY:
        expire(play)
    count[PAUSED] = 0
    return True


@kernel
def expire(play: Play) -> None:
    """Take jobs that end at this second, as expected, off the machine before their turn."""
    now = play.clock[NOW]
    at = play.counts[ALIVE] - 1
    while at >= 0 and play.finish[at] == now:
        task = play.running[at]
        if task >= 0 and play.begun[task] + play.tasks.expected[task] == now:
            leave(play, task)
            play.running[at] = -1
        at -= 1


@kernel
def leave(play: Play, task: int) -> None:
    """Take ``task`` off the machine."""
    pool, tasks = play.pool, play.tasks
    need, user, count = tasks.processors[task], tasks.user[task], pool.level[1] - 1
    at = 0
    while pool.task[at] != task:
        at += 1
    for i in range(at, count):
        pool.ends[i], pool.held[i], pool.task[i] = pool.ends[i + 1], pool.held[i + 1], pool.task[i + 1]
    pool.level[0] += need
    pool.level[1] = count
    pool.room_tasks[user] += 1
    pool.room_processors[user] += need


@kernel
def settle(play: Play, mechanism: int, order: Indices, fill: Indices) -> int:
    """Decide with orders of waiting tasks, and start what starts; how many."""
    count = play.counts
    head = Head(count[HEAD], play.clock[UNTIL], count[SPARE])
    starts, head = decide(mechanism, play.clock[NOW], head, order, fill, play.tasks, play.pool, play.chosen)
    count[HEAD], play.clock[UNTIL], count[SPARE] = head.task, head.until, head.spare
    count[DECISIONS] += 1
    for i in range(starts):
        enter(play, play.chosen[i])
    if starts > 0:
        kept = 0
        for i in range(count[QUEUED]):
            task = play.queue[i]
            if play.tasks.waiting[task]:
                play.queue[kept] = task
                kept += 1
        count[QUEUED] = kept
    return starts


@kernel
def enter(play: Play, task: int) -> None:
    """Note that ``task`` has started, and when it will end."""
    play.begun[task] = play.clock[NOW]
    end, at = play.clock[NOW] + play.runtime[task], play.counts[ALIVE]
    while at > 0 and play.finish[at - 1] <= end:
        play.finish[at], play.running[at] = play.finish[at - 1], play.running[at - 1]
        at -= 1
    play.finish[at], play.running[at] = end, task
    play.counts[ALIVE] += 1


@kernel
def ordered(play: Play, rule: int) -> Indices:
    """Waiting tasks by a rule's scores, ties in order of submission, [Q]."""
    queue = play.queue[: play.counts[QUEUED]]
    if rule == FCFS:
        return queue
    tasks = play.tasks
    found = scores(rule, play.clock[NOW], tasks.submit[queue], tasks.expected[queue], tasks.processors[queue])
    return queue[np.argsort(found, kind="mergesort")]


@kernel
def play_rules(play: Play, mechanism: int, rule: int, fill: int) -> None:
    """Play to the end, the order and who may overtake given by rules."""
    while next_event(play, mechanism):
        if play.counts[QUEUED] > 0:
            settle(play, mechanism, ordered(play, rule), ordered(play, fill))


@kernel
def advance(play: Play, mechanism: int, fill: int) -> bool:
    """Go on until a pick is due: some task waits and none is the head; False at the end.

    With ``easy`` a pick is due only where some task fits, as the head is chosen anew at each event.
    """
    while True:
        free = play.counts[HEAD] < 0 and not play.counts[PAUSED]
        if free and play.counts[QUEUED] > 0 and (mechanism != EASY or _some_fit(play)):
            return True
        if not next_event(play, mechanism):
            return False
        if mechanism == EASY:
            play.counts[HEAD] = -1
        elif play.counts[HEAD] >= 0:
            settle(play, mechanism, play.queue[:0], ordered(play, fill))


@kernel
def _some_fit(play: Play) -> bool:
    need = play.tasks.processors[play.queue[: play.counts[QUEUED]]]
    return bool(need.min() <= play.pool.level[0])


@kernel
def choose(play: Play, mechanism: int, fill: int, task: int) -> None:
    """Start ``task``, or make it the head that all wait for and let others overtake it; −1 waits for the next event."""
    if task < 0:
        play.counts[PAUSED] = 1
        return
    play.chosen[0] = task
    settle(play, mechanism, play.chosen[:1].copy(), ordered(play, fill))
    if mechanism == EASY and play.counts[HEAD] >= 0:
        play.counts[PAUSED] = 1


def opened(trace: Trace, processors: int, limits: Limits = NO_LIMITS, planned: Seconds | None = None) -> Play:
    """Jobs before their first event, on an idle pool.

    Args:
        trace: its parents are not looked at.
        processors: of the pool.
        limits: of each user.
        planned: seconds that each task is planned with, [N]; none: its estimate, or its run time where it has none.

    Raises:
        ValueError: a job needs more processors than there are, or its run time is unknown.
    """
    _check(trace, processors)
    count, users = trace.tasks, int(trace.user.max(initial=-1)) + 1
    room = [
        np.full(users + 1, UNLIMITED if most is None else most) for most in (limits.running_tasks, limits.processors)
    ]
    for each in room:
        each[users] = UNLIMITED
    running = min(processors, count) + 1
    expected = trace.expected if planned is None else planned
    return Play(
        tasks=Tasks(trace.submit, expected, trace.processors, trace.user, np.zeros(count, np.bool_)),
        pool=empty_pool(processors, running, *room),
        runtime=trace.runtime,
        begun=np.full(count, np.nan),
        queue=np.zeros(count, np.int64),
        chosen=np.zeros(count, np.int64),
        finish=np.zeros(running),
        running=np.zeros(running, np.int64),
        clock=np.array([-np.inf, np.inf]),
        counts=np.array([0, 0, 0, -1, 0, 0, 0]),
    )


def _check(trace: Trace, processors: int) -> None:
    large = np.flatnonzero(trace.processors > processors)
    if len(large):
        first = large[0]
        raise ValueError(
            f"task {trace.names[first]} needs {trace.processors[first]} processors, of which there are {processors}"
        )
    unknown = np.flatnonzero(~(trace.runtime >= 0))
    if len(unknown):
        raise ValueError(f"task {trace.names[unknown[0]]} has no run time, so it cannot be played")

"""The compiled simulator of batch queues on one pool of processors; [L] counts all jobs, [Q] waiting ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow import run_times
from app.kinds.workflow.run_times import INPUTS, SHORTEST, Regression
from app.kinds.workflow.scheduling import dispatch, planning, rules
from app.kinds.workflow.scheduling.dispatch import (
    EASY,
    NONE,
    UNLIMITED,
    Head,
    Indices,
    Pool,
    Tasks,
    decide,
    empty_profile,
    reserve,
)
from app.kinds.workflow.scheduling.rules import FCFS, SAF, scores
from app.kinds.workflow.scheduling.situation import OVERRUN
from app.kinds.workflow.spec import Limits
from app.kinds.workflow.trace import Seconds, Trace
from workers.kinds.compiling import borrowed
from workers.kinds.workflow.simulator.world import compilable, compiled_as, kernel

compilable(dispatch.earliest, dispatch.in_line, dispatch.overtake, dispatch.decide)
compilable(rules.formula, rules.scores)
compilable(run_times.describe, run_times.learn, run_times.remember, planning.scores, planning.overtaking)


@compiled_as(dispatch.by_end)
def _by_end(tasks: Tasks, started: Indices) -> Indices:
    """Sort the jobs ``started`` [k] by expected end; by insertion, as few start at once and a sort compiles slowly."""
    if len(started) < 2:
        return started
    expected, order = tasks.expected, started.copy()
    for i in range(1, len(order)):
        task, at = order[i], i
        while at > 0 and expected[order[at - 1]] > expected[task]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = task
    return order


NOW, UNTIL = range(2)
NO_LIMITS = Limits()
QUEUED, ARRIVING, ALIVE, HEAD, SPARE, DECISIONS, ARRIVED, OVERRUNS = range(8)
FREE, RUNNING = range(2)


class Play(NamedTuple):
    """State of L jobs on a pool that runs at most R at once; changed in place.

    Attributes:
        tasks: the jobs' submissions, planned seconds, processors, users, and whether they wait, [L] each.
        pool: free processors, running jobs by planned end, and each user's remaining quota.
        runtime: true run times, seconds, [L].
        start: start of each job, seconds; NaN before, [L].
        queue: waiting jobs in order of submission, in the first ``counts[QUEUED]`` entries, [L].
        chosen: scratch memory, [L].
        finish: true ends of running jobs, seconds, descending, in the first ``counts[ALIVE]`` entries, [L]. With EASY,
            jobs that end this very second may already have left the machine.
        running: index of the job of each entry of ``finish``; −1: it has left the machine, [L].
        clock: now, and the earliest start of the head (the first job that waits for processors), seconds, [2].
        counts: waiting jobs, next job to be submitted, running jobs, head (−1: none), spare processors at the head's
            start, decisions, whether the last event was a submission, whether jobs may run longer than expected, [8].
        regression: predictor of run times, updated at every end.
        inputs: the predictor's inputs for each waiting job, [L, ``INPUTS``]; [0, ``INPUTS``] without predictions.
        length: natural log of each job's requested seconds, [L].
        has_estimate: whether the job has a requested time; others are not predicted or learned from, [L].
    """

    tasks: Tasks
    pool: Pool
    runtime: Seconds
    start: Seconds
    queue: Indices
    chosen: Indices
    finish: Seconds
    running: Indices
    clock: Seconds
    counts: Indices
    regression: Regression
    inputs: Seconds
    length: Seconds
    has_estimate: NDArray[np.bool_]


@kernel
def without_reference_counts(play: Play) -> Play:
    """Return ``play`` with arrays that compiled loops don't count references to; the caller must keep the original.

    Counting references to its twenty arrays at every call would take most of an event's time."""
    tasks, pool = play.tasks, play.pool
    return Play(
        Tasks(
            borrowed(tasks.submit),
            borrowed(tasks.expected),
            borrowed(tasks.processors),
            borrowed(tasks.user),
            borrowed(tasks.waiting),
        ),
        Pool(
            borrowed(pool.level),
            borrowed(pool.ends),
            borrowed(pool.running_processors),
            borrowed(pool.task),
            borrowed(pool.room_tasks),
            borrowed(pool.room_processors),
        ),
        borrowed(play.runtime),
        borrowed(play.start),
        borrowed(play.queue),
        borrowed(play.chosen),
        borrowed(play.finish),
        borrowed(play.running),
        borrowed(play.clock),
        borrowed(play.counts),
        Regression(
            borrowed(play.regression.weight),
            borrowed(play.regression.covariance),
            borrowed(play.regression.history),
        ),
        borrowed(play.inputs),
        borrowed(play.length),
        borrowed(play.has_estimate),
    )


@kernel
def next_event(play: Play, mechanism: int) -> bool:
    """Process the next submission or end; return False if there is none. ``mechanism``: index into ``MECHANISMS``."""
    submit, finish, counts = play.tasks.submit, play.finish, play.counts
    arriving, alive = counts[ARRIVING], counts[ALIVE]
    arrives = arriving < len(submit) and (alive == 0 or submit[arriving] <= finish[alive - 1])
    if arrives:
        play.clock[NOW] = submit[arriving]
        play.tasks.waiting[arriving] = True
        play.queue[counts[QUEUED]] = arriving
        counts[QUEUED] += 1
        counts[ARRIVING] += 1
        if len(play.inputs) > 0:
            describe(play, arriving)
    elif alive > 0:
        play.clock[NOW] = finish[alive - 1]
        counts[ALIVE] -= 1
        if play.running[alive - 1] >= 0:
            leave(play, play.running[alive - 1])
    if mechanism == EASY:
        expire(play)
    if counts[OVERRUNS]:
        correct(play)
    counts[ARRIVED] = arrives
    return arrives or alive > 0


@kernel
def expire(play: Play) -> None:
    """Remove jobs from the machine whose expected and true end is this second."""
    now = play.clock[NOW]
    at = play.counts[ALIVE] - 1
    while at >= 0 and play.finish[at] == now:
        task = play.running[at]
        if task >= 0 and play.start[task] + play.tasks.expected[task] == now:
            leave(play, task)
            play.running[at] = -1
        at -= 1


@kernel
def correct(play: Play) -> None:
    """Extend the expected end of overdue jobs by a share of their run so far, as the service does."""
    pool, now, begun, expected = play.pool, play.clock[NOW], play.start, play.tasks.expected
    ends, running_processors, which = pool.ends, pool.running_processors, pool.task
    for i in range(pool.level[RUNNING]):
        task, need, end, at = which[i], running_processors[i], ends[i], i
        if begun[task] + expected[task] <= now:
            end = now + OVERRUN * (now - begun[task])
        while at > 0 and ends[at - 1] > end:
            ends[at], running_processors[at], which[at] = ends[at - 1], running_processors[at - 1], which[at - 1]
            at -= 1
        ends[at], running_processors[at], which[at] = end, need, task


@kernel
def leave(play: Play, task: int) -> None:
    """Remove ``task``, which must run: free its processors and user's quota, and update the run-time regression."""
    pool, level = play.pool, play.pool.level
    ends, running_processors, which = pool.ends, pool.running_processors, pool.task
    need, user, last = play.tasks.processors[task], play.tasks.user[task], level[RUNNING] - 1
    at = 0
    while which[at] != task:
        at += 1
    for i in range(at, last):
        ends[i], running_processors[i], which[i] = ends[i + 1], running_processors[i + 1], which[i + 1]
    level[RUNNING] = last
    level[FREE] += need
    pool.room_tasks[user] += 1
    pool.room_processors[user] += need
    if user >= 0 and len(play.inputs) > 0 and play.has_estimate[task]:
        ran = np.log(max(play.runtime[task], SHORTEST))
        run_times.remember(play.regression, user, play.length[task], need, ran)
        for i in range(play.counts[QUEUED]):
            if play.tasks.user[play.queue[i]] == user:
                describe(play, play.queue[i])


@kernel
def describe(play: Play, task: int) -> None:
    """Write the inputs of the run-time regression for the waiting job ``task`` to ``play.inputs[task]``, [``INPUTS``].

    Only for a play with predictions; ``play.inputs`` has no rows without them.
    """
    tasks, history = play.tasks, play.regression.history
    result = run_times.describe(history, tasks.user[task], play.length[task], tasks.processors[task])
    for i in range(INPUTS):
        play.inputs[task, i] = result[i]


@kernel
def settle(play: Play, mechanism: int, order: Indices, fill: Indices) -> int:
    """Choose jobs by ``mechanism`` (index into ``MECHANISMS``) and start them; return their number.

    ``order`` and ``fill`` are the waiting jobs in the queue's order and in the order of backfilling, [Q] each."""
    counts, clock, chosen = play.counts, play.clock, play.chosen
    counts[DECISIONS] += 1
    head = Head(counts[HEAD], clock[UNTIL], counts[SPARE])
    starts, head = decide(mechanism, clock[NOW], head, order, fill, play.tasks, play.pool, chosen)
    counts[HEAD], clock[UNTIL], counts[SPARE] = head.task, head.until, head.spare
    if starts > 0:
        enter(play, chosen[:starts])
        close_up(play)
    return starts


@kernel
def close_up(play: Play) -> None:
    """Remove started jobs from the queue."""
    queue, waiting, count = play.queue, play.tasks.waiting, 0
    for i in range(play.counts[QUEUED]):
        queue[count] = queue[i]
        count += waiting[queue[i]]
    play.counts[QUEUED] = count


@kernel
def enter(play: Play, started: Indices) -> None:
    """Start the jobs ``started`` [k] now: take their processors and queue their true and expected ends."""
    now, level = play.clock[NOW], play.pool.level
    begun, runtime, expected, processors = play.start, play.runtime, play.tasks.expected, play.tasks.processors
    finish, running = play.finish, play.running
    ends, running_processors, which = play.pool.ends, play.pool.running_processors, play.pool.task
    for task in started:
        begun[task] = now
        end, at = now + runtime[task], play.counts[ALIVE]
        while at > 0 and finish[at - 1] <= end:
            finish[at], running[at] = finish[at - 1], running[at - 1]
            at -= 1
        finish[at], running[at] = end, task
        end, at = now + expected[task], level[RUNNING]
        while at > 0 and ends[at - 1] > end:
            ends[at], running_processors[at], which[at] = ends[at - 1], running_processors[at - 1], which[at - 1]
            at -= 1
        ends[at], running_processors[at], which[at] = end, processors[task], task
        play.counts[ALIVE] += 1
        level[RUNNING] += 1
        level[FREE] -= processors[task]


@kernel
def order_waiting(play: Play, rule: int) -> Indices:
    """Return the waiting jobs [Q] by the score of ``rule`` (index into ``RULES``), ties by submission."""
    queue = play.queue[: play.counts[QUEUED]]
    if rule == FCFS:
        return queue
    tasks = play.tasks
    result = scores(rule, play.clock[NOW], tasks.submit[queue], tasks.expected[queue], tasks.processors[queue])
    return queue[np.argsort(result, kind="mergesort")]


@kernel
def play_rules(play: Play, mechanism: int, rule: int, fill: int) -> None:
    """Play to the end with rules for the order of the queue and of backfilling; not for conservative backfilling.

    Args:
        mechanism: index into ``MECHANISMS``.
        rule, fill: indices into ``RULES``, of the queue's order and of backfilling.
    """
    function = without_reference_counts(play)
    counts, queue = function.counts, function.queue
    while next_event(function, mechanism):
        if counts[QUEUED] > 0 and not is_futile(function, mechanism, rule):
            line = queue[: counts[QUEUED]]
            order = line if rule == FCFS else order_waiting(function, rule)
            settle(function, mechanism, order, line if fill == FCFS else order_waiting(function, fill))


@kernel
def play_priority(play: Play, mechanism: int, weights: Seconds, machine: int) -> None:
    """Play to the end by a weighted priority rule.

    Args:
        mechanism: index into ``MECHANISMS``.
        weights: weights of the rule, [``WEIGHTS``].
        machine: number of processors.
    """
    function = without_reference_counts(play)
    counts, tasks = function.counts, function.tasks
    while next_event(function, mechanism):
        if counts[QUEUED] > 0 and not is_futile(function, mechanism, SAF):
            line = function.queue[: counts[QUEUED]]
            length, need = predict_seconds(function, weights[planning.PREDICTION]), tasks.processors[line]
            first = planning.scores(weights, function.clock[NOW], tasks.submit[line], length, need, machine)
            order = line[np.argsort(first, kind="mergesort")]
            fill = order
            if mechanism != NONE:
                fill = line[np.argsort(planning.overtaking(weights, length, need), kind="mergesort")]
            settle(function, mechanism, order, fill)


@kernel
def predict_seconds(play: Play, trust: float) -> Seconds:
    """Return the log of waiting jobs' predicted seconds, [Q]: ln(requested) + ``trust`` · ``predicted_shares``."""
    seconds = trust * predicted_shares(play)
    for i in range(len(seconds)):
        seconds[i] += play.length[play.queue[i]]
    return seconds


@kernel
def predicted_shares(play: Play) -> Seconds:
    """Return the predicted natural log of waiting jobs' run time over requested time, at most 0, [Q]; 0 without an
    estimate."""
    shares = np.zeros(play.counts[QUEUED])
    for i in range(len(shares)):
        task, share = play.queue[i], 0.0
        if len(play.inputs) > 0 and play.has_estimate[task]:
            for k in range(INPUTS):
                share += play.regression.weight[k] * play.inputs[task, k]
            shares[i] = min(share, 0.0)
    return shares


@kernel
def is_futile(play: Play, mechanism: int, rule: int) -> bool:
    """Return whether a decision would surely start no job, and keep the first job that waits for processors.
    ``mechanism`` and ``rule`` are indices into ``MECHANISMS`` and ``RULES``."""
    counts, free, need, queue = play.counts, play.pool.level[FREE], play.tasks.processors, play.queue
    last = need[queue[counts[QUEUED] - 1]]
    if mechanism != EASY:
        return counts[HEAD] >= 0 and free == 0
    if rule == FCFS and counts[ARRIVED] and last > free and not counts[OVERRUNS]:
        return True  # the new job does not fit, and the others did not before it came
    for i in range(counts[QUEUED]):  # noqa: SIM110 - a generator is slow where this is compiled
        if need[queue[i]] <= free:
            return False
    return True


def initial_play(
    trace: Trace,
    processors: int,
    limits: Limits = NO_LIMITS,
    planned: Seconds | None = None,
    *,
    predicts: bool = False,
) -> Play:
    """Make the state of all jobs before their first event, on an idle pool.

    Args:
        trace: the N jobs; their parents are ignored.
        processors: number of processors of the pool.
        limits: limits of each user.
        planned: requested and planned seconds of each job, [N]; None: those of the trace.
        predicts: whether run times are predicted from users' last jobs.

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
    submit, runtime, expected = (
        np.ascontiguousarray(each, np.float64)  # loops are compiled for contiguous arrays only
        for each in (trace.submit, trace.runtime, trace.expected if planned is None else planned)
    )
    processors_of, user_of = (np.ascontiguousarray(each, np.int64) for each in (trace.processors, trace.user))
    return Play(
        tasks=Tasks(submit, expected, processors_of, user_of, np.zeros(count, np.bool_)),
        pool=Pool(
            np.array([processors, 0]), np.zeros(running), *(np.zeros(running, np.int64) for _ in range(2)), *room
        ),
        runtime=runtime,
        start=np.full(count, np.nan),
        queue=np.zeros(count, np.int64),
        chosen=np.zeros(count, np.int64),
        finish=np.zeros(count),
        running=np.zeros(count, np.int64),
        clock=np.array([-np.inf, np.inf]),
        counts=np.array([0, 0, 0, -1, 0, 0, 0, int((expected < runtime).any())]),
        regression=run_times.blank(users if predicts else 0),
        inputs=np.zeros((count if predicts else 0, INPUTS)),
        length=np.log(np.maximum(trace.requested if planned is None else planned, SHORTEST)),
        has_estimate=~np.isnan(trace.estimate),
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


# Conservative backfilling: reservations that fall due are events beside submissions and ends.


compilable(dispatch.empty_profile, dispatch.begin, dispatch.point, dispatch.hold, dispatch.place)
compilable(dispatch.keep, dispatch.reserve)


@kernel
def play_conservative(play: Play, rule: int, promised: Seconds) -> None:
    """Play to the end with conservative backfilling; ``rule`` (index into ``RULES``) orders jobs that move forward.

    ``promised`` receives the start reserved for each job at its submission, seconds, [L].
    """
    function = without_reference_counts(play)
    reserved = np.full(len(function.runtime), np.inf)
    profile = empty_profile(len(function.runtime), len(function.pool.ends))
    while True:
        due, arrived, alive = _due(function, reserved), function.counts[ARRIVING], function.counts[ALIVE]
        if due < _next(function):
            function.clock[NOW] = due
        elif not next_event(function, EASY):
            return
        if function.counts[OVERRUNS]:
            correct(function)
        if function.counts[QUEUED] > 0:
            function.counts[DECISIONS] += 1
            order = order_waiting(function, rule)
            starts = reserve(
                function.clock[NOW],
                order,
                function.counts[ALIVE] < alive,
                function.tasks,
                function.pool,
                reserved,
                profile,
                function.chosen,
            )
            promised[arrived : function.counts[ARRIVING]] = reserved[arrived : function.counts[ARRIVING]]
            enter(function, function.chosen[:starts])
            close_up(function)


@kernel
def _next(play: Play) -> float:
    """Return the second of the next submission or end; infinite: none."""
    arriving, alive = play.counts[ARRIVING], play.counts[ALIVE]
    arrival = play.tasks.submit[arriving] if arriving < len(play.runtime) else np.inf
    end = play.finish[alive - 1] if alive > 0 else np.inf
    return min(arrival, end)


@kernel
def _due(play: Play, reserved: Seconds) -> float:
    """Return the second of the next start among ``reserved`` starts [L] of waiting jobs; infinite: none."""
    due = np.inf
    for task in play.queue[: play.counts[QUEUED]]:
        due = min(due, reserved[task])
    return due

"""Simulating ahead: the queue's next hours in sampled scenarios, to accept changes of the order that surely pay.

At a decision, the first jobs in the order may each be moved to the front or held back. Every change that leads to
another decision is simulated in the same scenarios (sampled run times, and arrivals as in the past), in which the
order decides from then on. A change is made only if its cost is significantly lower: most estimates of small gains
are noise, and rules chosen by their simulated means alone are worse than the order itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow import run_times
from app.kinds.workflow.ahead import KNOWN, MOST, Alternatives, Outlook
from app.kinds.workflow.queue import MOST_PAST
from app.kinds.workflow.run_times import INPUTS, SHORTEST
from app.kinds.workflow.scheduling import planning
from app.kinds.workflow.scheduling.dispatch import EASY, Indices
from app.kinds.workflow.scheduling.rules import SAF
from app.kinds.workflow.scheduling.situation import OVERRUN
from app.kinds.workflow.trace import Seconds
from workers.kinds.compiling import borrowed
from workers.kinds.workflow.simulator.pool import (
    ARRIVING,
    FREE,
    HEAD,
    NOW,
    QUEUED,
    RUNNING,
    Play,
    is_futile,
    next_event,
    predicted_shares,
    settle,
    without_reference_counts,
)
from workers.kinds.workflow.simulator.world import compilable, kernel

HORIZON = 8 * 3600.0  # seconds
SCENARIOS = 24
CHANGED = 10  # jobs, the first in the order, that may be moved or held back
MOST_ARRIVALS = 80  # jobs that arrive in a scenario
SIGNIFICANT = 3.0  # t statistic from which a change is made: the best of up to twenty is above 2 by chance, too often
STAGES = np.array([[6.0, np.inf, 0.5]])
"""Scenarios after which only so many changes go on, those that save most, if their t statistic is above the third."""
SHORT = np.array([[3.0, 4.0, 0.2], [8.0, 2.0, 0.7], [14.0, 1.0, 1.0]])
"""As ``STAGES``, where there is more than ``WORK`` to play (successive halving; Jamieson and Talwalkar 2016)."""
WORK = 30_000  # changes × scenarios × jobs, some five milliseconds
FEWEST_PAST = 32  # jobs submitted before, from which arrivals are sampled

SHARE_EDGES = np.array([-4.0, -2.5, -1.5, -0.75, -0.2])
"""Limits of the predicted share (natural logarithm) between the rows of a table of quantiles."""
TABLE = np.array([
    [-9.04, -7.99, -7.12, -6.74, -5.97, -5.13, -3.85, -3.03, -2.32, -1.55, -0.79, -0.1],
    [-7.11, -5.36, -4.42, -3.85, -3.4, -3.0, -2.6, -2.14, -1.59, -0.9, -0.43, -0.01],
    [-6.35, -4.04, -3.07, -2.69, -2.32, -2.0, -1.67, -1.4, -1.1, -0.67, -0.28, 0.0],
    [-5.67, -3.35, -2.53, -1.88, -1.46, -1.17, -0.89, -0.7, -0.51, -0.34, -0.13, -0.01],
    [-5.26, -2.36, -1.25, -0.88, -0.67, -0.53, -0.43, -0.32, -0.2, -0.1, -0.04, 0.0],
    [-4.1, -3.15, -2.57, -1.98, -1.35, -0.69, -0.44, -0.3, -0.22, -0.18, -0.16, -0.12],
])  # fmt: skip
"""Quantiles of the logarithm of the share of its estimate that a job took, 12 in each row; means over five logs
(``benchmarks.workflow_ahead.table_of``)."""


compilable(planning.starting_scores)


class Scenario(NamedTuple):
    """J jobs in one sampled course of the next hours: waiting ones in the queue's order, then arrivals by time.

    Attributes:
        at: submission, seconds from now, at most 0 for waiting jobs, [J].
        need: processors, [J].
        plan: planned seconds, by which jobs are backfilled, [J].
        lasts: sampled seconds, [J].
        score: score in the queue's order, [J].
        ends, planned, processors: sampled end, planned end (seconds from now) and processors of R running jobs, [R].
    """

    at: Seconds
    need: Indices
    plan: Seconds
    lasts: Seconds
    score: Seconds
    ends: Seconds
    planned: Seconds
    processors: Indices


class Course(NamedTuple):
    """State of a scenario that is played, changed in place.

    Attributes:
        queue: waiting jobs in order, in the first ``level[WAITS]`` entries, [J].
        ends, planned, needs: sampled end, descending, planned end (seconds), and processors of running jobs, in the
            first ``level[RUNS]`` entries.
        due, processors: planned ends, ascending, and processors, of the same jobs.
        begun: start of each job, seconds from now; NaN: not started, [J].
        level: waiting jobs, running jobs, free processors, job that must start next (−1: none must), and the fewest
            processors that a waiting job needs, [5].
    """

    queue: Indices
    ends: Seconds
    planned: Seconds
    needs: Indices
    due: Seconds
    processors: Indices
    begun: Seconds
    level: Indices


WAITS, RUNS, IDLE, COMMITTED, LEAST = range(5)


@kernel
def enter(course: Course, end: float, planned: float, need: int) -> None:
    """Add a running job by its sampled and planned end (seconds) and its processors."""
    ends, due, processors, at = course.ends, course.due, course.processors, course.level[RUNS]
    place = at
    while at > 0 and ends[at - 1] < end:
        ends[at], course.planned[at], course.needs[at] = ends[at - 1], course.planned[at - 1], course.needs[at - 1]
        at -= 1
    ends[at], course.planned[at], course.needs[at] = end, planned, need
    while place > 0 and due[place - 1] > planned:
        due[place], processors[place] = due[place - 1], processors[place - 1]
        place -= 1
    due[place], processors[place] = planned, need
    course.level[RUNS] += 1
    course.level[IDLE] -= need


@kernel
def leave(course: Course) -> None:
    """Remove the running job that ends first."""
    last, due, processors, at = course.level[RUNS] - 1, course.due, course.processors, 0
    planned, need = course.planned[last], course.needs[last]
    while due[at] < planned or processors[at] != need:
        at += 1
    for i in range(at, last):
        due[i], processors[i] = due[i + 1], processors[i + 1]
    course.level[RUNS] = last
    course.level[IDLE] += need


@kernel
def start(course: Course, jobs: Scenario, job: int, now: float) -> None:
    """Start ``job`` at ``now`` (seconds); the caller removes it from the queue."""
    course.begun[job] = now
    enter(course, now + jobs.lasts[job], now + jobs.plan[job], jobs.need[job])


@kernel
def reservation(course: Course, need: int, now: float) -> tuple[float, int]:
    """Return the second at which ``need`` processors should be free, and how many more are free then."""
    due, processors, free, until, i = course.due, course.processors, course.level[IDLE], now, 0
    while i < course.level[RUNS] and (free < need or due[i] == due[i - 1]):
        free += processors[i]
        until = max(now, due[i])
        i += 1
    return (until, free - need) if free >= need else (np.inf, 0)


@kernel
def dispatch(course: Course, jobs: Scenario, mechanism: int, now: float, barred: int) -> int:
    """Start jobs at ``now`` (seconds) by the queue's order and ``mechanism`` (index into ``MECHANISMS``), all but
    ``barred`` (−1: none). Return a number that tells decisions apart: by jobs started, and the job that must start
    next."""
    queue, count, need = course.queue, course.level, jobs.need
    waits, left, blocked, result, least = count[WAITS], 0, -1, 1, np.iinfo(np.int64).max
    spare, until, unknown = 0, -np.inf, mechanism == EASY
    committed = count[COMMITTED] if mechanism != EASY else -1
    if committed >= 0 and need[committed] > count[IDLE]:
        return result
    if committed >= 0:
        start(course, jobs, committed, now)
        result = result * 31 + committed + 1
    for i in range(waits):
        job = queue[i]
        if job == committed:
            continue
        fits = job != barred and need[job] <= count[IDLE]
        if fits and blocked >= 0 and unknown:  # the reservation is only needed where another job fits
            until, spare = reservation(course, need[blocked], now)
            unknown = False
        inside = now + jobs.plan[job] <= until
        if fits and (blocked < 0 or inside or need[job] <= spare):
            spare -= 0 if blocked < 0 or inside else need[job]
            start(course, jobs, job, now)
            result = (result * 31 + job + 1) % 1_000_000_007
        else:
            blocked = job if blocked < 0 and job != barred else blocked
            queue[left] = job
            left += 1
            least = min(least, need[job])
    count[WAITS], count[LEAST] = left, least
    count[COMMITTED] = blocked if mechanism != EASY else -1
    return result if mechanism == EASY else result * 64 + blocked + 1


@kernel
def first_decision(course: Course, jobs: Scenario, state: Indices, mechanism: int, front: int, barred: int) -> int:
    """Set ``course`` to the present, and decide with job ``front`` first and job ``barred`` left out (−1: none).

    Returns a number that tells different decisions apart.

    Args:
        course: overwritten.
        jobs: a scenario.
        state: free processors, the job that must start next (−1: none must), and the number Q of waiting jobs, [3].
        mechanism: index into ``MECHANISMS``.
        front, barred: indices of jobs below Q.
    """
    waiting, course.level[RUNS] = state[2], 0
    for i in range(len(jobs.ends)):
        enter(course, jobs.ends[i], jobs.planned[i], jobs.processors[i])
    course.begun[:] = np.nan
    course.level[WAITS], course.level[IDLE], course.level[COMMITTED] = waiting, state[0], state[1]
    place = 0
    if front >= 0:
        course.queue[0] = front
        place = 1
    for job in range(waiting):
        if job != front:
            course.queue[place] = job
            place += 1
    return dispatch(course, jobs, mechanism, 0.0, barred)


@kernel
def join(course: Course, jobs: Scenario, job: int) -> int:
    """Add ``job`` to the queue, by its score; return its index in the queue."""
    queue, score, at = course.queue, jobs.score, course.level[WAITS]
    while at > 0 and score[queue[at - 1]] > score[job]:
        queue[at] = queue[at - 1]
        at -= 1
    queue[at] = job
    course.level[WAITS] += 1
    course.level[LEAST] = min(course.level[LEAST], jobs.need[job])
    return at


@kernel
def backfill(course: Course, jobs: Scenario, place: int, now: float) -> None:
    """Start the job at ``place`` in the queue if EASY backfills it; the first in the queue holds the reservation."""
    count, queue = course.level, course.queue
    job = queue[place]
    until, spare = reservation(course, jobs.need[queue[0]], now)
    if now + jobs.plan[job] <= until or jobs.need[job] <= spare:
        start(course, jobs, job, now)
        count[WAITS] -= 1
        for i in range(place, count[WAITS]):
            queue[i] = queue[i + 1]


@kernel
def cost_of(course: Course, jobs: Scenario, mechanism: int, waiting: int) -> float:
    """Play a scenario, after its first decision on ``waiting`` jobs, for eight hours; return the sum of the bounded
    slowdowns that all jobs gather from now on, those that wait at the end included."""
    count, arriving, total, settled = course.level, waiting, len(jobs.at), False
    while True:
        due = course.ends[count[RUNS] - 1] if count[RUNS] > 0 else np.inf
        arrives, place = arriving < total and jobs.at[arriving] < due, 0
        now = jobs.at[arriving] if arrives else due
        if now > HORIZON:
            break
        if arrives:
            place = join(course, jobs, arriving)
            arriving += 1
        else:
            leave(course)
        if count[WAITS] == 0:
            if arriving == total:
                break
            continue
        if place > 0 and settled:  # nothing has changed for those that waited before
            if mechanism == EASY and jobs.need[arriving - 1] <= count[IDLE]:
                backfill(course, jobs, place, now)
        elif count[IDLE] >= count[LEAST]:
            dispatch(course, jobs, mechanism, now, -1)
            settled = True
    cost = 0.0
    for job in range(total):
        begun = HORIZON if np.isnan(course.begun[job]) else course.begun[job]
        cost += max(begun - max(jobs.at[job], 0.0), 0.0) / max(jobs.lasts[job], SHORTEST)
    return cost


@kernel
def draw_share(table: Seconds, share: float, least: float) -> float:
    """Draw the natural log of a job's run time over its estimate, at least ``least``, given the prediction ``share`` of
    it, from ``table`` (quantiles by prediction, ascending); 1.0: no quantile reaches ``least``."""
    row = table[np.searchsorted(SHARE_EDGES, share)]
    below = np.searchsorted(row, least)
    if below == len(row):
        return 1.0
    return row[below + int(np.random.random() * (len(row) - below))]  # noqa: NPY002 - compiled code's own generator


class Present(NamedTuple):
    """A queue at a decision: Q waiting jobs in order, R running ones, and P submitted before, by time.

    Attributes:
        need, plan, score: processors, planned seconds, and log score in the order, of waiting and earlier jobs,
            [Q + P].
        length, share: natural logs of estimated seconds, and of the predicted share of these, [Q + P].
        processors, planned, ran: processors, planned end (seconds from now), and seconds run so far, [R].
        running_length, running_share: ``length`` and ``share`` of running jobs, [R].
        past: submissions in seconds, ascending, [P].
        state: free processors, place of the job that must start next (−1: none must), and number Q, [3].
    """

    need: Indices
    plan: Seconds
    score: Seconds
    length: Seconds
    share: Seconds
    processors: Indices
    planned: Seconds
    ran: Seconds
    running_length: Seconds
    running_share: Seconds
    past: Seconds
    state: Indices


@kernel
def sample(present: Present, table: Seconds) -> Scenario:
    """Draw one course of the next hours; ``table``: quantiles of log run time over estimate, by its prediction."""
    waiting, running = present.state[2], len(present.processors)
    rows, at = np.empty(waiting + MOST_ARRIVALS, np.int64), np.zeros(waiting + MOST_ARRIVALS)
    rows[:waiting] = np.arange(waiting)
    total, before = waiting, len(present.past)
    if before >= FEWEST_PAST:
        k, now = int(np.random.random() * (before - 1)), 0.0  # noqa: NPY002 - compiled code's own generator
        while total < len(rows):
            k = k + 1 if k + 1 < before else 1
            now += max(present.past[k] - present.past[k - 1], 0.0)
            if now > HORIZON:
                break
            rows[total], at[total] = waiting + k, now
            total += 1
    rows = rows[:total]
    lasts, ends = present.plan[rows], present.planned.copy()
    for j in range(total):
        if present.share[rows[j]] < KNOWN:
            drawn = draw_share(table, present.share[rows[j]], -np.inf)
            lasts[j] = max(np.exp(present.length[rows[j]] + drawn), 1.0)
    for i in range(running):
        if present.running_share[i] < KNOWN:
            ran, length = present.ran[i], present.running_length[i]
            drawn = draw_share(table, present.running_share[i], np.log(max(ran, 1e-3)) - length)
            ends[i] = max(OVERRUN * ran if drawn > 0.0 else np.exp(length + drawn) - ran, 1.0)
    return Scenario(
        at[:total], present.need[rows], present.plan[rows], lasts, present.score[rows], ends, present.planned,
        present.processors,
    )  # fmt: skip


class Options(NamedTuple):
    """K changes of the order, the first of them none: places of the jobs that move to the front or are held back (−1:
    none), mean bounded slowdown that each saves, its standard error, and whether it is played to the end, [K] each."""

    front: Indices
    barred: Indices
    gain: Seconds
    error: Seconds
    whole: NDArray[np.bool_]


@kernel
def distinct(course: Course, jobs: Scenario, present: Present, mechanism: int) -> tuple[Indices, Indices]:
    """Return one change of the order for each different first decision, as places ``front`` and ``barred`` (−1: none),
    [K] each; the first is no change. Each of the first ``CHANGED`` waiting jobs moves to the front, or is left out."""
    several = min(present.state[2], CHANGED)
    fronts, bars = np.full(2 * CHANGED, -1), np.full(2 * CHANGED, -1)
    result, count = np.zeros(2 * CHANGED, np.int64), 0
    for option in range(2 * several):
        front, barred = (option, -1) if option < several else (-1, option - several)
        if option == 0:  # the first job is first already
            front = -1
        outcome = first_decision(course, jobs, present.state, mechanism, front, barred)
        if not (result[:count] == outcome).any():
            fronts[count], bars[count], result[count] = front, barred, outcome
            count += 1
    return fronts[:count], bars[:count]


@kernel
def play_changes(
    course: Course, jobs: Scenario, present: Present, mechanism: int, options: Options, cost: Seconds
) -> None:
    """Play a scenario under each of K changes of the order that is still considered (``options.whole``); ``cost`` [K]
    receives the bounded slowdowns that all jobs gather in each, and for other changes those in the order as it is."""
    own, lent = borrowed(course), borrowed(jobs)
    for option in range(len(cost)):
        cost[option] = cost[0]
        if options.whole[option]:
            first_decision(own, lent, present.state, mechanism, options.front[option], options.barred[option])
            cost[option] = cost_of(own, lent, mechanism, present.state[2])


@kernel
def halt(options: Options, saved: Seconds, squares: Seconds, played: int, stage: Seconds) -> None:
    """Compute ``gain`` and ``error`` of changes from the sums ``saved`` and ``squares`` [K] over ``played`` scenarios;
    before the last one, drop changes below the limits of ``stage`` (scenarios, most changes, t statistic)."""
    for option in range(1, len(saved)):
        if options.whole[option]:
            mean = saved[option] / played
            options.gain[option] = mean
            options.error[option] = np.sqrt(max(squares[option] / played - mean**2, 0.0) / (played - 1))
    if played < SCENARIOS:
        before = options.whole.copy()
        for option in range(1, len(saved)):
            better = (before[1:] & (options.gain[1:] > options.gain[option])).sum()
            hopeful = options.gain[option] > stage[2] * options.error[option]
            options.whole[option] = before[option] and hopeful and better < stage[1]


@kernel
def compare(present: Present, table: Seconds, mechanism: int, seed: int) -> Options:
    """Play changes of the order in the same 24 sampled scenarios, and return them with the bounded slowdown that each
    saves; hopeless ones are left out on the way. ``table``: quantiles of log run time over estimate, by prediction."""
    np.random.seed(seed)  # noqa: NPY002 - that of compiled code, so that a decision can be repeated
    waiting, running = present.state[2], len(present.processors)
    jobs, most = sample(present, table), running + waiting + MOST_ARRIVALS
    course = Course(
        np.zeros(most, np.int64), np.zeros(most), np.zeros(most), np.zeros(most, np.int64), np.zeros(most),
        np.zeros(most, np.int64), np.zeros(waiting + MOST_ARRIVALS), np.zeros(5, np.int64),
    )  # fmt: skip
    fronts, bars = distinct(course, jobs, present, mechanism)
    count = len(fronts)
    options = Options(fronts, bars, np.zeros(count), np.zeros(count), np.ones(count, np.bool_))
    saved, squares, cost = np.zeros(count), np.zeros(count), np.zeros(count)
    stages = STAGES if count * SCENARIOS * (len(jobs.at) + running) <= WORK else SHORT
    played, stage = 0, 0
    while played < SCENARIOS and options.whole[1:].any():
        if played > 0:
            jobs = sample(present, table)
        play_changes(course, jobs, present, mechanism, options, cost)
        saved += cost[0] - cost
        squares += (cost[0] - cost) ** 2
        played += 1
        if played == SCENARIOS or (stage < len(stages) and played == stages[stage, 0]):
            halt(options, saved, squares, played, stages[min(stage, len(stages) - 1)])
            stage += 1
    return options


@kernel
def best_of(options: Options) -> int:
    """Return the index of the change that saves most, of those that are significantly better; 0: none is."""
    best = 0
    for option in range(1, len(options.gain)):
        sure = options.gain[option] > SIGNIFICANT * options.error[option]
        if options.whole[option] and sure and options.gain[option] > options.gain[best]:
            best = option
    return best


def simulate_ahead(outlook: Outlook, table: Seconds = TABLE) -> Alternatives:
    """Compare changes of the order of a live queue by simulating eight hours ahead; return them, the best first, with
    the bounded slowdown that each saves. ``table``: quantiles of log run time over estimate, in rows by its prediction.
    """
    arrays = [getattr(outlook, name) for name in Present._fields[:-1]]
    state = np.array([outlook.free, outlook.head, outlook.waiting])
    comparison = compare(Present._make([*arrays, state]), table, outlook.mechanism, outlook.seed)
    best = best_of(comparison)
    rest = np.argsort(-comparison.gain[1:], kind="stable") + 1
    order = rest if best == 0 else np.concatenate([[best], rest[rest != best]])
    return Alternatives(
        comparison.front[order], comparison.barred[order], comparison.gain[order], comparison.error[order],
        accepted=best > 0, scenarios=SCENARIOS, hours=HORIZON / 3600.0,
    )  # fmt: skip


@kernel
def share_of(play: Play, task: int) -> float:
    """Return the predicted natural log of job ``task``'s run time over its estimate; ``KNOWN``: it has no estimate."""
    if not play.has_estimate[task]:
        return KNOWN
    tasks, regression, share = play.tasks, play.regression, 0.0
    result = run_times.describe(regression.history, tasks.user[task], play.length[task], tasks.processors[task])
    for i in range(INPUTS):
        share += regression.weight[i] * result[i]
    return min(share, 0.0)


@kernel
def present_of(play: Play, order: Indices, mechanism: int) -> Present:
    """Return the present of a simulation; ``order``: the waiting jobs in order, at most ``MOST``; ``mechanism``: index
    into ``MECHANISMS``."""
    counts, tasks, pool, now = play.counts, play.tasks, play.pool, play.clock[NOW]
    submitted, running, head = counts[ARRIVING], pool.level[RUNNING], -1
    before = min(submitted, MOST_PAST)
    rows = np.concatenate((order, np.arange(submitted - before, submitted), pool.task[:running]))
    share = np.empty(len(rows))
    for i in range(len(rows)):
        share[i] = share_of(play, rows[i])
    for i in range(len(order)):
        if order[i] == counts[HEAD]:
            head = i
    rest, runs = rows[: len(order) + before], rows[len(order) + before :]
    estimated = play.has_estimate[rest]
    predicted = np.where(estimated, share[: len(rest)], 0.0)
    score = planning.starting_scores(play.length[rest], predicted, estimated, tasks.processors[rest], mechanism == EASY)
    return Present(
        tasks.processors[rest], tasks.expected[rest], score, play.length[rest], share[: len(rest)],
        tasks.processors[runs], pool.ends[:running] - now, now - play.start[runs], play.length[runs],
        share[len(rest) :], tasks.submit[submitted - before : submitted],
        np.array([pool.level[FREE], head, len(order)]),
    )  # fmt: skip


@kernel
def play_ahead(play: Play, mechanism: int, table: Seconds) -> int:
    """Play to the end by scores from predicted run times, simulating ahead where at most ``MOST`` jobs wait; return the
    number of changes of the order.

    Args:
        play: with predictions, if jobs have estimates.
        mechanism: index into ``MECHANISMS``: none or easy.
        table: quantiles of the natural logarithm of shares of estimates, by predicted share, as ``TABLE``.
    """
    function = without_reference_counts(play)
    counts, tasks, changes = function.counts, function.tasks, 0
    while next_event(function, mechanism):
        if counts[QUEUED] == 0 or is_futile(function, mechanism, SAF):
            continue
        line, head = function.queue[: counts[QUEUED]].copy(), counts[HEAD]
        length, estimated, share = function.length[line], function.has_estimate[line], predicted_shares(function)
        score = planning.starting_scores(length, share, estimated, tasks.processors[line], mechanism == EASY)
        order = line[np.argsort(score, kind="mergesort")]
        if mechanism != EASY and head >= 0:
            order = np.concatenate((np.full(1, head), order[order != head]))
        if 1 < len(order) <= MOST and (mechanism == EASY or tasks.processors[order[0]] <= function.pool.level[FREE]):
            present, seed = present_of(function, order, mechanism), int(function.clock[NOW]) % 1_000_000_007
            options = compare(present, table, mechanism, seed)
            best = best_of(options)
            if best > 0:
                changes += 1
                job = order[max(options.front[best], options.barred[best])]
                others = order[order != job]
                order = np.concatenate((np.full(1, job), others)) if options.front[best] >= 0 else others
        settle(function, mechanism, order, order)
    return changes

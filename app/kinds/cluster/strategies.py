"""Allocation rules, most of them from published schedulers: numbers of GPUs for each job."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.cluster import jobs as table
from app.kinds.cluster.jobs import NEVER, Floats, Integers, Jobs
from app.kinds.cluster.placement import Outlook, Rule, Situation, TargetAllocation, admit_fitting, in_order

# Greedy joint allocation: GPUs go to the job with the largest marginal value per GPU.


def marginal(value: Floats, sizes: Integers, begin: Integers, free: int) -> Integers:
    """Allocate GPUs greedily by marginal value; return the position of each of J jobs' size in its row of ``sizes``,
    [J]. Each step gives one job the additional GPUs of largest value per GPU; a step may skip sizes, so that one of
    little value by itself can be passed. Ties go to the first job, and the smaller size.

    Args:
        value: value of each of K sizes to each job, −∞ where not allowed, [J, K].
        sizes: numbers of GPUs, ascending, [J, K].
        begin: positions of the initial sizes, [J]; −1: the job gets nothing, and the result is −1.
        free: GPUs left beside the initial sizes.
    """
    at, steps = begin.copy(), list[tuple[float, int, int]]()
    rows = list(zip(value, sizes, strict=True))
    for job in np.flatnonzero(at >= 0).tolist():
        _offer(steps, rows[job], (job, int(at[job])), free)
    while steps:
        _, job, target = heapq.heappop(steps)
        needed = int(sizes[job, target] - sizes[job, at[job]])
        if needed <= free:
            at[job] = target
            free -= needed
        _offer(steps, rows[job], (job, int(at[job])), free)
    return at


def _offer(steps: list[tuple[float, int, int]], row: tuple[Floats, Integers], of: tuple[int, int], free: int) -> None:
    """Push onto the heap ``steps`` the best next step of one job that fits into ``free`` GPUs, if its value is
    positive. ``row``: values and sizes (GPUs) of the job, [K] each; ``of``: position of the job, and of its present
    size."""
    (value, sizes), (job, at) = row, of
    start, end = np.searchsorted(sizes, [sizes[at], sizes[at] + free], side="right").tolist()
    if end <= start:
        return
    slope = (value[start:end] - value[at]) / (sizes[start:end] - sizes[at])
    best = int(slope.argmax())
    if slope[best] > 0:
        heapq.heappush(steps, (-float(slope[best]), job, start + best))


# Priority queues with ageing: a job that waits long enough counts as of the next more urgent queue.


LATE = -1
"""Urgency of jobs that waited longer than the patience; it comes before all queues."""


def urgency(jobs: Jobs, now: float, ageing_seconds: Floats, patience: float = np.inf) -> Integers:
    """Return the effective queue of each of J jobs, 0 the most urgent, or ``LATE`` if it waited over ``patience``
    seconds, [J].

    A job rises one queue per ``ageing_seconds`` [Q] of its queue spent waiting in all (infinite: never). Running time
    doesn't lower it again, so that a job isn't sent back for having been served. ``now``: seconds since the cluster's
    start."""
    waited = np.maximum(now - jobs.submitted - jobs.running, 0.0)
    risen = np.maximum(jobs.queue - (waited / ageing_seconds[jobs.queue]).astype(np.int64), 0)
    return np.where(waited > patience, LATE, risen)


def by_priority(ageing_seconds: Sequence[float], patience: float = np.inf) -> Rule:
    """Make a rule that gives each job the GPUs it requests, by urgency and then by submission, without backfilling. A
    job that doesn't fit blocks all later ones, so that no less urgent job runs in its place and none starves.
    ``ageing_seconds`` [Q]: seconds of waiting after which a job rises one queue; ``patience``: seconds of waiting after
    which it goes first."""
    ageing = np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> TargetAllocation:
        jobs = situation.jobs
        order = np.lexsort((jobs.submitted, urgency(jobs, situation.now, ageing, patience)))
        return TargetAllocation(admitted_in_order(jobs.requested, order, situation.gpus), order)

    return rule


def admitted_in_order(wanted: Integers, order: Integers, free: int) -> Integers:
    """Return the GPUs given to each of J jobs, [J]: those ``wanted`` [J], in ``order`` [J], until one doesn't fit, then
    0. Jobs that want more than ``free`` GPUs get 0 and don't block others."""
    needed = np.where(wanted <= free, wanted, 0)[order]
    gpus = np.zeros(len(order), np.int64)
    gpus[order] = np.where(needed.cumsum() <= free, needed, 0)
    return gpus


# Fair goodput: exact maximum of the objective of Pollux (Qiao et al., OSDI 2021, section 4.2).


FLOOR = 1e-3


def goodput(situation: Situation) -> TargetAllocation:
    """Maximise the harmonic mean of the jobs' speedups over their fair shares.

    The speedup of a job whose nodes would change is reduced by the share of its time that restarts cost. Sizes are
    powers of two up to a node, or whole nodes, so that all combinations can be placed. Dynamic programming over jobs
    finds the optimum among these; Pollux uses a genetic algorithm."""
    sizes = fitting(situation.capacity)
    cost = 1.0 / (speedups(situation, sizes) + FLOOR)
    positions = least(cost, sizes, situation.gpus)
    gpus = sizes[positions]
    return TargetAllocation(gpus, np.argsort(-gpus, kind="stable"), packed=True)


def fitting(capacity: Integers) -> Integers:
    """Return the sizes that fit nodes, ascending from 0, [sizes]: powers of two up to the largest node, then its
    multiples. ``capacity`` has the GPUs of each node, [N]."""
    total, node = int(capacity.sum()), max(1, int(capacity.max(initial=0)))
    powers = [2**i for i in range(node.bit_length()) if 2**i < node]
    return np.array([0, *(size for size in powers if size <= total), *range(node, total + 1, node)], np.int64)


def speedups(situation: Situation, sizes: Integers) -> Floats:
    """Return the speedup of each of J jobs on R ``sizes`` over its fair share (Pollux), [J, R]; 0: not allowed."""
    jobs, gpus = situation.jobs, situation.gpus
    fair = np.minimum(-(-gpus // len(jobs.requested)), np.maximum(jobs.maximum, 1))
    sizes_asked = np.unique(np.concatenate([sizes, fair]))
    value = situation.outlook.goodput(sizes_asked)
    base = value[np.arange(len(fair)), np.searchsorted(sizes_asked, fair)]
    own = value[:, np.searchsorted(sizes_asked, sizes)]
    base = np.where(base > 0, base, own.max(axis=1, initial=0.0))
    scaled = own / np.where(base > 0, base, 1.0)[:, None] * len(situation.capacity) / max(gpus, 1)
    legal = (sizes >= jobs.minimum[:, None]) & (sizes <= jobs.maximum[:, None])
    stays = sizes == jobs.gpus[:, None]
    return np.where(legal, scaled * np.where(stays, 1.0, kept_share(situation)[:, None]), 0.0)


def kept_share(situation: Situation) -> Floats:
    """Return the fraction, 0 to 1, of each of J jobs' speedup that remains after another restart, [J]."""
    jobs, cost = situation.jobs, situation.restart_seconds
    age, before = situation.now - jobs.submitted, np.maximum(jobs.restarts - 1, 0)
    return np.asarray(np.maximum(age - before * cost, 0.0) / np.maximum(age + cost, 1e-9), np.float64)


def least(cost: Floats, sizes: Integers, total: int) -> Integers:
    """Return positions in ``sizes`` [R], one per job, of least total ``cost`` [J, R] with at most ``total`` GPUs,
    [J]."""
    there = np.arange(total + 1) - sizes[:, None]  # [R, G + 1]: GPUs left for the jobs before
    illegal = there < 0
    there = np.maximum(there, 0)
    known, choices = np.zeros(total + 1), np.zeros((len(cost), total + 1), np.int64)
    for job, row in enumerate(cost):
        all_ = np.where(illegal, np.inf, known[there] + row[:, None])
        choices[job] = all_.argmin(axis=0)
        known = all_.min(axis=0)
    least, left = np.zeros(len(cost), np.int64), total
    for job in range(len(cost) - 1, -1, -1):
        least[job] = choices[job, left]
        left -= int(sizes[least[job]])
    return least


# Candidate sizes: numbers of GPUs that a job may have.


MOST_MULTIPLES = 16
"""Most multiples of a node; beyond, numbers of nodes double."""


def grid(situation: Situation) -> Integers:
    """Return K candidate numbers of GPUs of each of J jobs, ascending, [J, K]. They are 0, fitting sizes from its
    minimum to its maximum, and its current number; after clipping to the job's limits some repeat."""
    jobs, fit = situation.jobs, tried_sizes(situation.capacity)
    most = np.clip(jobs.maximum, jobs.minimum, situation.gpus)
    sizes = np.concatenate([np.tile(fit, (len(most), 1)), jobs.gpus[:, None]], axis=1)
    sizes = np.sort(np.clip(sizes, jobs.minimum[:, None], most[:, None]), axis=1)
    return np.concatenate([np.zeros((len(most), 1), np.int64), sizes], axis=1)


def tried_sizes(capacity: Integers) -> Integers:
    """Return the sizes that fit nodes, ascending from 0, with few of the large multiples, [sizes]. On a single node of
    at most ``MOST_MULTIPLES`` GPUs it is every number. ``capacity``: GPUs of each node, [N]."""
    node = max(1, int(capacity.max(initial=0)))
    if len(capacity) == 1 and node <= MOST_MULTIPLES:
        return np.arange(int(capacity.sum()) + 1)
    sizes = fitting(capacity)
    multiples = sizes // node
    return sizes[(multiples <= MOST_MULTIPLES) | (multiples & (multiples - 1) == 0)]


# Mean completion time: GPUs go where they shorten it most, job by job.


MOST_TRIED = 16
"""Most jobs with a deadline for which the allocation of all others is recomputed."""
LEAST, STEADY = 1e-9, 0.05


class Constants(NamedTuple):
    """Constants of ``completing``, tuned in ``benchmarks.cluster_agents``; results hardly depend on them.

    Attributes:
        scaling: exponent of speed over number of GPUs assumed to rank jobs, below 1.
        damping: exponent applied to a speedup.
        horizon_seconds: expected seconds until a job's nodes change again.
    """

    scaling: float = 0.75
    damping: float = 0.8
    horizon_seconds: float = 1000.0


USUAL = Constants()


def completing(
    weights: Sequence[float], ageing_seconds: Sequence[float], patience: float = np.inf, constants: Constants = USUAL
) -> Rule:
    """Make a rule that minimises the weighted mean completion time under priorities. More urgent jobs get their minimum
    first; no less urgent job runs while one waits. Further GPUs go where they shorten the weighted mean completion time
    most. Late jobs get their minimum, in order of submission.

    Args:
        weights: weight of completion times by queue, [Q].
        ageing_seconds: seconds of waiting after which a job rises one queue; infinite: never, [Q].
        patience: seconds of waiting after which a job is late and goes before all others.
        constants: constants of ``values``.
    """
    weight, ageing = np.array(weights, np.float64), np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> TargetAllocation:
        jobs, sizes = situation.jobs, grid(situation)
        worth = weight[jobs.queue] * (1.0 if situation.factor is None else situation.factor)
        value, due = values(situation, sizes, worth, constants), in_time(situation, sizes, worth, constants)
        level = urgency(jobs, situation.now, ageing, patience)
        late = level == LATE
        begin = _initial_positions(situation, sizes, np.where(late, -jobs.submitted, _first(value, sizes)), level)
        value = value if due is None else value + due
        value = np.where(late[:, None] & (sizes > jobs.minimum[:, None]), -np.inf, value)
        at = np.maximum(_best(value, sizes, begin, situation.gpus, due), 0)
        gpus = np.take_along_axis(sizes, at[:, None], axis=1)[:, 0]
        return TargetAllocation(gpus, np.argsort(-gpus, kind="stable"), packed=True)

    return rule


soonest = completing([1.0], [np.inf])
"""``completing`` for a single queue without ageing."""


def _best(value: Floats, sizes: Integers, begin: Integers, gpus: int, due: Floats | None) -> Integers:
    """Return the index into ``sizes`` [J, K] of each of J jobs' size, by ``marginal`` from indices ``begin`` [J], [J].

    GPUs needed to meet a deadline may be worth more together than one by one: a job left short of them starts with them
    instead if that raises the total value; jobs that need few are tried first. ``due`` [J, K]: value of meeting
    deadlines, included in ``value`` [J, K]; None: no deadlines."""

    def built(begins: Integers) -> Integers:
        has = int(np.take_along_axis(sizes, np.maximum(begins, 0)[:, None], axis=1).sum())
        return marginal(value, sizes, begins, gpus - has) if has <= gpus else begins

    at = built(begin)
    if due is None:
        return at
    rows, enough = np.arange(len(at)), (2 * due >= due.max(axis=1, initial=0.0)[:, None]).argmax(axis=1)
    short = np.flatnonzero((at >= 0) & (at < enough) & (begin < enough))
    for job in short[np.argsort(sizes[rows, enough][short], kind="stable")][:MOST_TRIED].tolist():
        begins = begin.copy()
        begins[job] = enough[job]
        other = built(begins)
        if value[rows, np.maximum(other, 0)].sum() > value[rows, np.maximum(at, 0)].sum():
            begin, at = begins, other
    return at


def _first(value: Floats, sizes: Integers) -> Floats:
    """Return the value of each of J jobs' minimum size, [J]; −∞: it can't run. ``value`` and ``sizes`` are [J, K]."""
    return np.take_along_axis(value, (sizes > 0).argmax(axis=1)[:, None], axis=1)[:, 0]


def _initial_positions(situation: Situation, sizes: Integers, first: Floats, level: Integers) -> Integers:
    """Return the position in ``sizes`` [J, K] at which each of J jobs starts, [J]: in order of ``level`` [J] (0 the
    most urgent, ``LATE`` before it), then of the larger ``first`` [J], its minimum of GPUs, or no GPUs (0) at the least
    urgent level or if it is larger than the cluster. The first that doesn't fit and all after it get −1."""
    early = (level < level.max(initial=0)) | (level == LATE)
    at = np.where(early & (situation.jobs.minimum <= situation.gpus), (sizes > 0).argmax(axis=1), 0)
    order = np.lexsort((-first, level))
    wanted = np.take_along_axis(sizes, at[:, None], axis=1)[order, 0]
    fits = np.empty(len(order), np.bool_)
    fits[order] = wanted.cumsum() <= situation.gpus
    return np.where(fits, at, -1)


def values(situation: Situation, sizes: Integers, weight: Floats, constants: Constants = USUAL) -> Floats:
    """Return the value of each of K ``sizes`` to each of J jobs, [J, K]; −∞ where not allowed.

    It is the speed relative to an equal share, damped, times ``weight`` [J] and the value of ending a second earlier.
    To rank jobs, time left counts 5 % less per doubling of a job's GPUs, so that ranks are stable. A change of nodes
    loses the restart's share of the time until the next change or the job's end; staying gains as much, so that similar
    jobs don't displace each other."""
    jobs = situation.jobs
    each = np.where(sizes > 0, situation.outlook.seconds_left(sizes), np.inf)
    seconds = usual_seconds(situation, each)
    count = weight * places(seconds * (1 + STEADY) ** -np.log2(1.0 + jobs.gpus), constants.scaling)
    least = max(situation.restart_seconds, LEAST)
    lost = situation.restart_seconds / np.clip(seconds, least, constants.horizon_seconds)
    runs, stays = jobs.gpus > 0, sizes == jobs.gpus[:, None]
    moved = np.where(runs, np.maximum(1.0 - lost, 0.0), 1.0)
    left = np.where(stays & runs[:, None], (1.0 + lost)[:, None], moved[:, None])
    worth = count[:, None] * (seconds[:, None] / each) ** constants.damping * left
    illegal = (sizes > jobs.maximum[:, None]) | ((sizes < jobs.minimum[:, None]) & (sizes > 0))
    return np.where(illegal, -np.inf, worth)


def usual_seconds(situation: Situation, each: Floats) -> Floats:
    """Return the seconds left, [J], of each of J jobs on an equal share of the GPUs; where none is usable, the least of
    ``each`` [J, K], its seconds left on K numbers of GPUs; 0: unknown."""
    count, shares = len(situation.jobs.requested), fitting(situation.capacity)
    shares = shares[(shares > 0) & (shares <= max(1, situation.gpus // max(1, count)))]
    usual = situation.outlook.seconds_left(np.broadcast_to(shares, (count, len(shares))))
    seconds = usual.min(axis=1, initial=np.inf)
    seconds = np.where(np.isfinite(seconds), seconds, each.min(axis=1))
    return np.where(np.isfinite(seconds), seconds, 0.0)


def in_time(situation: Situation, sizes: Integers, weight: Floats, constants: Constants) -> Floats | None:
    """Return the value of each of K ``sizes`` to each of J jobs for meeting deadlines, [J, K]; None: no job has a
    deadline. It is the probability of being in time, times the deadline's ``worth``, times the value of all jobs at
    usual speed and mean ``weight`` [J]."""
    due, jobs = situation.deadlines, situation.jobs
    if due is None:
        return None
    seconds = np.where(sizes > 0, situation.outlook.seconds_left(sizes), np.inf)
    moved = np.where(sizes == jobs.gpus[:, None], 0.0, situation.restart_seconds)
    all_jobs = float(weight.mean() * places(np.arange(len(weight), dtype=np.float64), constants.scaling).sum())
    return all_jobs * due.worth[:, None] * due.chance(situation.now, seconds + moved)


def places(seconds: Floats, scaling: float = USUAL.scaling) -> Floats:
    """Return the value of ending each of J jobs a second earlier, which grows with the number of jobs that it delays,
    [J].

    If speed grows as GPUs to the power of ``scaling``, and no jobs arrive, it is (iᶜ − (i − 1)ᶜ)^{1/c} for the job with
    the i-th longest ``seconds`` left [J], with c = 1/(1 − scaling) (Berg, Vesilo and Harchol-Balter, “heSRPT: Parallel
    scheduling to minimize mean slowdown”, 2020, theorem 3)."""
    place = np.empty(len(seconds))
    place[np.argsort(-seconds, kind="stable")] = np.arange(1.0, len(seconds) + 1)
    power = 1 / (1 - scaling)
    return np.asarray((place**power - (place - 1) ** power) ** (1 / power), np.float64)


# Priorities for any rule: it is applied to one level of urgency after the other.


class Part(NamedTuple):
    """Outlook restricted to K of the J jobs of another outlook; results have K rows.

    Attributes:
        whole: outlook of all J jobs.
        jobs: number of jobs J.
        rows: positions of the K jobs, [K].
    """

    whole: Outlook
    jobs: int
    rows: Integers

    def update_seconds(self) -> Floats:
        """Return seconds per unit of work of the K jobs on 0 to G GPUs, [K, G + 1]; infinite if a job can't use
        them."""
        return self.whole.update_seconds()[self.rows]

    def updates(self) -> Floats:
        """Return the remaining units of work of each of the K jobs, [K]."""
        return self.whole.updates()[self.rows]

    def goodput(self, gpus: Integers) -> Floats:
        """Return units of work per second, [K, R], of the K jobs on each of R numbers of GPUs, ``gpus`` [R]; 0 for
        numbers that a job can't use."""
        return self.whole.goodput(gpus)[self.rows]

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """Return the fall, 0 to 1, [K, R], of the K jobs' loss within ``seconds`` on R numbers of GPUs, ``gpus``
        [R]."""
        return self.whole.loss_reduction(gpus, seconds)[self.rows]

    def seconds_left(self, gpus: Integers) -> Floats:
        """Return seconds to completion, [K, R], of the K jobs on their R numbers of GPUs, ``gpus`` [K, R]; infinite for
        numbers that a job can't use."""
        every = np.zeros((self.jobs, gpus.shape[1]), np.int64)
        every[self.rows] = gpus
        return self.whole.seconds_left(every)[self.rows]


def in_levels(rule: Rule, ageing_seconds: Sequence[float], patience: float = np.inf) -> Rule:
    """Make a rule that applies ``rule`` to each level of urgency in turn, with the GPUs that the levels before left.
    Levels after one with a waiting job that could run on the whole cluster get nothing. Late jobs get their minimum in
    order of submission, whatever the rule, so that none starves.

    Args:
        rule: rule applied to each level.
        ageing_seconds: seconds of waiting after which a job rises one queue; infinite: never, [Q].
        patience: seconds of waiting after which a job is late.
    """
    ageing = np.array(ageing_seconds, np.float64)

    def levelled(situation: Situation) -> TargetAllocation:
        level = urgency(situation.jobs, situation.now, ageing, patience)
        if len(level) and level.min() == level.max() != LATE:
            return rule(situation)
        gpus, order, packed = np.zeros(len(level), np.int64), list[Integers](), False
        for one in np.unique(level).tolist():
            rows = np.flatnonzero(level == one)
            part = _part(situation, rows, situation.gpus - int(gpus.sum()))
            wanted = _fewest(part) if one == LATE or not part.gpus else rule(part)
            gpus[rows], packed = wanted.gpus, packed or wanted.packed
            order.append(rows[wanted.order])
            if ((wanted.gpus == 0) & (part.jobs.minimum <= situation.gpus)).any():
                break
        placed = np.concatenate(order)
        return TargetAllocation(gpus, np.concatenate([placed, np.setdiff1d(np.arange(len(level)), placed)]), packed)

    return levelled


def _fewest(situation: Situation) -> TargetAllocation:
    """Give each job its minimum of GPUs, in order of submission, until one doesn't fit."""
    order = np.argsort(situation.jobs.submitted, kind="stable")
    return TargetAllocation(admitted_in_order(situation.jobs.minimum, order, situation.gpus), order)


def _part(situation: Situation, rows: Integers, free: int) -> Situation:
    """Return ``situation`` reduced to the jobs at positions ``rows`` and ``free`` GPUs of the first nodes. Factors on
    weights, deadlines and neighbours are left out."""
    before = situation.capacity.cumsum() - situation.capacity
    capacity = np.clip(free - before, 0, situation.capacity)
    outlook = Part(situation.outlook, len(situation.jobs.queue), rows)
    return Situation(situation.now, capacity, table.keep(situation.jobs, rows), outlook, situation.restart_seconds)


# Optimus: each further GPU goes where it saves most time (Peng et al., EuroSys 2018).


def optimus(situation: Situation) -> TargetAllocation:
    """Give jobs their minimum of GPUs in order of submission; a job whose minimum doesn't fit gets none. Then give the
    free GPUs one by one, each to the job whose remaining time it shortens by the most seconds, until none would
    shorten any. Jobs with fewer GPUs are placed first."""
    jobs, free = situation.jobs, situation.gpus
    gpus = admit_fitting(jobs.minimum, np.arange(len(jobs.minimum)), free)
    free -= int(gpus.sum())
    if free:
        seconds, updates = situation.outlook.update_seconds(), situation.outlook.updates()
        with np.errstate(invalid="ignore"):  # where a job can't use so many
            saved = (seconds[:, 1:-1] - seconds[:, 2:]) * updates[:, None]  # [J, G - 1]: of one more than 1 to G - 1
        give(gpus, saved, np.minimum(jobs.maximum, situation.gpus), free)
    return TargetAllocation(gpus, np.argsort(gpus, kind="stable"))


def give(gpus: Integers, saving: Floats, limit: Integers, free: int) -> None:
    """Give ``free`` GPUs one by one to the job of largest positive saving; ties go to the first job.

    Args:
        gpus: GPUs of each of J jobs, [J]; updated in place. Jobs with 0 get none.
        saving: saving of each job by one more GPU than 1, 2, …, in any unit, [J, G − 1].
        limit: most GPUs of each job, [J].
        free: number of GPUs to give.
    """
    has, saved, most = gpus.tolist(), saving.tolist(), limit.tolist()
    first = [(job, gains[has[job] - 1]) for job, gains in enumerate(saved) if 0 < has[job] < most[job]]
    heap = [(-gain, job) for job, gain in first if gain > 0]
    heapq.heapify(heap)
    while free and heap:
        job = heap[0][1]
        has[job] += 1
        free -= 1
        gain = saved[job][has[job] - 1] if has[job] < most[job] else 0.0
        if gain > 0:
            heapq.heapreplace(heap, (-gain, job))
        else:
            heapq.heappop(heap)
    gpus[:] = has


# Baselines: equal share, first in first out, shortest remaining time first.


def equal_share(situation: Situation) -> TargetAllocation:
    """Give jobs equal numbers of GPUs within each job's limits; the remainder goes to the earlier jobs."""
    jobs, free = situation.jobs, situation.gpus
    gpus = admit_fitting(jobs.minimum, np.arange(len(jobs.minimum)), free)
    free -= int(gpus.sum())
    while free:
        open_ = (gpus > 0) & (gpus < jobs.maximum)
        if not open_.any():
            break
        least = gpus[open_].min()
        raised = np.flatnonzero(open_ & (gpus == least))[:free]
        gpus[raised] += 1
        free -= len(raised)
    return in_order(gpus)


def fifo(situation: Situation) -> TargetAllocation:
    """Give jobs the GPUs they request, in order of submission; a job that doesn't fit blocks all later ones."""
    requests = situation.jobs.requested
    return in_order(np.where(requests.cumsum() <= situation.gpus, requests, 0))


def srtf(situation: Situation) -> TargetAllocation:
    """Give jobs the GPUs they request, by shortest remaining time; jobs that don't fit are skipped."""
    # Positions of J jobs by seconds left on the GPUs they requested, shortest first, [J]; unknown times last
    seconds, requests = situation.outlook.update_seconds(), situation.jobs.requested
    left = seconds[np.arange(len(requests)), np.minimum(requests, seconds.shape[1] - 1)] * situation.outlook.updates()
    order = np.argsort(left, kind="stable")
    return TargetAllocation(admit_fitting(situation.jobs.requested, order, situation.gpus), order)


# SLAQ: each further GPU goes where the loss falls most (Zhang, Stafman, Or and Freedman, SoCC 2017).


SECONDS = 60.0
"""Horizon in seconds of the predicted fall of the loss."""


def slaq(situation: Situation) -> TargetAllocation:
    """Give jobs their minimum of GPUs, then single GPUs wherever one more adds most to the predicted fall of the
    normalised loss. If not all minimums fit, jobs with the largest fall per GPU come first."""
    jobs, free = situation.jobs, situation.gpus
    fall = situation.outlook.loss_reduction(np.arange(free + 1), SECONDS)
    first = np.take_along_axis(fall, np.minimum(jobs.minimum, free)[:, None], axis=1)[:, 0]
    gpus = admit_fitting(jobs.minimum, np.argsort(-first / np.maximum(jobs.minimum, 1), kind="stable"), free)
    most = np.minimum(jobs.maximum, free)
    give(gpus, np.diff(fall[:, 1:], axis=1), most, free - int(gpus.sum()))
    return TargetAllocation(gpus, np.argsort(gpus, kind="stable"))


# Tiresias: two queues by attained service, each first come first served (Gu et al., NSDI 2019).


def tiresias(situation: Situation) -> TargetAllocation:
    """Give jobs the GPUs they request, those not demoted first, then by time of demotion; skip jobs that don't fit."""
    jobs = situation.jobs
    since = np.where(jobs.demoted == NEVER, -np.inf, jobs.demoted)
    order = np.lexsort((np.arange(len(since)), since))
    return TargetAllocation(admit_fitting(jobs.requested, order, situation.gpus), order)

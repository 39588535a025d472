"""Strategies that decide how many GPUs each job gets, each from a published system."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.cluster import jobs as table
from app.kinds.cluster.jobs import NEVER, Floats, Integers, Jobs
from app.kinds.cluster.placement import Outlook, Rule, Situation, Wanted, admitted, in_order

# A joint allocation job by job: GPUs go where each of them is worth most, as long as there are any.


def marginal(value: Floats, sizes: Integers, begin: Integers, free: int) -> Integers:
    """Positions of the sizes that jobs end at, [J].

    Each step gives one job the further GPUs that are worth most each; steps are to any larger size that still fits, so
    that a size which is worth little by itself can be passed. Of equal ones the first job, and the smaller size, wins.

    Args:
        value: what each size is worth to each job, −∞ where it can't have it, [J, K].
        sizes: numbers of GPUs, not descending, [J, K].
        begin: positions of what jobs have already, [J]; −1 of those that get nothing.
        free: GPUs that are left beside those.
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
    """The best next step of one job among those that fit, if any is worth something."""
    (value, sizes), (job, at) = row, of
    start, end = np.searchsorted(sizes, [sizes[at], sizes[at] + free], side="right").tolist()
    if end <= start:
        return
    slope = (value[start:end] - value[at]) / (sizes[start:end] - sizes[at])
    best = int(slope.argmax())
    if slope[best] > 0:
        heapq.heappush(steps, (-float(slope[best]), job, start + best))


# Queues of several priorities with ageing: who waits long enough counts as of the next more urgent queue.


LATE = -1
"""The urgency of who has waited longer than anybody may; it comes before all queues."""


def urgency(jobs: Jobs, now: float, ageing_seconds: Floats, patience: float = np.inf) -> Integers:
    """The queue that each job counts as, 0 the most urgent, [J].

    A job rises by one for each ``ageing_seconds`` [Q] of its queue that it has waited in all, before it first ran or
    since; infinite: never. While it runs it stays where it is, so that it isn't sent back for having been served. Who
    has waited for more than ``patience`` seconds is ``LATE``.
    """
    waited = np.maximum(now - jobs.submitted - jobs.running, 0.0)
    risen = np.maximum(jobs.queue - (waited / ageing_seconds[jobs.queue]).astype(np.int64), 0)
    return np.where(waited > patience, LATE, risen)


def prioritised(ageing_seconds: Sequence[float], patience: float = np.inf) -> Rule:
    """What each asked for, the most urgent first, of equal ones the first submitted.

    Who doesn't fit keeps all after it waiting, whatever they ask for: nobody who is less urgent runs in its stead, and
    whoever has waited for its queue's number times ``ageing_seconds`` has only those before it that came before it.
    """
    ageing = np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> Wanted:
        jobs = situation.jobs
        order = np.lexsort((jobs.submitted, urgency(jobs, situation.now, ageing, patience)))
        return Wanted(admitted_in_order(jobs.asked, order, situation.gpus), order)

    return rule


def admitted_in_order(wanted: Integers, order: Integers, free: int) -> Integers:
    """What each job wants in its turn, until one doesn't fit, [J]; what can't ever fit keeps nobody waiting."""
    needed = np.where(wanted <= free, wanted, 0)[order]
    gpus = np.zeros(len(order), np.int64)
    gpus[order] = np.where(needed.cumsum() <= free, needed, 0)
    return gpus


# Goodput shared fairly: the objective of Pollux (Qiao et al., OSDI 2021, section 4.2), exactly maximised.


FLOOR = 1e-3


def goodput(situation: Situation) -> Wanted:
    """The GPUs that maximise the harmonic mean of the jobs' speed-ups over their fair shares.

    A job whose nodes would change counts less, by the time that its restarts have cost it. Numbers of GPUs are powers
    of two up to a node, or whole nodes, so that each set of them fits without a job that is split further than it must
    be. Of all such numbers these are the best (dynamic programming over jobs); Pollux searches by a genetic algorithm.
    """
    sizes = fitting(situation.capacity)
    cost = 1.0 / (speedups(situation, sizes) + FLOOR)
    positions = least(cost, sizes, situation.gpus)
    gpus = sizes[positions]
    return Wanted(gpus, np.argsort(-gpus, kind="stable"), packed=True)


def fitting(capacity: Integers) -> Integers:
    """Nothing, powers of two up to the largest node, and multiples of it, up to all GPUs, [R]."""
    total, node = int(capacity.sum()), max(1, int(capacity.max(initial=0)))
    powers = [2**i for i in range(node.bit_length()) if 2**i < node]
    return np.array([0, *(size for size in powers if size <= total), *range(node, total + 1, node)], np.int64)


def speedups(situation: Situation, sizes: Integers) -> Floats:
    """What each job would gain on each number of GPUs over its fair share, as Pollux counts it, [J, R]."""
    jobs, gpus = situation.jobs, situation.gpus
    fair = np.minimum(-(-gpus // len(jobs.asked)), np.maximum(jobs.maximum, 1))
    asked = np.unique(np.concatenate([sizes, fair]))
    value = situation.outlook.goodput(asked)
    base = value[np.arange(len(fair)), np.searchsorted(asked, fair)]
    own = value[:, np.searchsorted(asked, sizes)]
    base = np.where(base > 0, base, own.max(axis=1, initial=0.0))
    scaled = own / np.where(base > 0, base, 1.0)[:, None] * len(situation.capacity) / max(gpus, 1)
    legal = (sizes >= jobs.minimum[:, None]) & (sizes <= jobs.maximum[:, None])
    stays = sizes == jobs.gpus[:, None]
    return np.where(legal, scaled * np.where(stays, 1.0, kept_share(situation)[:, None]), 0.0)


def kept_share(situation: Situation) -> Floats:
    """How much of a speed-up another restart leaves, [J]."""
    jobs, cost = situation.jobs, situation.restart_seconds
    age, before = situation.now - jobs.submitted, np.maximum(jobs.restarts - 1, 0)
    return np.asarray(np.maximum(age - before * cost, 0.0) / np.maximum(age + cost, 1e-9), np.float64)


def least(cost: Floats, sizes: Integers, total: int) -> Integers:
    """Positions of the sizes, one a job, that cost least together and are ``total`` at most, [J]; cost is [J, R]."""
    there = np.arange(total + 1) - sizes[:, None]  # [R, G + 1]: what is left for the jobs before
    illegal = there < 0
    there = np.maximum(there, 0)
    known, choices = np.zeros(total + 1), np.zeros((len(cost), total + 1), np.int64)
    for job, row in enumerate(cost):
        all_ = np.where(illegal, np.inf, known[there] + row[:, None])
        choices[job] = all_.argmin(axis=0)
        known = all_.min(axis=0)
    found, left = np.zeros(len(cost), np.int64), total
    for job in range(len(cost) - 1, -1, -1):
        found[job] = choices[job, left]
        left -= int(sizes[found[job]])
    return found


# Numbers of GPUs that jobs may have.


MOST_MULTIPLES = 16
"""Of nodes; beyond, numbers of nodes double."""


def grid(situation: Situation) -> Integers:
    """Numbers of GPUs for each job: 0, and from its fewest to its most, what it has among them, not descending, [J, K].

    They are numbers that fit nodes, see ``fitting``, clipped; so some stand several times.
    """
    jobs, fit = situation.jobs, thinned(situation.capacity)
    most = np.clip(jobs.maximum, jobs.minimum, situation.gpus)
    sizes = np.concatenate([np.tile(fit, (len(most), 1)), jobs.gpus[:, None]], axis=1)
    sizes = np.sort(np.clip(sizes, jobs.minimum[:, None], most[:, None]), axis=1)
    return np.concatenate([np.zeros((len(most), 1), np.int64), sizes], axis=1)


def thinned(capacity: Integers) -> Integers:
    """Numbers that fit nodes, from 0 on, of many multiples of nodes few, [R]; on a single small node any fits."""
    node = max(1, int(capacity.max(initial=0)))
    if len(capacity) == 1 and node <= MOST_MULTIPLES:
        return np.arange(int(capacity.sum()) + 1)
    sizes = fitting(capacity)
    multiples = sizes // node
    return sizes[(multiples <= MOST_MULTIPLES) | (multiples & (multiples - 1) == 0)]


# The mean completion time: GPUs go where they shorten it most, job by job.


MOST_TRIED = 16
"""Jobs with a deadline for which all others are placed anew."""
LEAST, STEADY = 1e-9, 0.05


class Constants(NamedTuple):
    """Chosen by ``benchmarks.cluster_agents``; what they are worth hardly depends on them.

    Attributes:
        scaling: power of GPUs by which speed is taken to grow where jobs are ranked.
        damping: power of a speed-up that counts.
        horizon_seconds: after which the next change of a job's nodes is expected.
    """

    scaling: float = 0.75
    damping: float = 0.8
    horizon_seconds: float = 1000.0


USUAL = Constants()


def completing(
    weights: Sequence[float], ageing_seconds: Sequence[float], patience: float = np.inf, constants: Constants = USUAL
) -> Rule:
    """Jobs of several queues, the most urgent first: of each its weight, and the seconds after which its jobs rise.

    While a job waits, nobody who is less urgent starts or goes on; beyond that GPUs go where they shorten the weighted
    mean completion time most. So an urgent job has its fewest GPUs before anybody else, and of those that would help it
    little, what its weight is worth. Who is late has its fewest, in order of submission.

    Args:
        weights: of a job's completion time, by queue.
        ageing_seconds, patience: as in ``urgency``.
        constants: of ``values``.
    """
    weight, ageing = np.array(weights, np.float64), np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> Wanted:
        jobs, sizes = situation.jobs, grid(situation)
        worth = weight[jobs.queue] * (1.0 if situation.factor is None else situation.factor)
        value, due = values(situation, sizes, worth, constants), in_time(situation, sizes, worth, constants)
        level = urgency(jobs, situation.now, ageing, patience)
        late = level == LATE
        begin = _admitted(situation, sizes, np.where(late, -jobs.submitted, _first(value, sizes)), level)
        value = value if due is None else value + due
        value = np.where(late[:, None] & (sizes > jobs.minimum[:, None]), -np.inf, value)
        at = np.maximum(_best(value, sizes, begin, situation.gpus, due), 0)
        gpus = np.take_along_axis(sizes, at[:, None], axis=1)[:, 0]
        return Wanted(gpus, np.argsort(-gpus, kind="stable"), packed=True)

    return rule


soonest = completing([1.0], [np.inf])
"""Of one queue: GPUs shorten the mean completion time."""


def _best(value: Floats, sizes: Integers, begin: Integers, gpus: int, due: Floats | None) -> Integers:
    """Positions of the sizes that jobs end at, [J].

    GPUs that make a job be in time may be worth more together than each by itself: where steps have left it without, it
    begins with them, if all are worth more then; jobs that take few come first.
    """

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
    """What the fewest GPUs that each job can use are worth to it, [J]; −∞: it can use none."""
    return np.take_along_axis(value, (sizes > 0).argmax(axis=1)[:, None], axis=1)[:, 0]


def _admitted(situation: Situation, sizes: Integers, first: Floats, level: Integers) -> Integers:
    """Where jobs begin, [J]: with the fewest GPUs that they can use, in order of urgency; −1: not at all.

    Of equally urgent ones those of the largest ``first`` [J] come first. The least urgent begin with nothing, but for
    who is late; who could not run on all nodes keeps nobody waiting.
    """
    early = (level < level.max(initial=0)) | (level == LATE)
    at = np.where(early & (situation.jobs.minimum <= situation.gpus), (sizes > 0).argmax(axis=1), 0)
    order = np.lexsort((-first, level))
    wanted = np.take_along_axis(sizes, at[:, None], axis=1)[order, 0]
    fits = np.empty(len(order), np.bool_)
    fits[order] = wanted.cumsum() <= situation.gpus
    return np.where(fits, at, -1)


def values(situation: Situation, sizes: Integers, weight: Floats, constants: Constants = USUAL) -> Floats:
    """What numbers of GPUs are worth to each job, −∞ where it can't use so many, [J, K] as ``sizes``.

    Speeds are relative to that on an equal share, and count by ``places``; for that what is left of a job counts 5 %
    less whenever its GPUs double, so that ranks don't change with every measurement. A change of nodes takes away what
    is lost by a restart, if the next comes after ``horizon_seconds``, or after the job; to stay is worth as much more,
    since who gives way restarts later. So of jobs that are alike nobody gives way to another.
    """
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
    """Seconds that are left of jobs on an equal share, or else on what is best of ``each`` [J, K]; 0: unknown, [J]."""
    count, shares = len(situation.jobs.asked), fitting(situation.capacity)
    shares = shares[(shares > 0) & (shares <= max(1, situation.gpus // max(1, count)))]
    usual = situation.outlook.seconds_left(np.broadcast_to(shares, (count, len(shares))))
    seconds = usual.min(axis=1, initial=np.inf)
    seconds = np.where(np.isfinite(seconds), seconds, each.min(axis=1))
    return np.where(np.isfinite(seconds), seconds, 0.0)


def in_time(situation: Situation, sizes: Integers, weight: Floats, constants: Constants) -> Floats | None:
    """What numbers of GPUs are worth for deadlines, [J, K] as ``sizes``; None: no job has any.

    To be in time is worth as much as the usual speed of all jobs together, by how probable it is.
    """
    due, jobs = situation.deadlines, situation.jobs
    if due is None:
        return None
    seconds = np.where(sizes > 0, situation.outlook.seconds_left(sizes), np.inf)
    moved = np.where(sizes == jobs.gpus[:, None], 0.0, situation.restart_seconds)
    all_jobs = float(weight.mean() * places(np.arange(len(weight), dtype=np.float64), constants.scaling).sum())
    return all_jobs * due.worth[:, None] * due.chance(situation.now, seconds + moved)


def places(seconds: Floats, scaling: float = USUAL.scaling) -> Floats:
    """What a second less of each job is worth by how many jobs it keeps waiting, [J]; ``seconds`` are left of each.

    If speed grew as GPUs to the power of ``scaling``, and no more jobs came, the sum of completion times fell by so
    much for each second less of the i-th longest job: (iᶜ − (i − 1)ᶜ)^{1/c} with c = 1/(1 − scaling) (Berg,
    Vesilo and Harchol-Balter, “heSRPT: Parallel scheduling to minimize mean slowdown”, 2020, theorem 3).
    """
    place = np.empty(len(seconds))
    place[np.argsort(-seconds, kind="stable")] = np.arange(1.0, len(seconds) + 1)
    power = 1 / (1 - scaling)
    return np.asarray((place**power - (place - 1) ** power) ** (1 / power), np.float64)


# Any rule under priorities: one level of urgency after the other, and nobody in the stead of who is more urgent.


class Part(NamedTuple):
    """What an ``Outlook`` expects of K of its jobs; results have K rows.

    Attributes:
        whole: of all J.
        jobs: J.
        rows: positions of those, [K].
    """

    whole: Outlook
    jobs: int
    rows: Integers

    def update_seconds(self) -> Floats:
        """Seconds of a step, [K, …], as ``Outlook.update_seconds``."""
        return self.whole.update_seconds()[self.rows]

    def updates(self) -> Floats:
        """Steps that are left, [K], as ``Outlook.updates``."""
        return self.whole.updates()[self.rows]

    def goodput(self, gpus: Integers) -> Floats:
        """Goodput on numbers of GPUs, as ``Outlook.goodput``."""
        return self.whole.goodput(gpus)[self.rows]

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """Loss reduction within some seconds, as ``Outlook.loss_reduction``."""
        return self.whole.loss_reduction(gpus, seconds)[self.rows]

    def seconds_left(self, gpus: Integers) -> Floats:
        """Seconds to completion on numbers of GPUs, as ``Outlook.seconds_left``."""
        every = np.zeros((self.jobs, gpus.shape[1]), np.int64)
        every[self.rows] = gpus
        return self.whole.seconds_left(every)[self.rows]


def in_levels(rule: Rule, ageing_seconds: Sequence[float], patience: float = np.inf) -> Rule:
    """What ``rule`` gives to the jobs of each level of urgency, of what those before have left.

    Where one of them waits who could run on all nodes, nobody of the levels after it runs. Who is late gets its fewest
    GPUs, in order of submission, whatever the rule says: so nobody waits for ever.

    Args:
        rule: of each level.
        ageing_seconds, patience: as in ``urgency``.
    """
    ageing = np.array(ageing_seconds, np.float64)

    def levelled(situation: Situation) -> Wanted:
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
        return Wanted(gpus, np.concatenate([placed, np.setdiff1d(np.arange(len(level)), placed)]), packed)

    return levelled


def _fewest(situation: Situation) -> Wanted:
    """The fewest GPUs of each, as long as any is free."""
    order = np.argsort(situation.jobs.submitted, kind="stable")
    return Wanted(admitted_in_order(situation.jobs.minimum, order, situation.gpus), order)


def _part(situation: Situation, rows: Integers, free: int) -> Situation:
    """Some of the jobs, and as many of the GPUs as are free: of the first nodes.

    Without weights and deadlines of jobs, which no rule within levels heeds.
    """
    before = situation.capacity.cumsum() - situation.capacity
    capacity = np.clip(free - before, 0, situation.capacity)
    outlook = Part(situation.outlook, len(situation.jobs.queue), rows)
    return Situation(situation.now, capacity, table.keep(situation.jobs, rows), outlook, situation.restart_seconds)


# Optimus: GPUs go one by one to where each saves most time (Peng et al., EuroSys 2018).


def optimus(situation: Situation) -> Wanted:
    """The fewest GPUs for each job, in order of submission, then one more wherever that saves most of the time left.

    Jobs that have fewer GPUs are placed first.
    """
    jobs, free = situation.jobs, situation.gpus
    gpus = admitted(jobs.minimum, np.arange(len(jobs.minimum)), free)
    free -= int(gpus.sum())
    if free:
        seconds, updates = situation.outlook.update_seconds(), situation.outlook.updates()
        with np.errstate(invalid="ignore"):  # where a job can't use so many
            saved = (seconds[:, 1:-1] - seconds[:, 2:]) * updates[:, None]  # [J, G - 1]: of one more than 1 to G - 1
        give(gpus, saved, np.minimum(jobs.maximum, situation.gpus), free)
    return Wanted(gpus, np.argsort(gpus, kind="stable"))


def give(gpus: Integers, saving: Floats, limit: Integers, free: int) -> None:
    """GPUs one by one to the largest saving, as long as there is one; of equal ones to the first job.

    Args:
        gpus: of each job, [J]; it changes in place. Who has none gets none.
        saving: what one more than 1, 2, … saves each job, [J, G − 1].
        limit: GPUs of each job, [J].
        free: how many there are.
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


# Plain rules: equal shares, first come first served, shortest remaining time first.


def equal_share(situation: Situation) -> Wanted:
    """As many GPUs for each job as for any other, within what each can use; the earlier jobs get what is left over."""
    jobs, free = situation.jobs, situation.gpus
    gpus = admitted(jobs.minimum, np.arange(len(jobs.minimum)), free)
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


def fifo(situation: Situation) -> Wanted:
    """What each asked for, in order of submission; who doesn't fit keeps all later ones waiting."""
    asked = situation.jobs.asked
    return in_order(np.where(asked.cumsum() <= situation.gpus, asked, 0))


def srtf(situation: Situation) -> Wanted:
    """What each asked for, the shortest remaining time on that first; who doesn't fit lets later ones pass."""
    order = shortest_first(situation)
    return Wanted(admitted(situation.jobs.asked, order, situation.gpus), order)


def shortest_first(situation: Situation) -> Integers:
    """Jobs by the time that is left on the GPUs that they asked for, [J]; unknown times last."""
    seconds, asked = situation.outlook.update_seconds(), situation.jobs.asked
    left = seconds[np.arange(len(asked)), np.minimum(asked, seconds.shape[1] - 1)] * situation.outlook.updates()
    return np.argsort(left, kind="stable")


# SLAQ: GPUs go one by one where the loss falls most (Zhang, Stafman, Or and Freedman, SoCC 2017).


SECONDS = 60.0
"""Over which the fall of the loss is predicted."""


def slaq(situation: Situation) -> Wanted:
    """The fewest GPUs for each job, then one more wherever the predicted fall of the normalised loss grows most.

    Where not all jobs can have their fewest, those come first whose loss falls most for each GPU.
    """
    jobs, free = situation.jobs, situation.gpus
    fall = situation.outlook.loss_reduction(np.arange(free + 1), SECONDS)
    first = np.take_along_axis(fall, np.minimum(jobs.minimum, free)[:, None], axis=1)[:, 0]
    gpus = admitted(jobs.minimum, np.argsort(-first / np.maximum(jobs.minimum, 1), kind="stable"), free)
    most = np.minimum(jobs.maximum, free)
    give(gpus, np.diff(fall[:, 1:], axis=1), most, free - int(gpus.sum()))
    return Wanted(gpus, np.argsort(gpus, kind="stable"))


# Tiresias: two queues by attained service, each first come first served (Gu et al., NSDI 2019).


def tiresias(situation: Situation) -> Wanted:
    """Each job whose asked GPUs still fit runs: those not yet demoted first, then others in order of their demotion."""
    jobs = situation.jobs
    since = np.where(jobs.demoted == NEVER, -np.inf, jobs.demoted)
    order = np.lexsort((np.arange(len(since)), since))
    return Wanted(admitted(jobs.asked, order, situation.gpus), order)

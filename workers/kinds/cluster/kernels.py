"""The compiled simulator of clusters: time, allocation of GPUs, placement on nodes, and observations.

Letters in shapes: B clusters, L jobs of a cluster, J active ones in order of submission, N nodes, R sizes that jobs may
get, A applications. The arguments ``b``, ``job`` are indices.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.policies import ENTRIES, LARGEST, SHORT
from app.kinds.cluster.strategies import LATE, LEAST, STEADY, USUAL, Constants
from workers.kinds.compiling import Compiler

kernel = Compiler(Path(__file__).parent, Path(__file__)).kernel

CAME, THERE, ENDED, CHANGED = range(4)
UNDISTURBED = np.zeros((0, 0))


class Rules(NamedTuple):
    """Constants of all clusters: A applications with up to E epochs, Q queues, up to G GPUs.

    Attributes:
        sizes: numbers of GPUs that jobs may get, ascending from 0, [R].
        rate: iterations per second by application, GPUs (at least at ``sizes``) and epoch, [A, G + 1, E].
        ends: iterations at which epochs end, [A, E].
        epochs: number of epochs, [A].
        most: most GPUs that a job can use, [A].
        interval: length of an interval, seconds.
        restart: seconds that a restart takes.
        growth: largest ratio of a job's GPUs to the most GPUs that it has had; 0: unlimited.
        weight: weight of the jobs of each queue, [Q].
        ageing: seconds of waiting after which a job counts as one queue more urgent, infinite: never, [Q].
        patience: seconds of waiting after which a job precedes all others.
        constants: exponents and horizon in the value of GPUs (``app.kinds.cluster.strategies.Constants``).
        log_slowdown: natural log of the factor on an application's (row) seconds per step beside a job of another
            (column), [A, A]; [0, 0]: no interference.
    """

    sizes: Integers
    rate: Floats
    ends: Floats
    epochs: Integers
    most: Integers
    interval: float
    restart: float
    growth: int
    weight: Floats
    ageing: Floats
    patience: float
    constants: Constants = USUAL
    log_slowdown: Floats = UNDISTURBED


class Clusters(NamedTuple):
    """State of B clusters with L jobs and N nodes each; all but the first seven arrays change in place.

    Attributes:
        time, application, queue, asked: submission in seconds, indices and requested GPUs of each job, [B, L]; times
            after the end of a shorter log are infinite.
        expected: iterations that a job is believed to need before it runs; 0: the true number is used, [B, L].
        change: seconds, node, and the node's GPUs from then on, of each change of capacity in order, [B, K, 3].
        speed: relative speed of each node's GPUs; a job runs at the slowest of its nodes, [B, N].
        now: seconds since the start, [B].
        counts: jobs that have come, are active, have ended; changes of capacity made, [B, 4].
        there: active jobs in order of submission, in the first ``counts[THERE]`` columns, [B, L].
        done, epoch: iterations and epochs completed, [B, L].
        gpus: GPUs of each job, [B, L].
        held: its GPUs on each node, [B, L, N].
        running: seconds for which it has had GPUs, [B, L].
        restarting: seconds until it trains again, [B, L].
        restarts: number of changes of its nodes, [B, L].
        been: most GPUs on which it has trained, [B, L].
        completed: seconds from submission to completion; NaN before, [B, L].
        factor: factor of its weight, set by agents, [B, L].
        worth: factor of its weight by its data, [B, L].
        ceiling: most GPUs that convergence leaves it, [B, L].
        capacity: GPUs of each node, [B, N].
    """

    time: Floats
    application: Integers
    queue: Integers
    asked: Integers
    expected: Floats
    change: Floats
    speed: Floats
    now: Floats
    counts: Integers
    there: Integers
    done: Floats
    epoch: Integers
    gpus: Integers
    held: Integers
    running: Floats
    restarting: Floats
    restarts: Integers
    been: Integers
    completed: Floats
    factor: Floats
    worth: Floats
    ceiling: Integers
    capacity: Integers


@kernel
def pass_interval(rules: Rules, clusters: Clusters, b: int) -> None:
    """Let an interval pass in cluster ``b``, in place: jobs train and end, capacity changes, jobs come."""
    stay, c, slower = 0, clusters, slowdowns(rules, clusters, b)
    for at in range(c.counts[b, THERE]):
        job = c.there[b, at]
        ended = _train_job(rules, c, b, job, slower[at])
        if ended >= 0:
            c.completed[b, job] = c.now[b] + ended - c.time[b, job]
            c.held[b, job], c.gpus[b, job] = 0, 0
            c.counts[b, ENDED] += 1
        else:
            c.there[b, stay] = job
            stay += 1
    c.now[b] += rules.interval
    while c.counts[b, CHANGED] < c.change.shape[1] and c.change[b, c.counts[b, CHANGED], 0] <= c.now[b]:
        _, node, gpus = c.change[b, c.counts[b, CHANGED]]
        c.capacity[b, int(node)] = int(gpus)
        c.counts[b, CHANGED] += 1
    while c.counts[b, CAME] < c.time.shape[1] and c.time[b, c.counts[b, CAME]] <= c.now[b]:
        c.there[b, stay] = c.counts[b, CAME]
        c.counts[b, CAME] += 1
        stay += 1
    c.counts[b, THERE] = stay


@kernel
def slowdowns(rules: Rules, c: Clusters, b: int) -> Floats:
    """Return the factor of each active job's seconds per step by jobs on the same nodes, [J]; 1: no interference."""
    there = c.there[b, : c.counts[b, THERE]]
    if not len(rules.log_slowdown):
        return np.ones(len(there))
    result = np.zeros(len(there))
    for at in range(len(there)):
        for other in there:
            if other != there[at] and _share_a_node(c.held[b, there[at]], c.held[b, other]):
                result[at] += rules.log_slowdown[c.application[b, there[at]], c.application[b, other]]
    return np.exp(result)


@kernel
def _share_a_node(one: Integers, other: Integers) -> bool:
    shared = False
    for node in range(len(one)):
        shared = shared or (one[node] > 0 and other[node] > 0)
    return shared


@kernel
def _train_job(rules: Rules, c: Clusters, b: int, job: int, slower: float) -> float:
    """Train a job for an interval, its seconds per step times ``slower``; return the second of the interval at which it
    ended, or −1. Epochs end after whole seconds."""
    kind, gpus, seconds = c.application[b, job], c.gpus[b, job], rules.interval
    if not gpus:
        return -1.0
    c.running[b, job] += seconds
    left = seconds - min(c.restarting[b, job], seconds)
    c.restarting[b, job] = max(c.restarting[b, job] - seconds, 0.0)
    slowest = np.inf
    for node in range(c.held.shape[2]):
        if c.held[b, job, node]:
            slowest = min(slowest, c.speed[b, node])
    slowest /= slower
    while left > 0:
        c.been[b, job] = max(c.been[b, job], gpus)
        rate = rules.rate[kind, gpus, c.epoch[b, job]] * slowest
        end, reached = rules.ends[kind, c.epoch[b, job]], c.done[b, job] + rate * left
        if reached < end:
            c.done[b, job] = reached
            break
        left -= np.rint((end - c.done[b, job]) / rate)
        c.done[b, job] = end
        c.epoch[b, job] += 1
        if c.epoch[b, job] == rules.epochs[kind]:
            return seconds - left
    return -1.0


@kernel
def apply_allocation(rules: Rules, c: Clusters, b: int, wanted: Integers) -> int:
    """Give the active jobs ``wanted`` GPUs [J] and nodes; moved jobs restart. Return how many of them had GPUs."""
    there, moved = c.there[b, : len(wanted)], 0
    before = c.held[b][there]
    allocation = place_gpus(c.capacity[b], before, wanted)
    for at in range(len(there)):
        job = there[at]
        if (allocation[at] != before[at]).any():
            moved += c.gpus[b, job] > 0
            if wanted[at]:
                c.restarts[b, job] += 1
                c.restarting[b, job] = rules.restart
        c.gpus[b, job] = wanted[at]
        c.held[b, job] = allocation[at]
    return moved


# Allocation of GPUs in one cluster, as ``app.kinds.cluster.strategies.completing``; compiled.


@kernel
def most_gpus(rules: Rules, c: Clusters, b: int) -> Integers:
    """Return the most GPUs that each active job may get, [J]: the least of its application's limit, ``growth`` times
    the most that it has had, and its ceiling, which is lower for jobs that gain little."""
    limits = np.empty(c.counts[b, THERE], np.int64)
    for at in range(len(limits)):
        job = c.there[b, at]
        limits[at] = rules.most[c.application[b, job]]
        if rules.growth:
            limits[at] = min(limits[at], max(1, rules.growth * c.been[b, job]))
        limits[at] = min(limits[at], c.ceiling[b, job])
    return limits


@kernel
def urgency(rules: Rules, c: Clusters, b: int) -> Integers:
    """Return each active job's effective queue, [J], 0 the most urgent: one less per ``ageing`` seconds that it has
    waited, and ``LATE`` beyond the patience."""
    urgency = np.empty(c.counts[b, THERE], np.int64)
    for at in range(len(urgency)):
        job = c.there[b, at]
        waited = max(c.now[b] - c.time[b, job] - c.running[b, job], 0.0)
        urgency[at] = max(c.queue[b, job] - int(waited / rules.ageing[c.queue[b, job]]), 0)
        if waited > rules.patience:
            urgency[at] = LATE
    return urgency


@kernel
def allocate_gpus(rules: Rules, c: Clusters, b: int) -> Integers:
    """Return the GPUs of each active job, [J]: the fewest in order of urgency, then more by marginal value."""
    limit, level = most_gpus(rules, c, b), urgency(rules, c, b)
    limit = np.where(level == LATE, np.minimum(limit, rules.sizes[1]), limit)
    total, value = c.capacity[b].sum(), values(rules, c, b, limit)
    begin = initial_sizes(
        rules, level, np.where(level == LATE, -c.time[b][c.there[b, : len(limit)]], value[:, 1]), total
    )
    at = marginal(value, rules.sizes, limit, begin, total - rules.sizes[np.maximum(begin, 0)].sum())
    return rules.sizes[np.maximum(at, 0)]


@kernel
def initial_sizes(rules: Rules, level: Integers, first: Floats, total: int) -> Integers:
    """Return each of J jobs' initial index into ``sizes``, [J]: 1 (fewest GPUs), 0 (none yet), −1 (it gets none).

    In order of ``level`` [J] (0 most urgent), within it by decreasing ``first`` [J], jobs get 1, but 0 in the least
    urgent level unless it is ``LATE``; from the first that doesn't fit in ``total`` GPUs on, they get −1."""
    initial_sizes, used, fewest = np.zeros(len(level), np.int64), 0, rules.sizes[1]
    for one in np.unique(level):
        rows = np.flatnonzero(level == one)
        early = fewest <= total and (one < level.max() or one == LATE)
        for at in rows[np.argsort(-first[rows], kind="mergesort")]:
            used += fewest if early else 0
            initial_sizes[at] = -1 if used > total else int(early)
    return initial_sizes


@kernel
def seconds_left(rules: Rules, c: Clusters, b: int, job: int) -> Floats:
    """Return a job's seconds left at each of ``sizes``, [R], infinite at 0 GPUs; before it runs, by ``expected``."""
    kind, epoch = c.application[b, job], c.epoch[b, job]
    left = rules.ends[kind, rules.epochs[kind] - 1] - c.done[b, job]
    if not c.been[b, job] and c.expected[b, job]:
        left = c.expected[b, job]
    seconds_left = np.empty(len(rules.sizes))
    for at in range(len(seconds_left)):
        seconds_left[at] = left / rules.rate[kind, rules.sizes[at], epoch]
    return seconds_left


@kernel
def usual_seconds(each: Floats, sizes: Integers, fair: int) -> float:
    """Return the least of the seconds left ``each`` [R] on ``sizes`` [R] up to ``fair`` GPUs; if all are ∞, on any."""
    least = each[sizes <= fair].min()
    return least if least < np.inf else each.min()


@kernel
def values(rules: Rules, c: Clusters, b: int, limit: Integers) -> Floats:
    """Return the value of each of ``sizes`` to each active job, [J, R]; −∞ above ``limit`` GPUs [J].

    It is the job's weight, larger for shorter jobs, times a power of its speed-up over a fair share, less by the share
    of its time that a restart takes if its size changes."""
    count, sizes, total = len(limit), rules.sizes, c.capacity[b].sum()
    there = c.there[b, :count]
    each, seconds = np.empty((count, len(sizes))), np.empty(count)
    for at in range(count):
        each[at] = seconds_left(rules, c, b, there[at])
        seconds[at] = usual_seconds(each[at], sizes, max(1, total // count))
    scaling, damping, horizon = rules.constants
    place, power, result = np.empty(count), 1 / (1 - scaling), np.full((count, len(sizes)), -np.inf)
    ranked = seconds * (1 + STEADY) ** -np.log2(1.0 + c.gpus[b][there])
    place[np.argsort(-ranked, kind="mergesort")] = np.arange(1.0, count + 1)
    for at in range(count):
        job = there[at]
        lost = rules.restart / min(max(seconds[at], rules.restart, LEAST), horizon)
        counts = (place[at] ** power - (place[at] - 1) ** power) ** (1 / power)
        counts *= rules.weight[c.queue[b, job]] * c.worth[b, job] * c.factor[b, job]
        result[at, 0] = 0.0
        for size in range(1, len(sizes)):
            if sizes[size] <= limit[at]:
                share = 1.0
                if c.gpus[b, job]:
                    share = 1.0 + lost if c.gpus[b, job] == sizes[size] else max(1.0 - lost, 0.0)
                result[at, size] = counts * (seconds[at] / each[at, size]) ** damping * share
    return result


@kernel
def marginal(value: Floats, sizes: Integers, limit: Integers, begin: Integers, free: int) -> Integers:
    """Return each job's final index into ``sizes``, [J], by greedy marginal value per GPU.

    Args:
        value: value of each size to each job, [J, R].
        sizes: numbers of GPUs, [R].
        limit: most GPUs of each job, [J].
        begin: initial indices; −1: the job gets nothing, [J].
        free: GPUs left beside the initial ones.
    """
    count = len(value)
    at, target = begin.copy(), np.full(count, -1)
    slope, stale = np.zeros(count), begin >= 0
    while True:
        best = -1
        for job in range(count):
            if stale[job] or (target[job] >= 0 and sizes[target[job]] - sizes[at[job]] > free):
                stale[job], target[job], slope[job] = False, -1, 0.0
                for size in range(at[job] + 1, len(sizes)):
                    more = sizes[size] - sizes[at[job]]
                    if sizes[size] > limit[job] or more > free:
                        break
                    each = (value[job, size] - value[job, at[job]]) / more
                    if each > slope[job]:
                        slope[job], target[job] = each, size
            if target[job] >= 0 and (best < 0 or slope[job] > slope[best]):
                best = job
        if best < 0:
            return at
        free -= sizes[target[best]] - sizes[at[best]]
        at[best], stale[best] = target[best], True


NOBODY, WIDTH = -1, len(ENTRIES)


@kernel
def decide(rules: Rules, clusters: Clusters) -> Integers:
    """Allocate GPUs in each cluster by urgency, then marginal value; return how many jobs that had GPUs moved, [B]."""
    moved = np.zeros(len(clusters.now), np.int64)
    for b in range(len(moved)):
        if clusters.counts[b, THERE]:
            moved[b] = apply_allocation(rules, clusters, b, allocate_gpus(rules, clusters, b))
    return moved


@kernel
def elapse(rules: Rules, clusters: Clusters) -> None:
    """Advance each cluster by ``rules.interval`` seconds, in place: jobs train and end, capacity changes, jobs come."""
    for b in range(len(clusters.now)):
        pass_interval(rules, clusters, b)


@kernel
def beside_others(rules: Rules, clusters: Clusters) -> Floats:
    """Return the factor of each job's seconds per step by jobs on the same nodes, [B, L]; 1 without any."""
    result = np.ones(clusters.time.shape)
    for b in range(len(result)):
        slower = slowdowns(rules, clusters, b)
        for at in range(len(slower)):
            result[b, clusters.there[b, at]] = slower[at]
    return result


@kernel
def price_per_hour(clusters: Clusters, price: Floats) -> Floats:
    """Return the price per hour of each job's GPUs, [B, L], from the nodes' ``price`` per GPU and hour, [N]."""
    result = np.zeros(clusters.time.shape)
    for b in range(len(result)):
        for at in range(clusters.counts[b, THERE]):
            job = clusters.there[b, at]
            for node in range(len(price)):
                result[b, job] += price[node] * clusters.held[b, job, node]
    return result


@kernel
def next_weighed_job(clusters: Clusters, weighed: Floats) -> Integers:
    """Return the active job of each cluster whose weight was decided longest ago, [B]; ``NOBODY`` if no job is active.

    Args:
        clusters: B clusters.
        weighed: seconds at which each weight was decided; negative: never, [B, L].
    """
    result = np.full(len(clusters.now), NOBODY)
    for b in range(len(result)):
        for at in range(clusters.counts[b, THERE]):
            job = clusters.there[b, at]
            if result[b] == NOBODY or weighed[b, job] < weighed[b, result[b]]:
                result[b] = job
    return result


@kernel
def observe_jobs(rules: Rules, clusters: Clusters, jobs: Integers, coming: Floats) -> Floats:
    """Observe one job of each cluster: F numbers, named in order by ``app.kinds.cluster.policies.ENTRIES``, [B, F].

    Args:
        rules, clusters: B clusters.
        jobs: index of the job, [B]; ``NOBODY`` gives zeros.
        coming: GPUs expected to be requested within an hour, [B].
    """
    rows = np.zeros((len(jobs), WIDTH))
    for b in range(len(jobs)):
        if jobs[b] != NOBODY:
            rows[b] = _observe_job(rules, clusters, b, jobs[b], coming[b])
    return rows


@kernel
def _observe_job(rules: Rules, c: Clusters, b: int, job: int, coming: float) -> Floats:
    there, limit = c.there[b, : c.counts[b, THERE]], most_gpus(rules, c, b)
    count, total = len(there), max(c.capacity[b].sum(), 1)
    left, seconds = np.empty(count), np.empty(count)
    best, weight, going, own, has = np.inf, 0.0, 0, 0, 0
    for at in range(count):
        each = seconds_left(rules, c, b, there[at])
        for size in range(len(each)):
            if rules.sizes[size] > limit[at]:
                each[size] = np.inf
        seconds[at] = usual_seconds(each, rules.sizes, max(1, total // count))
        left[at] = min(np.log1p(seconds[at] / rules.interval), LARGEST)
        weight += rules.weight[c.queue[b, there[at]]] / count
        has += c.gpus[b, there[at]]
        if left[at] < np.log(2.0):
            going += c.gpus[b, there[at]]
        if there[at] == job:
            own, best = at, each.min()
    age = c.now[b] - c.time[b, job]
    return np.array(
        [
            left[own] / 4 - 1,
            np.log((seconds[own] + 1.0) / (best + 1.0)) / 2,
            (1.0 + (seconds > seconds[own]).sum() + (seconds[:own] == seconds[own]).sum()) / count - 0.5,
            np.log(min(c.asked[b, job], c.ceiling[b, job])) / 4,
            np.log1p(c.gpus[b, job]) / 4,
            1.0 if c.gpus[b, job] == 0 else 0.0,
            np.log1p(age / rules.interval) / 4,
            np.log1p(max(age - c.running[b, job], 0.0) / rules.interval) / 4,
            np.log1p(c.restarts[b, job]) / 2,
            1.0 if c.restarting[b, job] > 0 else 0.0,
            np.log(min(max(limit[own], 1), total) / total) / 4,
            np.log(rules.weight[c.queue[b, job]] / weight),
            1.0 - has / total,
            np.log(count / total) / 2,
            left.mean() / 4,
            left.std() / 2,
            (left < SHORT).mean(),
            going / total,
            min(coming / total, LARGEST),
        ]
    )


@kernel
def place_gpus(capacity: Integers, before: Integers, wanted: Integers) -> Integers:
    """Place ``wanted`` GPUs [J] on nodes with ``capacity`` GPUs [N]; return each job's GPUs on each node, [J, N].

    There are few moves from ``before`` [J, N] and few nodes per job. ``wanted`` must not exceed the capacity in all,
    else the call never returns."""
    allocation, missing = np.zeros_like(before), wanted.copy()
    for job in range(len(wanted)):
        if before[job].sum() == wanted[job]:
            allocation[job], missing[job] = before[job], 0
    crowded = allocation.sum(axis=0) > capacity
    for job in range(len(wanted)):
        if crowded.any() and ((allocation[job] > 0) & crowded).any():
            allocation[job], missing[job] = 0, wanted[job]
    placed = allocation.copy()
    if not pack_gpus(capacity, allocation, missing):
        allocation = placed
        for job in np.argsort(-wanted, kind="mergesort"):
            free = capacity - allocation.sum(axis=0)
            while missing[job] > 0:
                node = free.argmax()
                taken = min(free[node], missing[job])
                allocation[job, node] += taken
                free[node] -= taken
                missing[job] -= taken
    return allocation


@kernel
def pack_gpus(capacity: Integers, allocation: Integers, missing: Integers) -> bool:
    """Add ``missing`` GPUs [J] to ``allocation`` [J, N] in place, as whole nodes and a rest, within ``capacity`` [N];
    return whether all fit."""
    largest = max(1, capacity.max())
    parts = np.zeros((len(missing), largest + 1), np.int64)
    for job in range(len(missing)):
        parts[job, largest] = missing[job] // largest
        parts[job, missing[job] % largest] += missing[job] % largest > 0
    free = capacity - allocation.sum(axis=0)
    for size in range(largest, 0, -1):
        for job in range(len(missing)):
            while parts[job, size]:
                node = _room(free, allocation, size)
                if node < 0:
                    return False
                for other in range(len(missing)):
                    if free[node] < size and 0 < allocation[other, node] < size:
                        parts[other, allocation[other, node]] += 1
                        free[node] += allocation[other, node]
                        allocation[other, node] = 0
                allocation[job, node] += size
                free[node] -= size
                parts[job, size] -= 1
    return True


@kernel
def _room(free: Integers, allocation: Integers, size: int) -> int:
    """Return the index of the fullest node with ``size`` ``free`` GPUs, else of that with fewest to move; −1: none.

    ``free`` [N]: GPUs that no job has; ``allocation`` [J, N]: those of each job, of which smaller parts can be
    moved."""
    room, least = -1, 0
    for node in range(len(free)):
        if free[node] >= size and (room < 0 or free[node] < least):
            room, least = node, free[node]
    if room >= 0:
        return room
    most = -1
    for node in range(len(free)):
        movable = 0
        for job in range(len(allocation)):
            movable += allocation[job, node] if allocation[job, node] < size else 0
        if free[node] + movable >= size and free[node] > most:
            room, most = node, free[node]
    return room

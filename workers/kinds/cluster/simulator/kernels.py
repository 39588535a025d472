"""Clusters interval by interval, as ``simulator`` has them, many at once; compiled.

B clusters, each with a log of L jobs in order of submission and K changes of nodes, N nodes; jobs have one of R numbers
of GPUs. An interval: jobs train, those that end leave, nodes change, jobs come. Then someone says how many GPUs
each job has from now on: ``decided`` as ``allocation.completion.soonest`` does, or whoever calls ``step``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.allocation.completion import DAMPING, HORIZON_SECONDS, SCALING, TINY
from app.kinds.cluster.jobs import Floats, Integers
from workers.kinds.cluster.simulator.compiling import kernel
from workers.kinds.cluster.simulator.nodes import placed

CAME, THERE, ENDED, CHANGED = range(4)


class Rules(NamedTuple):
    """What all clusters have in common: A applications of up to E epochs.

    Attributes:
        sizes: numbers of GPUs that a job may have, ascending from 0, [R].
        rate: iterations a second, [A, R, E].
        ends: iterations at which epochs end, [A, E].
        epochs: of each application, [A].
        most: GPUs that a job of it can use, [A].
        interval, restart: seconds.
        growth: a job may have so many times the GPUs on which it has been; 0: any number.
    """

    sizes: Integers
    rate: Floats
    ends: Floats
    epochs: Integers
    most: Integers
    interval: float
    restart: float
    growth: int


class Clusters(NamedTuple):
    """B clusters; all but the first four change in place.

    Attributes:
        time, application: of the jobs of each log, [B, L]; of a shorter log the last times are infinite.
        change: seconds, node and its GPUs from then on, of each change of a node in their order, [B, K, 3].
        speed: of a GPU of each node; of a job the slowest of its nodes counts, [B, N].
        now: seconds, [B].
        counts: jobs that came, are there, have ended, and changes that were made, [B, 4].
        there: the jobs that are there, in order of submission; first ``counts[THERE]`` of each row, [B, L].
        done, epoch: iterations, and epochs that have ended, [B, L].
        size: position of the number of GPUs, [B, L].
        held: GPUs on each node, [B, L, N].
        restarting, restarts: seconds until it trains, and how often its nodes have changed, [B, L].
        been: most GPUs on which it has trained, [B, L].
        completed: seconds from submission to completion, not a number before that, [B, L].
        capacity: GPUs of each node, [B, N].
    """

    time: Floats
    application: Integers
    change: Floats
    speed: Floats
    now: Floats
    counts: Integers
    there: Integers
    done: Floats
    epoch: Integers
    size: Integers
    held: Integers
    restarting: Floats
    restarts: Integers
    been: Integers
    completed: Floats
    capacity: Integers


@kernel
def play(rules: Rules, clusters: Clusters) -> int:
    """Play all logs to their ends under ``decided``; how many jobs were decided for, each at each moment."""
    decisions = 0
    for b in range(len(clusters.now)):
        jobs = np.isfinite(clusters.time[b]).sum()
        while clusters.counts[b, ENDED] < jobs:
            passed(rules, clusters, b)
            decisions += clusters.counts[b, THERE]
            if clusters.counts[b, THERE]:
                settled(rules, clusters, b, decided(rules, clusters, b))
    return decisions


@kernel
def step(rules: Rules, clusters: Clusters, wanted: Integers) -> None:
    """In each cluster the jobs that are there get sizes, positions [B, L] in their order there; an interval passes."""
    for b in range(len(clusters.now)):
        settled(rules, clusters, b, wanted[b, : clusters.counts[b, THERE]])
        passed(rules, clusters, b)


@kernel
def passed(rules: Rules, clusters: Clusters, b: int) -> None:
    """An interval of one cluster."""
    stay, c = 0, clusters
    for at in range(c.counts[b, THERE]):
        job = c.there[b, at]
        ended = _trained(rules, c, b, job)
        if ended >= 0:
            c.completed[b, job] = c.now[b] + ended - c.time[b, job]
            c.held[b, job], c.size[b, job] = 0, 0
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
def _trained(rules: Rules, c: Clusters, b: int, job: int) -> float:
    """A job trains for an interval; seconds into it at which it ended, or −1. Epochs end after whole seconds."""
    kind, size, seconds = c.application[b, job], c.size[b, job], rules.interval
    if not size:
        return -1.0
    left = seconds - min(c.restarting[b, job], seconds)
    c.restarting[b, job] = max(c.restarting[b, job] - seconds, 0.0)
    slowest = np.inf
    for node in range(c.held.shape[2]):
        if c.held[b, job, node]:
            slowest = min(slowest, c.speed[b, node])
    while left > 0:
        c.been[b, job] = max(c.been[b, job], rules.sizes[size])
        rate = rules.rate[kind, size, c.epoch[b, job]] * slowest
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
def settled(rules: Rules, c: Clusters, b: int, wanted: Integers) -> None:
    """The jobs that are there get sizes, [J], and nodes; who is on others restarts."""
    there = c.there[b, : len(wanted)]
    before = c.held[b][there]
    held = placed(c.capacity[b], before, rules.sizes[wanted])
    for at in range(len(there)):
        job = there[at]
        c.size[b, job] = wanted[at]
        if wanted[at] and (held[at] != before[at]).any():
            c.restarts[b, job] += 1
            c.restarting[b, job] = rules.restart
        c.held[b, job] = held[at]


@kernel
def most(rules: Rules, c: Clusters, b: int) -> Integers:
    """GPUs that each job that is there may have, [J]."""
    found = np.empty(c.counts[b, THERE], np.int64)
    for at in range(len(found)):
        job = c.there[b, at]
        found[at] = rules.most[c.application[b, job]]
        if rules.growth:
            found[at] = min(found[at], max(1, rules.growth * c.been[b, job]))
    return found


@kernel
def decided(rules: Rules, c: Clusters, b: int) -> Integers:
    """Sizes as ``soonest`` has them, positions [J]."""
    limit = most(rules, c, b)
    return marginal(values(rules, c, b, limit), rules.sizes, limit, c.capacity[b].sum())


@kernel
def values(rules: Rules, c: Clusters, b: int, limit: Integers) -> Floats:
    """See ``allocation.completion.values``, of jobs that know how fast they are and what is left of them, [J, R]."""
    count, sizes = len(limit), rules.sizes
    fair = max(1, c.capacity[b].sum() // count)
    each, seconds = np.full((count, len(sizes)), np.inf), np.empty(count)
    for at in range(count):
        job = c.there[b, at]
        kind, epoch = c.application[b, job], c.epoch[b, job]
        each[at] = (rules.ends[kind, rules.epochs[kind] - 1] - c.done[b, job]) / rules.rate[kind, :, epoch]
        seconds[at] = each[at][sizes <= fair].min()
        if seconds[at] == np.inf:
            seconds[at] = each[at].min()
    place, power, found = np.empty(count), 1 / (1 - SCALING), np.full((count, len(sizes)), -np.inf)
    place[np.argsort(-seconds, kind="mergesort")] = np.arange(1.0, count + 1)
    for at in range(count):
        job = c.there[b, at]
        lost = rules.restart / min(max(seconds[at], rules.restart, TINY), HORIZON_SECONDS)
        counts = (place[at] ** power - (place[at] - 1) ** power) ** (1 / power)
        found[at, 0] = 0.0
        for size in range(1, len(sizes)):
            if sizes[size] <= limit[at]:
                stays = c.size[b, job] == size or not c.size[b, job]
                speed = (seconds[at] / each[at, size]) ** DAMPING
                found[at, size] = counts * speed * (1.0 if stays else max(1.0 - lost, 0.0))
    return found


@kernel
def marginal(value: Floats, sizes: Integers, limit: Integers, free: int) -> Integers:
    """See ``allocation.marginal.marginal``: of jobs that begin with nothing, positions [J]."""
    count = len(value)
    at, target = np.zeros(count, np.int64), np.full(count, -1)
    slope, stale = np.zeros(count), np.ones(count, np.bool_)
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

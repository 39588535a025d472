"""GPUs for the jobs of a cluster as ``allocation.completion`` gives them; compiled."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.completion import STEADY, TINY
from app.kinds.cluster.allocation.priority import LATE
from app.kinds.cluster.jobs import Floats, Integers
from workers.kinds.cluster.simulator.compiling import kernel
from workers.kinds.cluster.simulator.kernels import ENDED, THERE, Clusters, Rules, passed, settled


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
def most(rules: Rules, c: Clusters, b: int) -> Integers:
    """GPUs that each job that is there may have, [J]."""
    found = np.empty(c.counts[b, THERE], np.int64)
    for at in range(len(found)):
        job = c.there[b, at]
        found[at] = rules.most[c.application[b, job]]
        if rules.growth:
            found[at] = min(found[at], max(1, rules.growth * c.been[b, job]))
        found[at] = min(found[at], c.ceiling[b, job])
    return found


@kernel
def urgency(rules: Rules, c: Clusters, b: int) -> Integers:
    """See ``allocation.priority.urgency``: of the jobs that are there, [J]."""
    found = np.empty(c.counts[b, THERE], np.int64)
    for at in range(len(found)):
        job = c.there[b, at]
        waited = max(c.now[b] - c.time[b, job] - c.running[b, job], 0.0)
        found[at] = max(c.queue[b, job] - int(waited / rules.ageing[c.queue[b, job]]), 0)
        if waited > rules.patience:
            found[at] = LATE
    return found


@kernel
def decided(rules: Rules, c: Clusters, b: int) -> Integers:
    """GPUs of each job that is there, [J]: see ``allocation.completion.completing``."""
    limit, level = most(rules, c, b), urgency(rules, c, b)
    limit = np.where(level == LATE, np.minimum(limit, rules.sizes[1]), limit)
    total, value = c.capacity[b].sum(), values(rules, c, b, limit)
    begin = admitted(rules, level, np.where(level == LATE, -c.time[b][c.there[b, : len(limit)]], value[:, 1]), total)
    at = marginal(value, rules.sizes, limit, begin, total - rules.sizes[np.maximum(begin, 0)].sum())
    return rules.sizes[np.maximum(at, 0)]


@kernel
def admitted(rules: Rules, level: Integers, first: Floats, total: int) -> Integers:
    """See ``allocation.completion``: 1 who begins with the fewest GPUs, 0 with none, −1 not at all, [J]."""
    found, used, fewest = np.zeros(len(level), np.int64), 0, rules.sizes[1]
    for one in np.unique(level):
        rows = np.flatnonzero(level == one)
        early = fewest <= total and (one < level.max() or one == LATE)
        for at in rows[np.argsort(-first[rows], kind="mergesort")]:
            used += fewest if early else 0
            found[at] = -1 if used > total else int(early)
    return found


@kernel
def seconds_left(rules: Rules, c: Clusters, b: int, job: int) -> Floats:
    """What is expected of a job on each of the sizes, [R]: by what it needs, or before it ran by what is believed."""
    kind, epoch = c.application[b, job], c.epoch[b, job]
    left = rules.ends[kind, rules.epochs[kind] - 1] - c.done[b, job]
    if not c.been[b, job] and c.expected[b, job]:
        left = c.expected[b, job]
    found = np.empty(len(rules.sizes))
    for at in range(len(found)):
        found[at] = left / rules.rate[kind, rules.sizes[at], epoch]
    return found


@kernel
def usual_seconds(each: Floats, sizes: Integers, fair: int) -> float:
    """The seconds that are left of a job on an equal share, or else on what is best for it."""
    found = each[sizes <= fair].min()
    return found if found < np.inf else each.min()


@kernel
def values(rules: Rules, c: Clusters, b: int, limit: Integers) -> Floats:
    """See ``allocation.completion.values``: of the jobs that are there, up to so many GPUs of each, [J, R]."""
    count, sizes, total = len(limit), rules.sizes, c.capacity[b].sum()
    there = c.there[b, :count]
    each, seconds = np.empty((count, len(sizes))), np.empty(count)
    for at in range(count):
        each[at] = seconds_left(rules, c, b, there[at])
        seconds[at] = usual_seconds(each[at], sizes, max(1, total // count))
    scaling, damping, horizon = rules.constants
    place, power, found = np.empty(count), 1 / (1 - scaling), np.full((count, len(sizes)), -np.inf)
    ranked = seconds * (1 + STEADY) ** -np.log2(1.0 + c.gpus[b][there])
    place[np.argsort(-ranked, kind="mergesort")] = np.arange(1.0, count + 1)
    for at in range(count):
        job = there[at]
        lost = rules.restart / min(max(seconds[at], rules.restart, TINY), horizon)
        counts = (place[at] ** power - (place[at] - 1) ** power) ** (1 / power)
        counts *= rules.weight[c.queue[b, job]] * c.worth[b, job] * c.factor[b, job]
        found[at, 0] = 0.0
        for size in range(1, len(sizes)):
            if sizes[size] <= limit[at]:
                kept = 1.0
                if c.gpus[b, job]:
                    kept = 1.0 + lost if c.gpus[b, job] == sizes[size] else max(1.0 - lost, 0.0)
                found[at, size] = counts * (seconds[at] / each[at, size]) ** damping * kept
    return found


@kernel
def marginal(value: Floats, sizes: Integers, limit: Integers, begin: Integers, free: int) -> Integers:
    """See ``allocation.marginal.marginal``: positions [J]."""
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

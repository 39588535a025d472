"""All clusters at once: they decide, time passes, and what agents see of one job of each; compiled."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.observation import ENTRIES, LARGEST, SHORT
from workers.kinds.cluster.simulator.compiling import kernel
from workers.kinds.cluster.simulator.deciding import decided, most, seconds_left, usual_seconds
from workers.kinds.cluster.simulator.kernels import THERE, Clusters, Rules, passed, settled, slowdowns

NOBODY, WIDTH = -1, len(ENTRIES)


@kernel
def decide(rules: Rules, clusters: Clusters) -> Integers:
    """``decided`` in each cluster; how many jobs that had GPUs have others, or none, from now on, [B]."""
    moved = np.zeros(len(clusters.now), np.int64)
    for b in range(len(moved)):
        if clusters.counts[b, THERE]:
            moved[b] = settled(rules, clusters, b, decided(rules, clusters, b))
    return moved


@kernel
def elapse(rules: Rules, clusters: Clusters) -> None:
    """An interval of each cluster."""
    for b in range(len(clusters.now)):
        passed(rules, clusters, b)


@kernel
def beside_others(rules: Rules, clusters: Clusters) -> Floats:
    """What the seconds of each job's steps are multiplied by beside those on its nodes, [B, L]."""
    found = np.ones(clusters.time.shape)
    for b in range(len(found)):
        slower = slowdowns(rules, clusters, b)
        for at in range(len(slower)):
            found[b, clusters.there[b, at]] = slower[at]
    return found


@kernel
def priced(clusters: Clusters, price: Floats) -> Floats:
    """What the GPUs of each job cost together by the nodes' prices [N], [B, L]."""
    found = np.zeros(clusters.time.shape)
    for b in range(len(found)):
        for at in range(clusters.counts[b, THERE]):
            job = clusters.there[b, at]
            for node in range(len(price)):
                found[b, job] += price[node] * clusters.held[b, job, node]
    return found


@kernel
def chosen(clusters: Clusters, weighed: Floats) -> Integers:
    """The job of each cluster that agents are asked for: whose weight was settled longest ago, [B]; none: ``NOBODY``.

    Args:
        clusters: B.
        weighed: when that was, [B, L].
    """
    found = np.full(len(clusters.now), NOBODY)
    for b in range(len(found)):
        for at in range(clusters.counts[b, THERE]):
            job = clusters.there[b, at]
            if found[b] == NOBODY or weighed[b, job] < weighed[b, found[b]]:
                found[b] = job
    return found


@kernel
def observed(rules: Rules, clusters: Clusters, jobs: Integers, coming: Floats) -> Floats:
    """See ``app.kinds.cluster.observation.observe``: of one job of each cluster, [B, F]; of ``NOBODY`` zeros.

    Args:
        rules, clusters: B clusters.
        jobs: numbers in their logs, [B].
        coming: GPUs that are expected to be asked for within an hour, [B].
    """
    found = np.zeros((len(jobs), WIDTH))
    for b in range(len(jobs)):
        if jobs[b] != NOBODY:
            found[b] = _seen(rules, clusters, b, jobs[b], coming[b])
    return found


@kernel
def _seen(rules: Rules, c: Clusters, b: int, job: int, coming: float) -> Floats:
    there, limit = c.there[b, : c.counts[b, THERE]], most(rules, c, b)
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

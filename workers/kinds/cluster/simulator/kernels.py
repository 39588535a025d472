"""Clusters interval by interval, as ``simulator`` has them, many at once; compiled.

B clusters, each with a log of L jobs in order of submission and K changes of nodes, N nodes. An interval: jobs train,
those that end leave, nodes change, jobs come. Then someone says how many GPUs each job has from now on: ``decided`` as
``allocation.completion`` does, or whoever calls ``settled``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.allocation.completion import USUAL, Constants
from app.kinds.cluster.jobs import Floats, Integers
from workers.kinds.cluster.simulator.compiling import kernel
from workers.kinds.cluster.simulator.nodes import placed

CAME, THERE, ENDED, CHANGED = range(4)
UNDISTURBED = np.zeros((0, 0))


class Rules(NamedTuple):
    """What all clusters have in common: A applications of up to E epochs, Q queues, up to G GPUs.

    Attributes:
        sizes: numbers of GPUs among which jobs are given theirs, ascending from 0, [R].
        rate: iterations a second, of ``sizes`` at least, [A, G + 1, E].
        ends: iterations at which epochs end, [A, E].
        epochs: of each application, [A].
        most: GPUs that a job of it can use, [A].
        interval, restart: seconds.
        growth: a job may have so many times the GPUs on which it has been; 0: any number.
        weight, ageing: of each queue, see ``allocation.completion.completing``, [Q].
        patience: seconds of waiting, after which a job comes before all others.
        constants: of ``allocation.completion.values``.
        log_slowdown: natural log of what the seconds of steps of the one application (row) are multiplied by beside a
            job of the other (column), [A, A]; [0, 0]: nobody disturbs anybody.
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
    """B clusters; all but the first seven change in place.

    Attributes:
        time, application, queue, asked: of the jobs of each log, [B, L]; of a shorter log the last times are infinite.
        expected: iterations that a job is believed to need before it has run; nobody guesses where it is 0, [B, L].
        change: seconds, node and its GPUs from then on, of each change of a node in their order, [B, K, 3].
        speed: of a GPU of each node; of a job the slowest of its nodes counts, [B, N].
        now: seconds, [B].
        counts: jobs that came, are there, have ended, and changes that were made, [B, 4].
        there: the jobs that are there, in order of submission; first ``counts[THERE]`` of each row, [B, L].
        done, epoch: iterations, and epochs that have ended, [B, L].
        gpus: that each has, [B, L].
        held: GPUs on each node, [B, L, N].
        running: seconds for which it had any, [B, L].
        restarting, restarts: seconds until it trains, and how often its nodes have changed, [B, L].
        been: most GPUs on which it has trained, [B, L].
        completed: seconds from submission to completion, not a number before that, [B, L].
        factor: of a job's weight, [B, L].
        worth: of its completion time by its data, a factor, too, [B, L].
        ceiling: GPUs that it may have, since it converges, [B, L].
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
def passed(rules: Rules, clusters: Clusters, b: int) -> None:
    """An interval of one cluster."""
    stay, c, slower = 0, clusters, slowdowns(rules, clusters, b)
    for at in range(c.counts[b, THERE]):
        job = c.there[b, at]
        ended = _trained(rules, c, b, job, slower[at])
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
    """See ``allocation.neighbours.slowdowns``: of the jobs that are there, [J]."""
    there = c.there[b, : c.counts[b, THERE]]
    if not len(rules.log_slowdown):
        return np.ones(len(there))
    found = np.zeros(len(there))
    for at in range(len(there)):
        for other in there:
            if other != there[at] and _share_a_node(c.held[b, there[at]], c.held[b, other]):
                found[at] += rules.log_slowdown[c.application[b, there[at]], c.application[b, other]]
    return np.exp(found)


@kernel
def _share_a_node(one: Integers, other: Integers) -> bool:
    shared = False
    for node in range(len(one)):
        shared = shared or (one[node] > 0 and other[node] > 0)
    return shared


@kernel
def _trained(rules: Rules, c: Clusters, b: int, job: int, slower: float) -> float:
    """A job trains for an interval, at steps that take ``slower`` times as long; seconds into it at which it ended, or
    −1. Epochs end after whole seconds.
    """
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
def settled(rules: Rules, c: Clusters, b: int, wanted: Integers) -> int:
    """The jobs that are there get GPUs, [J], and nodes; who is on others restarts. How many had any, and change."""
    there, moved = c.there[b, : len(wanted)], 0
    before = c.held[b][there]
    held = placed(c.capacity[b], before, wanted)
    for at in range(len(there)):
        job = there[at]
        if (held[at] != before[at]).any():
            moved += c.gpus[b, job] > 0
            if wanted[at]:
                c.restarts[b, job] += 1
                c.restarting[b, job] = rules.restart
        c.gpus[b, job] = wanted[at]
        c.held[b, job] = held[at]
    return moved

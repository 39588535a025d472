"""Goodput shared fairly: the objective of Pollux (Qiao et al., OSDI 2021, section 4.2), exactly maximised."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.situation import Situation, Wanted
from app.kinds.cluster.jobs import Floats, Integers

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

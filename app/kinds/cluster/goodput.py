"""Goodput of data-parallel training, and the batch size at which it is largest.

Source: Qiao et al., “Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning”, OSDI 2021: goodput is
throughput times statistical efficiency. J jobs, R numbers of GPUs, K batch sizes that are tried.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers

TRIED = 32
TOLERANCE = 1e-8
SMALL = 1e-8


class Known(NamedTuple):
    """What is known of J jobs.

    Attributes:
        seconds: α and β of computing, of synchronising across nodes and within one, and γ (section 3.2), [J, 7].
        squared, variance: of the gradient at the initial batch, [J].
        initial, largest: batch sizes over all GPUs, [J].
        smallest_local, largest_local: batch sizes that a GPU can do at once, [J].
    """

    seconds: Floats
    squared: Floats
    variance: Floats
    initial: Integers
    largest: Integers
    smallest_local: Integers
    largest_local: Integers


class Best(NamedTuple):
    """The best batch of each job on each number of GPUs, [J, R] each.

    Attributes:
        goodput: samples a second, as many as at the initial batch would have done the same; 0 where no batch is legal.
        atomic: samples that a GPU does at once.
        accumulated: further such parts whose gradients are added before an update.
    """

    goodput: Floats
    atomic: Integers
    accumulated: Integers


def best(known: Known, nodes: Integers, gpus: Integers) -> Best:
    """The best batch on ``gpus`` [R] or [J, R], on so many ``nodes``, of batch sizes in equal ratios."""
    nodes, gpus = np.broadcast_arrays(np.atleast_2d(nodes), np.atleast_2d(gpus))
    nodes, gpus = nodes[:, :, None], gpus[:, :, None]  # [1 or J, R, 1]
    initial, largest, low, high = (np.asarray(column)[:, None, None] for column in known[3:])
    first = np.maximum(initial, low * gpus)
    local = first * (largest / first) ** np.linspace(0, 1, TRIED) / gpus  # [J, R, K]
    accumulated = np.ceil(local / high - TOLERANCE) - 1
    alone = (gpus == 1) & (local > initial + TOLERANCE)
    accumulated = np.where(alone, np.maximum(accumulated, 1), accumulated)
    atomic = np.ceil(local / (accumulated + 1) - TOLERANCE)
    value = goodput_at(known, nodes, gpus, atomic, accumulated)
    legal = (low <= atomic) & (atomic <= high) & (first <= largest)
    value = np.where(legal, value, 0.0)
    at = value.argmax(axis=2)[:, :, None]
    chosen = (np.take_along_axis(part, at, axis=2)[:, :, 0] for part in (value, atomic, accumulated))
    goodput, atomic, accumulated = chosen
    return Best(goodput, atomic.astype(np.int64), accumulated.astype(np.int64))


def goodput_at(known: Known, nodes: Integers, gpus: Integers, atomic: Floats, accumulated: Floats) -> Floats:
    """Goodput at given batches; all arrays broadcast to [J, R, K]."""
    seconds = step_seconds(known.seconds[:, None, None, :], nodes, gpus, atomic)
    computing = known.seconds[:, 0, None, None] + known.seconds[:, 1, None, None] * atomic
    total = gpus * atomic * (accumulated + 1)
    scale = total / np.asarray(known.initial)[:, None, None]
    squared, variance = known.squared[:, None, None], known.variance[:, None, None]
    useful = (variance + squared) / (variance / scale + squared) / scale
    return np.asarray(total / (accumulated * computing + seconds) * useful, np.float64)


def step_seconds(parameters: Floats, nodes: Integers, gpus: Integers, atomic: Floats) -> Floats:
    """Seconds of one optimiser step, T = (T_acc^γ + T_net^γ)^{1/γ}; ``parameters`` [..., 7], the rest broadcasts."""
    p = np.moveaxis(parameters, -1, 0)
    across, shared = nodes > 1, gpus > 1
    constant = np.where(across, p[2], np.where(shared, p[4], SMALL))
    slope = np.where(across, p[3], np.where(shared, p[5], SMALL))
    computing, network = p[0] + p[1] * atomic, constant + slope * np.maximum(gpus - 2, SMALL)
    larger, smaller = np.maximum(computing, network), np.minimum(computing, network)
    return np.asarray(larger * (1 + (smaller / larger) ** p[6]) ** (1 / p[6]), np.float64)

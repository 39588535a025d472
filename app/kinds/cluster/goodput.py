"""Goodput of data-parallel training, and the batch size at which it is largest.

Source: Qiao et al., “Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning”, OSDI 2021: goodput is
throughput times statistical efficiency. J jobs, R numbers of GPUs, K batch sizes that are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import Floats, Integers

TRIED = 32
MOST_TRIED = 64
TOLERANCE = 1e-8
SMALL = 1e-8
Times = Callable[[Integers, Floats], tuple[Floats, Floats]]
"""Seconds of computing and of a whole step, by GPUs and samples that a GPU does at once."""


class Batches(NamedTuple):
    """Samples of a step that one job may have over all its GPUs, and on each at once."""

    initial: int
    largest: int
    least_local: int
    most_local: int


class Limits(NamedTuple):
    """Of the batches of J jobs, [J] each: over all GPUs, and what a GPU can do at once."""

    initial: Integers
    largest: Integers
    smallest_local: Integers
    largest_local: Integers


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

    @property
    def limits(self) -> Limits:
        """The limits of their batches."""
        return Limits(*self[3:])


class Course(NamedTuple):
    """Goodput of one job by its number of GPUs, and the batch over all of them that it is at, [R] each.

    Attributes:
        gpus: numbers for which that was found, ascending, from 0; in between it is linear.
        goodput: samples a second.
        batch: samples of a step; 0 where no batch is legal.
    """

    gpus: Integers
    goodput: Floats
    batch: Integers

    def at(self, gpus: Integers) -> Floats:
        """Goodput on so many GPUs, of any shape."""
        return np.interp(gpus, self.gpus, self.goodput)

    def batch_at(self, gpus: int) -> int:
        """That on the largest known number that is no more; 0: none is legal there."""
        return int(self.batch[np.searchsorted(self.gpus, gpus, side="right") - 1])


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


def tried_gpus(total: int) -> Integers:
    """Numbers of GPUs for which the best batch is looked for: all up to 64, and beyond in about equal ratios, [R]."""
    beyond = np.rint(np.geomspace(1, max(total, 1), MOST_TRIED)).astype(np.int64)
    return np.unique(np.concatenate([np.arange(1, min(total, MOST_TRIED) + 1), beyond]))


def best(known: Known, nodes: Integers, gpus: Integers) -> Best:
    """The best batch on ``gpus`` [R] or [J, R], on so many ``nodes``, of batch sizes in equal ratios."""
    nodes, gpus = np.broadcast_arrays(np.atleast_2d(nodes), np.atleast_2d(gpus))
    nodes, gpus = nodes[:, :, None], gpus[:, :, None]  # [1 or J, R, 1]
    tried = _tried(known.limits, gpus)
    return _chosen(tried, goodput_at(known, nodes, gpus, tried.atomic, tried.accumulated))


def course(times: Times, batches: Batches, noise_scale: float, total: int) -> Course:
    """The best batch of one job on each number of GPUs, by what its steps take.

    Args:
        times: seconds of computing and of the whole step, by GPUs [R, 1] and samples that a GPU does at once [R, K].
        batches: that it may have.
        noise_scale: of its gradient, in samples; infinite where it isn't known: all samples are worth the same.
        total: GPUs that there are.
    """
    gpus = tried_gpus(total)
    tried = _tried(Limits(*(np.array([part]) for part in batches)), gpus[None, :, None])
    computing, whole = times(gpus[:, None], tried.atomic[0])
    samples = gpus[:, None] * tried.atomic[0] * (tried.accumulated[0] + 1)
    worth = efficiency(float(batches.initial), samples, noise_scale)
    best_of = _chosen(tried, (samples / (tried.accumulated[0] * computing + whole) * worth)[None])
    found = best_of.goodput[0]
    batch = np.minimum(gpus * best_of.atomic[0] * (best_of.accumulated[0] + 1), batches.largest)
    return Course(*(np.concatenate([[0], part]) for part in (gpus, found, np.where(found > 0, batch, 0))))


def efficiency(initial: float, batch: Floats, noise_scale: float) -> Floats:
    """What a sample of a batch is worth against one of the initial batch: (M₀ + φ)/(M + φ) (section 3.1)."""
    if not np.isfinite(noise_scale):
        return np.ones_like(batch)
    return np.asarray((initial + noise_scale) / (batch + noise_scale), np.float64)


class _Tried(NamedTuple):
    """Batches that are tried, and whether a job may have them, [J, R, K] each."""

    atomic: Floats
    accumulated: Floats
    legal: NDArray[np.bool_]


def _tried(limits: Limits, gpus: Integers) -> _Tried:
    initial, largest, low, high = (np.asarray(column)[:, None, None] for column in limits)
    first = np.maximum(initial, low * gpus)
    local = first * (largest / first) ** np.linspace(0, 1, TRIED) / gpus  # [J, R, K]
    accumulated = np.maximum(np.ceil(local / high - TOLERANCE) - 1, 0)
    alone = (gpus == 1) & (local > initial + TOLERANCE)
    accumulated = np.where(alone, np.maximum(accumulated, 1), accumulated)
    atomic = np.ceil(local / (accumulated + 1) - TOLERANCE)
    return _Tried(atomic, accumulated, (low <= atomic) & (atomic <= high) & (first <= largest))


def _chosen(tried: _Tried, value: Floats) -> Best:
    value = np.where(tried.legal, value, 0.0)
    at = value.argmax(axis=2)[:, :, None]
    every = (value, tried.atomic, tried.accumulated)
    goodput, atomic, accumulated = (np.take_along_axis(part, at, axis=2)[:, :, 0] for part in every)
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

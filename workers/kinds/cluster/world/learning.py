"""How jobs of played clusters learn, and what convergence makes of them, as the service judges it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.cluster.allocation.convergence import Converging, Progress, Tolerance, judged, none
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.learning_curves import Ahead, LearningCurves, Seen, ahead
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.spec import Convergence
from workers.kinds.cluster.simulator.kernels import Clusters
from workers.kinds.cluster.world.courses import known_class

DRAWN, STEPS = 64, 40
"""Curves that are drawn of each class, and points of each."""


class DrawnCurves(NamedTuple):
    """Curves of one class: rising values [DRAWN, STEPS] at iterations [STEPS]."""

    value: Floats
    iteration: Floats


def drawn(curves: LearningCurves, own: int) -> DrawnCurves:
    """Of class ``own``, from the normal distribution of whole curves."""
    grid, random = curves.grid[own], np.random.default_rng(0)
    iterations = np.linspace(0, grid[-1], STEPS + 1)[1:]
    factors = random.standard_normal((DRAWN, curves.basis.shape[2]))
    whole = curves.mean[own] + factors @ curves.basis[own].T
    noise = np.sqrt(np.maximum(np.interp(iterations, grid, curves.noise[own]), 0.0))
    smooth = np.stack([np.interp(iterations, grid, one) for one in whole])
    return DrawnCurves(smooth + noise * random.standard_normal(smooth.shape), iterations)


def foreseen(curves: LearningCurves, own: int, of: DrawnCurves) -> Ahead:
    """What is left of drawn curves after each of their points, and before the first, [DRAWN, STEPS + 1] each."""
    which, until = np.full(DRAWN, own), np.full(DRAWN, of.iteration[-1])
    found = [np.full((len(Ahead._fields), DRAWN), np.nan)]
    for told in range(1, STEPS + 1):
        there = np.arange(STEPS) < told
        seen = Seen(*(np.where(there, column, np.nan) for column in (np.tile(of.iteration, (DRAWN, 1)), of.value)))
        found.append(np.stack(ahead(curves, which, seen, until)))
    return Ahead(*np.stack(found, axis=-1))


class Foreseen(NamedTuple):
    """What is left of curves that were drawn of some of A applications.

    Attributes:
        first: the number of the first of each one's curves; −1: nothing is known of them, [A].
        left: of all, [K, STEPS + 1] each.
    """

    first: Integers
    left: Ahead


def foreseen_of(known: Sequence[tuple[ClusterModel, Sequence[str]]]) -> Foreseen | None:
    """Of the applications of some models, one model after the other; None where no curves are known of any."""
    first, tables = list[int](), list[Ahead]()
    for model, names in known:
        for own in (known_class(model, name) for name in names):
            first.append(DRAWN * len(tables) if own >= 0 else -1)
            if own >= 0:
                tables.append(foreseen(model.curves, own, drawn(model.curves, own)))
    if not tables:
        return None
    return Foreseen(np.array(first), Ahead(*(np.concatenate(columns) for columns in zip(*tables, strict=True))))


def unlimited(shape: tuple[int, int]) -> Converging:
    """Of the jobs of B logs, before any has come, [B, L]."""
    return Converging._make(column.reshape(shape) for column in none(shape[0] * shape[1]))


def seen_at(table: Ahead, curve: Integers, part: Floats) -> Ahead:
    """What can be said of jobs that follow curves of a table, −1: none, at a part of their iterations; any shape."""
    at = np.clip((part * STEPS + 1e-9).astype(np.int64), 0, STEPS)
    return Ahead(*(np.where(curve >= 0, column[curve, at], np.nan) for column in table))


def limited(
    layout: Layout, convergence: Convergence, clusters: Clusters, left: Ahead, before: Converging
) -> Converging:
    """What convergence makes of the jobs that hold GPUs, [B, L]; ``ceiling`` of ``clusters`` changes in place."""
    tolerance = Tolerance(convergence.tolerance, convergence.doubt, convergence.window_seconds)
    runs = clusters.gpus > 0
    level, gain, half = (np.where(runs, column, np.nan) for column in left)
    floor = np.full_like(clusters.gpus, layout.spec.minimum)
    progress = Progress(level, gain, half, clusters.gpus, floor, layout.sizes)
    after = judged(before, progress, clusters.now[:, None], tolerance)
    clusters.ceiling[:] = after.ceiling
    return after

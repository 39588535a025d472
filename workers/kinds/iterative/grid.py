"""Executions as arrays, the input grid of exported tables, courses of features, and laws of scaling.

Letters in shapes: n rows, R resources, M metrics, F features, A allocations, C feature cells, I bins of iterations.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from app.kinds.iterative.contingencies import as_one
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, locate, weighted_sum
from app.kinds.iterative.projection import course_places
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.samples import HALF
from workers.estimators.base import Estimator, Floats, Integers, distinct
from workers.estimators.selection import Reading, directly
from workers.inputs import Samples


@dataclass(frozen=True)
class Executions:
    """Executions of one workload, as pairs of name and data, float64 [n, 1 + R + M + F].

    The columns are iteration number, allocation, metrics and features, in the spec's order.
    """

    items: tuple[tuple[str, Floats], ...]

    @property
    def names(self) -> list[str]:
        """Names of the executions, in order."""
        return [name for name, _ in self.items]

    def flat(self, layout: Layout) -> Flat:
        """Concatenate the rows of all executions.

        Raises:
            ValueError: an execution's rows don't have the columns of ``layout``.
        """
        resources, metrics, features = len(layout.resources), len(layout.metrics), len(layout.features)
        width = 1 + resources + metrics + features
        wrong = [name for name, data in self.items if data.ndim != 2 or data.shape[1] != width]
        if wrong:
            raise ValueError(f"execution {wrong[0]!r} must be [n, {width}]")
        data = np.concatenate([np.empty((0, width)), *(data for _, data in self.items)])
        groups = np.repeat(np.arange(len(self.items)), [len(data) for _, data in self.items]).astype(np.intp)
        change = data[:, 0] % 1 == HALF  # the row before an iteration's
        before = np.append(False, change[:-1])
        paused = np.where(before, np.roll(data[:, 1 + resources + layout.seconds], 1), np.nan)[~change]
        data, groups = data[~change], groups[~change]
        _, allocation, measured, blocks = np.split(data, np.cumsum([1, resources, metrics]), axis=1)
        changed = _changes(allocation, groups)
        return Flat(groups, data[:, 0].astype(np.intp), allocation, measured, blocks, changed, paused)


def whole_iterations(layout: Layout, samples: Samples, table: ModelTable) -> Samples:
    """Return executions with one row per iteration.

    An execution [n, 1 + R + M + F] has several rows of one number for an iteration whose allocation changed within it,
    one per segment. They become one row, as if the iteration had run at its last allocation throughout, by the domain
    model ``table``. If there is no such iteration, ``samples`` itself is returned. A row with the measured seconds of
    a change stays, before that of its iteration.
    """
    changed = [bool((np.diff(data[:, 0]) == 0).any()) for _, data in samples]
    if not any(changed):
        return samples
    projector, each = Projector(layout, table), zip(samples, changed, strict=True)
    return tuple((name, _whole(layout, projector, data) if parts else data) for (name, data), parts in each)


def _whole(layout: Layout, projector: Projector, data: Floats) -> Floats:
    begins = np.flatnonzero(np.diff(data[:, 0], prepend=-1))
    resources, metrics = len(layout.resources), len(layout.metrics)
    minima, steps = (np.array([getattr(r, part) for r in layout.spec.resources]) for part in ("minimum", "step"))
    rows = []
    for begin, own in zip(begins, np.split(data, begins[1:]), strict=True):
        row = own[-1].copy()
        if len(own) > 1:
            levels = np.rint((own[:, 1 : 1 + resources] - minima) / steps).astype(np.int16)
            before = np.rint((data[begin - 1, 1 : 1 + resources] - minima) / steps) if begin else None
            took, measured = own[:, 1 + resources + layout.seconds], row[1 + resources :][:metrics]
            features, number = row[None, 1 + resources + metrics :], np.array([int(row[0])])
            row[1 + resources :][:metrics] = as_one(projector, levels, took, before, measured, features, number)
        rows.append(row)
    return np.array(rows).reshape(len(rows), data.shape[1])


class Flat(NamedTuple):
    """Rows of all executions.

    Attributes:
        groups: index of the execution, [n].
        iterations: number of the iteration, [n].
        allocations: units of each resource, [n, R].
        metrics: measured values in the spec's units, [n, M].
        features: values of the features, [n, F].
        changed: 1 where a resource differs from the previous row of the execution, else 0, [n, R].
        paused: measured seconds of the change before the iteration, which ``metrics`` are without; NaN: unknown, [n].
    """

    groups: Integers
    iterations: Integers
    allocations: Floats
    metrics: Floats
    features: Floats
    changed: Floats
    paused: Floats

    @property
    def unmeasured(self) -> Floats:
        """``changed`` where the metrics include the change, because its seconds are unknown, else 0, [n, R]."""
        return np.where(np.isnan(self.paused)[:, None], self.changed, 0.0)

    def take(self, rows: Integers) -> Flat:
        """Return the k rows with the indices ``rows`` [k], in that order."""
        return Flat(
            self.groups[rows],
            self.iterations[rows],
            self.allocations[rows],
            self.metrics[rows],
            self.features[rows],
            self.changed[rows],
            self.paused[rows],
        )

    @property
    def X(self) -> Floats:
        """Allocations and features as inputs of estimators, [n, R + F]."""
        return np.hstack([self.allocations, self.features])


def _changes(allocation: Floats, groups: Integers) -> Floats:
    changed = np.zeros(allocation.shape)
    if len(allocation):
        same = (groups[1:] == groups[:-1])[:, None]
        changed[1:] = (allocation[1:] != allocation[:-1]) & same
    return changed


MOST_BINS = 128
MOST_NODES = 9
MOST_CELLS = 256
MOST_INPUTS = 60_000  # allocations · feature cells
MOST_ENTRIES = 8_000_000  # per metric: A · C · I


def iteration_bins(iterations: int, inputs: int) -> NDArray[np.int32]:
    """Return the index of each iteration's bin, [iterations]: its own, or shared with neighbours beyond 128 iterations
    or 8 million entries of a table with ``inputs`` rows (allocations times feature cells)."""
    count = max(min(iterations, MOST_BINS, MOST_ENTRIES // inputs), 1)
    return (np.arange(iterations) * count // iterations).astype(np.int32)


def feature_nodes(features: Floats, allocations: int) -> tuple[Floats, ...]:
    """Choose ascending interpolation nodes of each feature of ``features`` [n, F]: up to 9 of its distinct values.

    ``allocations`` is the number of the table's allocations; many allocations or features leave fewer nodes.
    """
    cells = min(MOST_CELLS, MOST_INPUTS // allocations)
    counts = [min(len(np.unique(column)), MOST_NODES) for column in features.T]
    while max(counts, default=1) > 1 and math.prod(counts) > cells:
        counts[counts.index(max(counts))] -= 1
    return tuple(_nodes(column, count) for column, count in zip(features.T, counts, strict=True))


def on_nodes(layout: Layout) -> Reading:
    """Make a function that predicts by a fitted family as the exported table will: by interpolation between nodes."""
    resources, allocations = len(layout.resources), len(layout.allocations)

    def read(fitted: Estimator, learned: Floats, X: Floats) -> Floats:
        nodes = feature_nodes(learned[:, resources:], allocations)
        cells, weights = locate(nodes, X[:, resources:])
        places = np.array(list(itertools.product(*nodes)))
        corners = np.concatenate([np.hstack([X[:, :resources], places[cell]]) for cell in cells])
        first, which = distinct(corners)
        logs = directly(fitted, learned, corners[first])[which].reshape(len(cells), -1)
        return logs[0] if weights is None else weighted_sum(list(logs), weights)

    return read if layout.features else directly


def inputs(layout: Layout, nodes: tuple[Floats, ...]) -> Floats:
    """List every allocation of the grid at every feature cell, cells varying fastest, [A · C, R + F]."""
    cells = np.array(list(itertools.product(*nodes)), np.float64).reshape(
        max(math.prod(map(len, nodes)), 1), len(nodes)
    )
    allocations = np.repeat(layout.allocations, len(cells), axis=0)
    return np.hstack([allocations, np.tile(cells, (len(layout.allocations), 1))])


def _nodes(values: Floats, limit: int) -> Floats:
    nodes = np.unique(values)
    if len(nodes) <= limit:
        return nodes
    return np.unique(np.quantile(nodes, np.linspace(0, 1, limit)))


MOST = 32
FINEST = 1_024  # most places of a course
STEADY = 1e-9  # relative difference within which a feature counts as unchanged


def courses(flat: Flat, iterations: int, rng: np.random.Generator) -> NDArray[np.float32] | None:
    """Extract the courses of the features over ``iterations`` iterations, [courses, places, F] with at most 1,024
    places per course; None if no feature changes within runs.

    A missing iteration is filled from another execution's row at that iteration, else from a random row. A feature that
    changes within no execution of several rows is constant: NaN in the courses.
    """
    varies = _varying(flat)
    if not varies.any():
        return None
    resolution = min(iterations, FINEST)
    place = course_places(iterations, resolution)[np.clip(flat.iterations, 0, iterations - 1)].astype(np.intp)
    names = rng.permutation(np.unique(flat.groups))
    complete = len(np.unique(flat.groups * resolution + place)) == len(names) * resolution
    count = min(len(names), MOST) if complete else MOST
    result = np.stack([_course(flat, names[k % len(names)], place, resolution, rng) for k in range(count)])
    return np.where(varies, result, np.nan).astype(np.float32)


def _varying(flat: Flat) -> NDArray[np.bool_]:
    """Return the mask [F] of features that change within executions or, if each has one row, between executions."""
    features, groups = flat.features, flat.groups
    first = np.searchsorted(groups, groups)  # rows of an execution lie together
    single = len(np.unique(groups)) == len(groups)
    against = features[:1] if single else features[first]
    changed = np.abs(features - against) > STEADY * (1 + np.abs(features))
    return np.asarray(changed.any(axis=0), np.bool_)


def _course(flat: Flat, execution: int, place: Integers, resolution: int, rng: np.random.Generator) -> Floats:
    """Return the features [resolution, F] of the execution of index ``execution``, at whose rows ``place`` [n] is the
    index in the course; gaps are filled from random rows of all executions at that place."""
    order = np.argsort(place, kind="stable")
    first, last = (np.searchsorted(place[order], np.arange(resolution), side) for side in ("left", "right"))
    drawn = first + (rng.random(resolution) * (last - first)).astype(np.intp)
    anywhere = rng.integers(0, len(place), resolution)
    rows = np.where(last > first, order[np.minimum(drawn, len(order) - 1)], anywhere)
    own = np.flatnonzero(flat.groups == execution)
    rows[place[own]] = own
    return np.asarray(flat.features[rows], np.float64)


# How the shares of an application's stages scatter around its own.


CONCENTRATIONS = np.array([100.0, 10.0, 3.0, 1.0, 0.3])  # from equal stages to stages of which only some scale
LEAST_SHARE = 0.02  # mean share of stages of an application that does not scale


def scatter(lattice: Floats, application: int) -> Floats:
    """Return the natural-log probability [S, J] that a bin of iterations has each of J shares of work that resources
    shorten, at each of S ``CONCENTRATIONS`` about the whole application's share.

    It is Dirichlet-multinomial over the steps of the lattice (Mosimann 1962), whose mean is the application's share at
    any concentration, even at the lattice's border, unlike a truncated normal distribution's.

    Args:
        lattice: the possible shares, one part for each of R resources, [J, R].
        application: index of the application's share in ``lattice``.
    """
    parts = np.column_stack([lattice, 1 - lattice.sum(axis=1)])
    steps = 1 / lattice[lattice > 0].min()
    counts = np.rint(parts * steps)
    mean = (parts[application] + LEAST_SHARE) / (1 + LEAST_SHARE * parts.shape[1])
    alpha = CONCENTRATIONS[:, None, None] * mean  # [S, 1, R + 1]
    orders = gammaln(steps + 1) - gammaln(counts + 1).sum(axis=1)
    drawn = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=2)
    total = gammaln(CONCENTRATIONS) - gammaln(steps + CONCENTRATIONS)
    return np.asarray(orders + drawn + total[:, None], np.float64)

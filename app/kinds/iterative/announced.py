"""Features of future iterations: announced by the run, or by the model's profile of past executions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue, InvalidInput, invalid
from app.kinds.iterative.layout import AHEAD
from app.kinds.iterative.model import Point, weighted_sum
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, by_member, member_point

if TYPE_CHECKING:
    from app.kinds.iterative.layout import Layout


Array = NDArray[Any]
Indices = NDArray[np.integer]
LARGEST = 1_000_000  # expectations that are computed at once


@dataclass(frozen=True, eq=False)
class Announced:
    """Announced iterations of B runs: at most U each, whose features lie among J corners of the model's feature grid.

    Below, N counts allocations per run.

    Attributes:
        projector: tables of the domain model.
        first: number of the first announced iteration, from 0, [B].
        counts: number of announced iterations, [B].
        point: cells and weights of their features for interpolation, [J, B, U] each.
    """

    projector: Projector
    first: Indices
    counts: Indices
    point: Point

    @property
    def following(self) -> Indices:
        """Number of the first iteration of each of B runs that is not announced, [B]."""
        return self.first + self.counts

    @property
    def next(self) -> Point:
        """Position of the next iteration's features, [J, B]; without meaning for runs that announced none."""
        cells, weights = self.point
        return Point(cells[:, :, 0], None if weights is None else weights[:, :, 0])

    def after_next(self) -> Announced | None:
        """Return the announced iterations without the next one; None if no more are announced."""
        if self.point.cells.shape[2] < 2:
            return None
        cells, weights = self.point
        rest = Point(cells[:, :, 1:], None if weights is None else weights[:, :, 1:])
        first = np.minimum(self.first + 1, self.projector.layout.iterations)
        return Announced(self.projector, first, np.maximum(self.counts - 1, 0), rest)

    def sums(self, metric: int, allocation: Indices, *, logs: bool) -> Array:
        """Return Σ over the announced iterations of the expected ``metric`` (a position), in its unit, or of its
        natural logarithm, [N, B], at rows ``allocation`` [N, B] of the allocation grid."""
        if logs:
            return self._sum_rest(metric, allocation, lambda mean, _: mean)
        return self._sum_rest(metric, allocation, lambda mean, noise: np.exp(mean + noise / 2))

    def variance(self, metric: int, allocation: Indices) -> Array:
        """Return the variance of the sum of ``metric`` by noise, [N, B], at grid rows ``allocation`` [N, B], if the
        run's factor (run effect) is 1."""
        return self._sum_rest(metric, allocation, lambda mean, noise: np.exp(2 * mean + noise) * np.expm1(noise))

    def _sum_rest(self, metric: int, allocation: Indices, of: Callable[[Array, Array], Array]) -> Array:
        ahead = self.point.cells.shape[2]
        options = max(1, min(len(allocation), LARGEST // ahead))
        runs = max(1, LARGEST // (options * ahead))
        out = np.zeros(allocation.shape, self.projector.dtype)
        for left in range(0, allocation.shape[1], runs):
            part = slice(left, left + runs)
            for top in range(0, len(allocation), options):
                out[top : top + options, part] = self._sums(metric, allocation[top : top + options, part], part, of)
        return out

    def _sums(self, metric: int, allocation: Indices, runs: slice, of: Callable[[Array, Array], Array]) -> Array:
        projector, (cells, weights) = self.projector, self.point
        places = np.arange(cells.shape[2])
        iterations = self.first[runs, None] + places  # [b, U]
        read = [projector.metric_logs(metric, allocation[:, :, None], cell, iterations) for cell in cells[:, runs]]
        result = read[0] if weights is None else weighted_sum(read, weights[:, runs])  # [n, b, U]
        values = of(result, projector.noise(iterations)[..., metric])
        total: Array = (values * (places < self.counts[runs, None])).sum(axis=2)
        return total

    def by_member(self, believed: Projector) -> Announced:
        """Return the same iterations for B · K runs: row b · K + k has those of run b for ensemble member k, among the
        feature cells of ``believed``, the projector with all K members."""
        count, (cells, weights) = self.projector.members, self.point
        offsets = np.tile(np.arange(count) * self.projector.cells, len(self.first))[:, None]
        point = Point(
            np.repeat(cells, count, axis=1) + offsets, None if weights is None else np.repeat(weights, count, axis=1)
        )
        return Announced(believed, np.repeat(self.first, count), np.repeat(self.counts, count), point)

    def coming(self, usual: Array, average: Array) -> Array:
        """Return observation entries on the next ``AHEAD`` iterations, [2 · ``AHEAD``, B]: relative length and scaling;
        announced ones replace ``usual``.

        Args:
            usual: these entries without announcements, [2 · ``AHEAD``, B].
            average: natural logarithm of the average iteration's seconds, [B].
        """
        cells, weights = self.point
        near = Point(cells[:, :, :AHEAD], None if weights is None else weights[:, :, :AHEAD])
        places = np.arange(near.cells.shape[2])
        known = places[:, None] < self.counts  # [U, B]
        upcoming = self.projector.coming_at(near, self.first[:, None] + places, average)
        out = np.broadcast_to(usual, (2 * AHEAD, len(self.first))).reshape(2, AHEAD, -1).copy()
        out[:, : len(places)] = np.where(known, upcoming, out[:, : len(places)])
        return out.reshape(2 * AHEAD, -1)


def announced_iterations(projector: Projector, state: State) -> Announced | None:
    """Return the announced iterations of ``state``; None if there are none or the model doesn't depend on features."""
    if state.upcoming.shape[1] == 0 or projector.cells == 1:
        return None
    unknown = np.isnan(state.upcoming[:, :, 0])
    batch, ahead, features = state.upcoming.shape
    values = np.where(unknown[:, :, None], projector.feature_low, state.upcoming)
    cells, weights = projector.point(values.reshape(-1, features))
    shape = (len(cells), batch, ahead)
    point = Point(cells.reshape(shape), None if weights is None else weights.reshape(shape))
    return Announced(projector, state.iteration, (~unknown).sum(axis=1), point)


@dataclass(frozen=True, eq=False)
class Remaining:
    """Remaining iterations of B runs at N allocations each: announced ones, then the model's profile.

    Attributes:
        ahead: projector of iterations that aren't announced.
        allocation: rows of the allocation grid, [N, B].
        point: position of the runs' features in the feature grid of ``ahead``.
        iteration: number of the next iteration, from 0, [B].
        announced: announced iterations; None: none.
        then: rows of the grid after the next iteration, [N, B]; None: ``allocation`` throughout.
    """

    ahead: Projector
    allocation: Indices
    point: Point
    iteration: Indices
    announced: Announced | None
    then: Indices | None = None
    _rests: dict[int, Array] = field(default_factory=dict, init=False)

    @cached_property
    def later(self) -> Remaining:
        """Iterations after the next one, at ``allocation``."""
        after = np.minimum(self.iteration + 1, self.ahead.layout.iterations)
        coming = None if self.announced is None else self.announced.after_next()
        return Remaining(self.ahead, self.allocation, self.point, after, coming)

    def taken_over(self) -> Remaining:
        """Return the iterations after the next one, at ``then``, or at ``allocation`` if that is None."""
        allocation = self.allocation if self.then is None else self.then
        return replace(self.later, allocation=allocation)

    def rest(self, metric: int) -> Array:
        """Return Σ over the remaining iterations of the expected ``metric``, in its unit, [N, B]; cached, read-only."""
        rest = self._rests.get(metric)
        if rest is None:
            rest = self._rests[metric] = self.sums(metric, logs=False)
        return rest

    def sums(self, metric: int, logs: bool) -> Array:
        """Return Σ over the remaining iterations of expected ``metric`` (its unit) or its log if ``logs``, [N, B]."""
        if self.then is not None:
            later = self.later.sums(metric, logs) - self.taken_over().sums(metric, logs)
            return replace(self, then=None).sums(metric, logs) - later
        read = self.ahead.remaining_log if logs else self.ahead.remaining
        if self.announced is None:
            return read(metric, self.allocation, self.point, self.iteration)
        rest = read(metric, self.allocation, self.point, self.announced.following)
        return rest + self.announced.sums(metric, self.allocation, logs=logs)

    def variance(self, metric: int) -> Array:
        """Return the variance of ``rest`` by noise, [N, B], for a run effect of 1 (factor).

        Raises KeyError for a metric without a target for the whole run."""
        if self.then is not None:
            later = self.later.variance(metric) - self.taken_over().variance(metric)
            return np.maximum(replace(self, then=None).variance(metric) - later, 0)
        if self.announced is None:
            return self.ahead.remaining_variance(metric, self.allocation, self.point, self.iteration)
        rest = self.ahead.remaining_variance(metric, self.allocation, self.point, self.announced.following)
        return rest + self.announced.variance(metric, self.allocation)

    def next(self, metric: int) -> tuple[Array, Array]:
        """Return the expected natural logarithm of the next iteration's ``metric``, [N, B], and the variance of that
        logarithm by noise, [B] or [1]."""
        logs = _next(self.ahead, metric, self.allocation, self.point, self.iteration)
        noise = self.ahead.noise(self.iteration)[:, metric]
        if self.announced is None:
            return logs, noise
        coming, known = self.announced, self.announced.counts > 0
        there = _next(coming.projector, metric, self.allocation, coming.next, self.iteration)
        own = coming.projector.noise(self.iteration)[:, metric]
        return np.where(known, there, logs), np.where(known, own, noise)


def _next(projector: Projector, metric: int, allocation: Indices, point: Point, iteration: Indices) -> Array:
    metric_logs = [projector.metric_logs(metric, allocation, cell, iteration) for cell in point.cells]
    return metric_logs[0] if point.weights is None else weighted_sum(metric_logs, point.weights)


def remaining(
    projector: Projector, state: State, allocation: Indices, announced: Announced | None, then: Indices | None = None
) -> tuple[Remaining, State]:
    """Return the remaining iterations of B runs at grid rows ``allocation`` [N, B], and the state.

    With an ensemble of K members both have B · K runs, run b and member k at b · K + k. ``announced``: announced
    iterations; ``then``: rows from the iteration after the next on, [N, B]; None: ``allocation``."""
    ahead = projector.ahead
    point = ahead.point(state.features)
    if projector.believed is None or ahead.believed is None:
        return Remaining(ahead, allocation, point, state.iteration, announced, then), state
    count = projector.members
    apart = by_member(state, count)._replace(targets=state.targets.repeat(count, axis=0))
    announced = None if announced is None else announced.by_member(projector.believed)
    rows, then = allocation.repeat(count, axis=1), None if then is None else then.repeat(count, axis=1)
    return Remaining(ahead.believed, rows, member_point(ahead, point), apart.iteration, announced, then), apart


# Validation and storage of announced features.


MOST_UPCOMING = 1_000
"""Most iterations announced at once: the time of a decision grows in proportion."""

Floats = NDArray[np.float64]


def encode_upcoming(layout: Layout, values: Sequence[Mapping[str, float]], iteration: int, pointer: str) -> Floats:
    """Return F features of U announced iterations, from ``iteration`` on, in the layout's order, [U, F].

    Args:
        layout: layout of the workload.
        values: features by name, for each of the U iterations.
        iteration: number of the first of them, from 0.
        pointer: JSON pointer of ``values``, for errors.

    Raises:
        InvalidInput: there are too many iterations, a name is unknown or missing, a value is out of bounds, or the
            workload has no features.
    """
    left = layout.iterations - iteration
    most = min(left, MOST_UPCOMING)
    if len(values) > most:
        why = f"{left} iterations remain" if most == left else "the maximum of one report"
        raise invalid(pointer, f"must hold at most {most} iterations: {why}", len(values))
    if values and not layout.features:
        raise invalid(pointer, "must be left out: the workload has no features", len(values))
    issues: list[FieldIssue] = []
    rows = []
    for place, features in enumerate(values):
        try:
            rows.append(layout.encode_features(features))
        except InvalidInput as refused:
            issues += [one._replace(pointer=f"{pointer}/{place}{one.pointer}") for one in refused.errors]
    if issues:
        raise InvalidInput(issues)
    return np.array(rows, np.float64).reshape(len(values), len(layout.features))


def pad_announced(announced: Sequence[Floats], features: int) -> NDArray[Any]:
    """Return the announced features of B runs, one [U, F] each with a U of its own, as one array [B, U, F], padded with
    NaN to the largest U. ``features``: number F of features."""
    longest = max(map(len, announced), default=0)
    if not longest:
        return np.zeros((len(announced), 0, features))
    out = np.full((len(announced), longest, features), np.nan)
    for row, one in zip(out, announced, strict=True):
        if len(one):
            row[: len(one)] = one
    return out

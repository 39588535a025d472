"""Projection of runs to their end: remaining sums of metrics by allocation; and workloads whose runs are jobs of
another."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from app.kinds.contract.engine import Member
from app.kinds.iterative.layout import AHEAD, Layout
from app.kinds.iterative.model import ModelTable, Point, interpolate, locate, weighted_sum

# Tables of a domain model for one workload: expectations of the remaining run by look-up.


LARGEST_SUFFIX = 2_000_000  # entries of one table of remaining sums; beyond it only every n-th iteration has a row
LOG_LIMIT = 3.0
TREND_DRIFT = 0.1  # of the noise: by how much a run effect drifts in an iteration where errors follow a trend
Array = NDArray[Any]
Indices = NDArray[np.integer]


def over_columns(values: Array) -> Array:
    """Return the sum over the R columns of ``values`` [B, R], [B]; column by column: NumPy is slow on short rows."""
    total: Array = values[:, 0]
    for column in range(1, values.shape[1]):
        total = total + values[:, column]
    return total


class ProjectionTables:
    """The domain model ``table`` for a ``layout``: expected natural logarithms of metrics, and their sums over
    remaining iterations. M metrics, R resources, A allocations of the grid, C feature cells, I iteration bins.

    Attributes:
        effect_variance: variance of the log run effect, [M].
        noise_variance: variance of a log metric by noise in an iteration, [M].
        drift_variance: variance of the log run effect's step per iteration, [M]; drift_sd: its square root.
        trend_variance: scale of the drift estimated from a run's own errors, [M] (``state.drift_variance``).
        change_seconds: additional seconds of an iteration in which a resource changes, [R].
        minima, steps, largest: lowest amount, step and highest amount of each resource, in its unit, [R].
        grid_levels: levels (steps above the minimum) of every allocation of the grid, [A, R].
        targeted: positions of the T metrics with a target.
        per_iteration, usual_worth: iterations that their targets span, and 1/target of the spec, [T, 1].
    """

    hours_per_second = 1 / 3600

    def __init__(self, layout: Layout, table: ModelTable, dtype: DTypeLike = np.float64) -> None:
        self.layout, self.table = layout, table
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.effect_variance = self._cast(table.effect_sd**2)
        self.noise_variance = self._cast(np.maximum(table.noise_sd, 1e-3) ** 2)
        self.drift_variance = self._cast(table.drift_sd**2)
        self.trend_variance = self._cast(TREND_DRIFT**2 * self.noise_variance)
        self.drift_sd = np.sqrt(self.drift_variance)
        self.effect_scale = np.sqrt(self.effect_variance + self.noise_variance)
        self.change_seconds = self._cast(table.change_seconds)
        self.minima = self._cast([r.minimum for r in layout.spec.resources])
        self.steps = self._cast([r.step for r in layout.spec.resources])
        self.bins, self.cells = table.log_mean.shape[3], table.cells
        self._logs = self._cast(np.moveaxis(table.log_mean, 0, -1)).reshape(-1, len(layout.metrics))
        self._bin = np.append(table.iteration_bin, table.iteration_bin[-1]).astype(np.intp)
        self._noise = self._noise_by_iteration()
        self.stride = -(-len(layout.allocations) * self.cells * (layout.iterations + 1) // LARGEST_SUFFIX)
        self.rows = -(-layout.iterations // self.stride) + 1
        axes = np.meshgrid(*[np.arange(n) for n in layout.levels], indexing="ij")
        self.grid_levels = np.stack(axes, axis=-1).reshape(-1, len(axes)).astype(np.int32)
        self.level_scale = self._cast(1 / np.maximum(np.array(layout.levels) - 1, 1))[:, None]
        self.effect_worth = (1 / self.effect_scale)[:, None]
        self.feature_low = self._cast([f.minimum for f in layout.spec.features])
        self.feature_span = self._cast([f.maximum - f.minimum for f in layout.spec.features])
        self._norms()
        self.largest = self._cast(layout.allocations[-1])

    @cached_property
    def _sums(self) -> list[Array]:
        return [self._suffix(m, logs=False) for m in range(len(self.layout.metrics))]

    @cached_property
    def _log_sums(self) -> list[Array]:
        return [self._suffix(m, logs=True) for m in range(len(self.layout.metrics))]

    @cached_property
    def _whole_run(self) -> Array:
        whole = self._sums[self.layout.seconds].reshape(len(self.layout.allocations), self.cells, self.rows)
        return np.ascontiguousarray(whole[-1, :, 0])

    def _noise_by_iteration(self) -> Array:
        """Return the noise variance of the log metrics by iteration, [iterations + 1, M]; [1, M] if constant."""
        if self.table.noise_by_bin is None:
            return self.noise_variance[None]
        return self._cast(np.maximum(self.table.noise_by_bin, 1e-3).T[self._bin] ** 2)

    def noise(self, iteration: Indices) -> Array:
        """Return the noise variance of M log metrics in ``iteration`` [B] of B runs, [B, M]; [1, M] if constant."""
        return self._noise if len(self._noise) == 1 else self._noise.take(iteration, axis=0, mode="clip")

    @cached_property
    def _rest_noise(self) -> Array:
        """Relative variance, by noise, of M metrics' sums over the remaining iterations, [iterations + 1, M].

        Iterations are weighted by their length averaged over grid and cells, as it hardly depends on the allocation."""
        size = np.exp(self.table.log_mean.astype(np.float64)).mean(axis=(1, 2)).T[self._bin]  # [iterations + 1, M]
        size[-1] = 0
        squares, whole = (part[::-1].cumsum(axis=0)[::-1] for part in (size**2 * self._noise, size))
        return self._cast(squares / np.maximum(whole, 1e-12) ** 2)

    def rest_noise(self, metric: int, iteration: Indices) -> Array:
        """Return the relative variance, by noise, of the sum of ``metric`` from ``iteration`` [B] to the end, [B]."""
        return self._rest_noise[:, metric].take(iteration, mode="clip")

    def _norms(self) -> None:
        layout = self.layout
        self.targeted = [i for i, metric in enumerate(layout.spec.metrics) if metric.target is not None]
        spans = [layout.iterations if layout.spec.metrics[i].scope == "run" else 1 for i in self.targeted]
        self.per_iteration = self._cast(spans)[:, None]
        self.usual_worth = self._cast(1 / layout.targets[self.targeted])[:, None]

    @cached_property
    def _lengths(self) -> Array:
        """Natural logarithms of the iterations' mean seconds, and of their ratio at the smallest to the largest
        allocation, [2, C, I]."""
        logs = self.table.log_mean[self.layout.seconds].astype(np.float64)  # [A, C, I]
        return np.stack([logs.mean(axis=0), logs[0] - logs[-1]])

    @cached_property
    def _average_length(self) -> Array:
        average: Array = np.log(np.exp(self._lengths[0][:, self._bin]).mean(axis=1))
        return average

    @cached_property
    def _coming(self) -> Array:
        length, scaling = self._lengths
        lengths = np.clip(np.stack([length - self._average_length[:, None], scaling]), -LOG_LIMIT, LOG_LIMIT)
        ahead = np.arange(self.layout.iterations + 1) + np.arange(AHEAD)[:, None]
        if self.bins == 1:
            ahead = ahead[:, :1] * 0
        table = lengths[:, :, self._bin[np.minimum(ahead, self.layout.iterations)]]  # [2, C, AHEAD, K]
        table[:, :, ahead >= self.layout.iterations] = 0
        return self._cast(np.moveaxis(table, 1, 2).reshape(2 * AHEAD, -1))

    def coming(self, point: Point, iteration: Indices) -> Array:
        """Return observation entries on the next ``AHEAD`` iterations of B runs, [2 · ``AHEAD``, B]; 0 past the end.

        They are natural logarithms of the iterations' length over the average length, then of their length at the
        smallest over the largest allocation, clipped to ± ``LOG_LIMIT``."""
        if self.bins == 1 and self.cells == 1:
            return self._coming
        columns = point.cells if self.bins == 1 else point.cells * (self.layout.iterations + 1) + iteration
        return interpolate([self._coming.take(column, axis=1) for column in columns], point.weights, logs=True)

    def average_length(self, point: Point) -> Array:
        """Return the natural logarithm of the average iteration's seconds, with features at ``point``, [B]."""
        return interpolate([self._average_length[cell] for cell in point.cells], point.weights, logs=True)

    def coming_at(self, point: Point, iterations: Indices, average: Array) -> Array:
        """Return log length over the average, then log ratio of lengths at the smallest to the largest allocation, of
        ``iterations`` [B, U] with features at ``point`` [J, B, U], clipped to ± ``LOG_LIMIT``, [2, U, B]. ``average``:
        natural logarithm of the average iteration's seconds, [B]."""
        bins = self._bin[np.minimum(iterations, self.layout.iterations)]
        length, scaling = interpolate([self._lengths[:, cell, bins] for cell in point.cells], point.weights, logs=True)
        lengths = np.stack([length - average[:, None], scaling])
        return self._cast(np.moveaxis(np.clip(lengths, -LOG_LIMIT, LOG_LIMIT), 1, 2))

    def _cast(self, values: object) -> Array:
        return np.ascontiguousarray(np.asarray(values, self.dtype))

    def _suffix(self, metric: int, *, logs: bool) -> Array:
        table = self.table.log_mean[metric].reshape(-1, self.bins).astype(np.float64)  # [A·C, I]
        return self._sum_bins(table if logs else np.exp(table + self._noise_in_bins(metric) / 2))

    def _noise_in_bins(self, metric: int) -> Array:
        """Return the noise variance of the log metric by iteration bin, [I]; [1] if constant."""
        if self.table.noise_by_bin is None:
            return self.noise_variance[metric, None].astype(np.float64)
        return np.maximum(self.table.noise_by_bin[metric], 1e-3) ** 2

    @cached_property
    def _variance_sums(self) -> dict[int, Array]:
        return {m: self._variances(m) for m in self.targeted if self.layout.spec.metrics[m].scope == "run"}

    def _variances(self, metric: int) -> Array:
        logs = self.table.log_mean[metric].reshape(-1, self.bins).astype(np.float64)  # [A·C, I]
        noise = self._noise_in_bins(metric)
        return self._sum_bins(np.exp(2 * logs + noise) * np.expm1(noise))

    def _sum_bins(self, values: Array) -> Array:
        """Return Σ of ``values`` [A · C, I], by iteration bin, over iterations from row · stride on, [A · C · rows]."""
        sums = np.zeros((len(values), self.rows))
        for row in range(self.rows - 2, -1, -1):
            first, last = row * self.stride, min((row + 1) * self.stride, self.layout.iterations)
            counts = np.bincount(self._bin[first:last], minlength=self.bins)
            sums[:, row] = sums[:, row + 1] + values @ counts
        return self._cast(sums.reshape(-1))

    def units(self, levels: Indices) -> Array:
        """Return ``levels`` [B, R] (steps above the minimum) as amounts in the units of the R resources, [B, R]."""
        return self.minima + self.steps * levels

    @cached_property
    def spans(self) -> tuple[Array, Array]:
        """Squared log offsets of interval bounds (low, high) of M metrics given the run effect, and their increase if
        it is unknown, [2, 1, M] each."""
        table = self.table
        residual = np.array([table.residual_low, table.residual_high])[:, None] ** 2
        marginal = np.array([table.marginal_low, table.marginal_high])[:, None] ** 2
        return residual, np.maximum(marginal - residual, 0)

    @cached_property
    def open_variance(self) -> Array:
        """Variance of the log run effect of M metrics before any report, [M]; above 0."""
        return np.maximum(self.effect_variance, 1e-12)

    @cached_property
    def far(self) -> NDArray[np.bool_]:
        """Mask of the A grid allocations over 1.5 steps outside the samples' range in any resource, [A]."""
        units, margin = self.units(self.grid_levels), self.steps * 1.5
        beyond = (units < self.table.seen_low - margin) | (units > self.table.seen_high + margin)
        return np.asarray(beyond.any(axis=1), np.bool_)

    def share_moved(self, steps: Array) -> Array:
        """Return ``steps`` (levels changed) as a share of the most possible in a run, of the same shape."""
        return steps / self.dtype.type(self.layout.largest_action * self.layout.iterations)

    def point(self, features: Array) -> Point:
        """Locate B vectors of F ``features`` [B, F] among the feature cells."""
        if self.cells == 1:
            return Point(np.zeros((1, len(features)), np.intp))
        found = self.table.point(features)
        return Point(found.cells, None if found.weights is None else found.weights.astype(self.dtype, copy=False))

    def whole_run(self, point: Point) -> Array:
        """Return the expected seconds of B whole runs at the largest allocation, with features at ``point``, [B]."""
        return interpolate([self._whole_run[cell] for cell in point.cells], point.weights, logs=False)

    def row(self, allocation: Indices, cell: Indices, count: int) -> Indices:
        """Return the index of the first of ``count`` entries of each allocation and feature cell in a flat table; shape
        as broadcast."""
        if self.cells > 1:
            allocation = allocation * self.cells + cell
        return allocation * count if count > 1 else allocation

    def log_mean(self, allocation: Indices, point: Point, iteration: Indices) -> Array:
        """Return the expected natural logarithms of M metrics, [B, M], without the run effect, at rows ``allocation``
        [B] of the grid in ``iteration`` [B]."""
        return self.look_up(self._logs, allocation, point, iteration)

    def metric_logs(self, metric: int, allocation: Indices, cell: Indices, iteration: Indices) -> Array:
        """Return the expected natural logarithm of one metric at rows of the grid, feature cells and iterations, of
        their broadcast shape."""
        row = self.row(allocation, cell, self.bins)
        if self.bins > 1:
            row = row + self._bin[np.minimum(iteration, self.layout.iterations)]
        return self._logs[row, metric]

    def look_up(self, table: Array, allocation: Indices, point: Point, iteration: Indices) -> Array:
        """Return rows of ``table`` [A · C · I, ...] for B runs, interpolated at ``point``, [B, ...]."""
        rows = [self.row(allocation, cell, self.bins) for cell in point.cells]
        if self.bins > 1:
            bins = self._bin[np.minimum(iteration, self.layout.iterations)]
            rows = [row + bins for row in rows]
        if point.weights is None:
            return table.take(rows[0], axis=0)
        return weighted_sum([table.take(row, axis=0).T for row in rows], point.weights).T

    def remaining(self, metric: int, allocation: Indices, point: Point, iteration: Indices) -> Array:
        """Return Σ of the expected ``metric``, in its unit, from ``iteration`` [B] to the end, [K, B], without the run
        effect, if each of K grid rows ``allocation`` [K, B] is held."""
        read = [self._sum(self._sums[metric], allocation, cell, iteration) for cell in point.cells]
        return interpolate(read, point.weights, logs=False)

    def remaining_log(self, metric: int, allocation: Indices, point: Point, iteration: Indices) -> Array:
        """Return Σ of the expected natural logarithm of ``metric`` from ``iteration`` [B] to the end, [K, B], if each
        of K grid rows ``allocation`` [K, B] is held."""
        read = [self._sum(self._log_sums[metric], allocation, cell, iteration) for cell in point.cells]
        return interpolate(read, point.weights, logs=True)

    def remaining_variance(self, metric: int, allocation: Indices, point: Point, iteration: Indices) -> Array:
        """Return the variance of ``remaining`` by noise, [K, B], for a run effect (factor) of 1.

        Raises KeyError for a metric without a target for the whole run."""
        read = [self._sum(self._variance_sums[metric], allocation, cell, iteration) for cell in point.cells]
        return interpolate(read, point.weights, logs=False)

    def _sum(self, table: Array, allocation: Indices, cell: Indices, iteration: Indices) -> Array:
        row, part = iteration, None
        if self.stride > 1:
            row, part = np.divmod(iteration, self.stride)
        index = self.row(allocation, cell, self.rows) + row
        below: Array = np.take(table, index)
        if part is None:
            return below
        above = np.take(table, index + (row < self.rows - 1))
        return below + (above - below) * (part / self.stride).astype(self.dtype)


# Expectation over unknown features of future iterations: averages over the samples' courses.


LARGEST = 4_000_000  # entries of one array; where it would be larger, iterations that share a bin share a course
PROBES = 3  # allocations, and cells of the other features, at which the spread over courses is computed


def average_features(table: ModelTable) -> ModelTable:
    """Return ``table`` averaged over features that vary within executions; ``table`` itself if none do.

    Logarithms are averaged; their variance over executions is added to the noise, which increases expected sums and
    widens intervals to reflect the uncertainty."""
    if table.courses is None or table.cells == 1:
        return table
    varying = [bool(np.isfinite(course).all()) for course in np.moveaxis(table.courses, 2, 0)]
    parts = _parts(table, table.courses)
    course = _locate_varying(table, table.courses, varying, parts)
    stage = np.zeros(parts.bins.max() + 1, np.intp)
    stage[parts.bins] = parts.stages
    weights = _weights(course, parts)
    logs = _by_varying(table, table.log_mean, varying)
    unknown = _spread(logs, course, parts)
    noise = np.repeat(table.noise_sd[:, None], logs.shape[4], axis=1)
    noise = (noise if table.noise_by_bin is None else table.noise_by_bin)[:, stage]
    nodes = [known[:1] if varies else known for known, varies in zip(table.feature_nodes, varying, strict=True)]
    members = None
    if table.members is not None:
        members = np.stack(
            [_average_by_stage(_by_varying(table, one, varying), weights, stage) for one in table.members]
        )
    return replace(
        table,
        log_mean=_average_by_stage(logs, weights, stage),
        iteration_bin=np.repeat(parts.bins, parts.lengths).astype(np.int32),
        feature_nodes=tuple(nodes),
        noise_sd=np.sqrt(table.noise_sd**2 + unknown.mean(axis=1)),
        noise_by_bin=np.sqrt(noise**2 + unknown),
        members=members,
        courses=None,
    )


def course_places(iterations: int, resolution: int) -> NDArray[np.intp]:
    """Return each iteration's index, from 0, in a record of ``resolution`` entries over a run, [iterations]."""
    return np.arange(iterations) * resolution // iterations


class _Parts(NamedTuple):
    """S segments of similar iterations, [S] each: number of iterations ``lengths``, bin of iterations in the table
    (``stages``) and in the averaged one (``bins``), and index in the features' recorded course (``places``)."""

    lengths: NDArray[np.intp]
    stages: NDArray[np.intp]
    bins: NDArray[np.intp]
    places: NDArray[np.intp]


def _parts(table: ModelTable, courses: Array) -> _Parts:
    places = course_places(len(table.iteration_bin), courses.shape[1])
    anew = np.diff(table.iteration_bin, prepend=-1) != 0
    first = np.flatnonzero(anew | (np.diff(places, prepend=-1) != 0))
    members = 1 if table.members is None else len(table.members)
    fits = len(first) * table.log_mean[..., 0].size * members <= LARGEST
    bins = np.arange(len(first)) if fits else np.cumsum(anew)[first] - 1
    lengths = np.diff(first, append=len(places))
    return _Parts(lengths, table.iteration_bin[first].astype(np.intp), bins, places[first])


def _locate_varying(table: ModelTable, courses: Array, varying: list[bool], parts: _Parts) -> Point:
    """Locate the varying ones of ``courses`` [X, G, F] among their own cells: X executions, S segments, [J, X, S]."""
    nodes = [known for known, varies in zip(table.feature_nodes, varying, strict=True) if varies]
    features = courses[:, parts.places][:, :, varying].astype(np.float64)
    cells, weights = locate(nodes, features.reshape(-1, len(nodes)))
    shape = (len(cells), *features.shape[:2])
    return Point(cells.reshape(shape), np.ones(shape) if weights is None else weights.reshape(shape))


def _weights(course: Point, parts: _Parts) -> Array:
    """Return how the iterations of past executions in each bin are distributed over the V cells of the varying
    features, [bins, V], shares with sum 1 per bin. ``course``: cells of X executions in S segments, [J, X, S]."""
    width = int(course.cells.max()) + 1
    rows = (parts.bins * width + course.cells).reshape(-1)
    share = 1.0 if course.weights is None else course.weights
    total = np.bincount(rows, (share * parts.lengths).reshape(-1), (parts.bins.max() + 1) * width)
    found = total.reshape(-1, width)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _by_varying(table: ModelTable, logs: Array, varying: list[bool]) -> Array:
    """Return ``logs`` [M, A, C, I] with the V cells of varying features apart from the P others, [M, A, P, V, I]."""
    apart = logs.reshape(*logs.shape[:2], *(len(known) for known in table.feature_nodes), -1)
    order = sorted(range(len(varying)), key=lambda axis: varying[axis])
    width = int(np.prod([len(known) for known, varies in zip(table.feature_nodes, varying, strict=True) if varies]))
    apart = apart.transpose(0, 1, *(2 + axis for axis in order), apart.ndim - 1)
    return apart.reshape(*logs.shape[:2], -1, width, logs.shape[3])


def _average_by_stage(logs: Array, weights: Array, stage: NDArray[np.intp]) -> NDArray[np.float32]:
    """Average ``logs`` [M, A, P, V, I] by ``weights`` [bins, V] at bin ``stage`` [bins] of I, to [M, A, P, bins]."""
    width = weights.shape[1]
    columns = [logs[:, :, :, :width, known] @ one for known, one in zip(stage, weights, strict=True)]
    return np.stack(columns, axis=-1).astype(np.float32)


def _spread(logs: Array, course: Point, parts: _Parts) -> Array:
    """Return the variance of ``logs`` [M, A, P, V, I] over executions and the iterations of a bin, [M, bins]."""
    probes = [np.unique(np.linspace(0, size - 1, PROBES).astype(int)) for size in logs.shape[1:3]]
    probed = logs[:, probes[0]][:, :, probes[1]].astype(np.float64)
    read = [probed[:, :, :, cell, parts.stages] for cell in course.cells]  # [M, a, p, X, S]
    found = read[0] if course.weights is None else weighted_sum(read, course.weights)
    count = np.bincount(parts.bins, parts.lengths)
    first, second = (_by_bin(values.mean(axis=3) * parts.lengths, parts.bins) / count for values in (found, found**2))
    return np.asarray(np.maximum(second - first**2, 0).mean(axis=(1, 2)))


def _by_bin(values: Array, bins: NDArray[np.intp]) -> Array:
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    return np.add.reduceat(values, starts, axis=-1)


# A workload of kind ``iterative`` as a member of another: seconds of its iterations, and its targets.


SHARED = "gpus"
WHOLE = 1e-9


def member(layout: Layout, table: ModelTable | None) -> Member | None:
    """Describe the workload as a job (``Member``) of another one, which allocates its only resource, or ``gpus``, to
    it.

    Returns None without such a resource, or if its amounts aren't whole numbers. ``table`` None: no model yet."""
    names = layout.resources
    if len(names) > 1 and SHARED not in names:
        return None
    column = names.index(SHARED) if SHARED in names else 0
    amounts = np.unique(layout.allocations[:, column])
    if (np.abs(amounts - np.rint(amounts)) > WHOLE).any():
        return None
    amounts = amounts[amounts > 0]
    seconds = np.full(len(amounts), np.nan) if table is None else _seconds(layout, table, column, amounts)
    spread = 0.0 if table is None else float(np.hypot(*(x[layout.seconds] for x in (table.effect_sd, table.noise_sd))))
    own = layout.spec.metrics[layout.seconds]
    wanted = own.target if own.target is not None and own.goal == "at_most" else np.inf
    whole = own.scope == "run"
    return Member(
        amounts=np.rint(amounts).astype(np.int64),
        seconds=seconds,
        spread=spread,
        iterations=layout.iterations,
        run_seconds=wanted if whole else np.inf,
        iteration_seconds=np.inf if whole else wanted,
        weight=own.weight,
    )


def _seconds(layout: Layout, table: ModelTable, column: int, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over a run of the iterations' median seconds on each of ``amounts`` (of resource ``column``),
    with features in the middle of their range and the most of other resources."""
    usual = average_features(table)
    logs = usual.log_mean[layout.seconds]
    point = usual.point((usual.feature_low + usual.feature_high)[None] / 2)
    corners = [logs[:, cell].swapaxes(1, 2) for cell in point.cells]  # [A, I, 1] each
    known = corners[0] if point.weights is None else weighted_sum(corners, point.weights)
    each = np.exp(known[:, :, 0].astype(np.float64))[:, usual.iteration_bin].mean(axis=1)
    held = layout.allocations[:, column]
    return np.array([each[np.flatnonzero(held == amount)[-1]] for amount in amounts])

"""The fit of a domain model of kind ``iterative``: the exported table and its report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import stdtrit

from app.charts.text import seconds
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import SECONDS, Criterion, Spec
from workers.estimators.base import (
    LEVEL,
    CriterionMissed,
    EstimationError,
    Floats,
    Inputs,
    Integers,
    TooLittleData,
    distinct,
)
from workers.estimators.registry import FAMILIES
from workers.estimators.residuals import (
    MOST,
    Measurements,
    Spreads,
    decompose,
    mean_by_execution,
    run_bounds,
    unexplained_entries,
)
from workers.estimators.selection import Selection, select
from workers.kinds.iterative import grid
from workers.kinds.iterative.belief import FREEDOM, MEMBERS, Members, members, shift_members
from workers.kinds.iterative.grid import Executions, Flat, courses

# Cost of a change of allocation: extra seconds of the iteration in which it happens, per resource.


ENOUGH_CHANGES = 5
ROUNDS = 20


class ChangeCost(NamedTuple):
    """Duration of changes of allocation.

    Attributes:
        seconds: seconds that a change of each resource adds to an iteration, [R].
        measured: whether these come from the samples (True) or from the spec, [R].
    """

    seconds: Floats
    measured: NDArray[np.bool_]


def change_cost(seconds: Floats, expected: Floats, changed: Floats, stated: Floats) -> ChangeCost:
    """Estimate the seconds that a change of each resource adds to an iteration, by Huber regression (1964).

    A resource counts as measured if it changed at least five times and two standard errors are within the estimate or
    5 % of the median iteration.

    Args:
        seconds: measured seconds of n iterations, [n].
        expected: seconds that the model expects without a change, with the run effect, [n].
        changed: 1 where a resource changed before the iteration, else 0, [n, R].
        stated: the spec's seconds, for resources that are not measured, [R].
    """
    excess = seconds - expected
    often = changed.sum(axis=0) >= ENOUGH_CHANGES
    if not often.any() or len(seconds) < 2 * ENOUGH_CHANGES:
        return ChangeCost(stated.copy(), np.zeros(len(stated), bool))
    terms = np.column_stack([np.ones(len(excess)), changed[:, often]])
    theta, error = _robust(terms, excess)
    small = 2 * error[1:] <= np.maximum(np.abs(theta[1:]), 0.05 * float(np.median(seconds)))
    measured = np.zeros(len(stated), bool)
    measured[np.flatnonzero(often)] = small
    costs = stated.copy()
    costs[measured] = np.maximum(theta[1:][small], 0.0)
    return ChangeCost(costs, measured)


def _robust(terms: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Fit ``target`` [n] to ``terms`` [n, T] by Huber regression; return coefficients [T] and standard errors [T]."""
    weights: Floats = np.ones(len(target))
    theta: Floats = np.zeros(terms.shape[1])
    inverse: Floats = np.eye(terms.shape[1])
    for _ in range(ROUNDS):
        inverse = np.asarray(np.linalg.pinv(terms.T @ (terms * weights[:, None])), np.float64)
        theta = inverse @ (terms.T @ (weights * target))
        residual = np.abs(target - terms @ theta)
        limit = 1.345 * 1.4826 * max(float(np.median(residual)), 1e-9)
        weights = np.minimum(1.0, limit / np.maximum(residual, 1e-12))
    scores = terms * (weights * (target - terms @ theta))[:, None]
    return np.asarray(theta, np.float64), np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))


BATCH = 1_024
REPEATS = 7


def simulated_iteration_seconds(table: ModelTable, seed: int, clock: Callable[[], float]) -> float:
    """Measure the seconds of computation per simulated iteration: the median of seven repeats over 1,024 iterations.

    One iteration is a look-up in the table, run effect, noise and exponential of every metric. ``clock`` returns the
    current time in seconds.
    """
    rng = np.random.default_rng(seed)
    metrics, allocations, cells, bins = table.log_mean.shape
    place = [rng.integers(0, size, BATCH) for size in (allocations, cells, bins)]
    effect = rng.normal(size=(metrics, BATCH)) * table.effect_sd[:, None]
    durations = []
    for _ in range(REPEATS):
        start = clock()
        noise = rng.normal(size=(metrics, BATCH)) * table.noise_sd[:, None]
        np.exp(table.log_mean[:, place[0], place[1], place[2]] + effect + noise)
        durations.append(clock() - start)
    return float(np.median(durations)) / BATCH


def check(criterion: Criterion, simulated_seconds: float, real_seconds: float) -> None:
    """Compare the seconds of a simulated and of a real iteration with the spec's criterion.

    Raises:
        CriterionMissed: the simulated iteration takes longer than ``max_seconds`` or ``max_fraction`` of the real one.
    """
    share = criterion.max_fraction * real_seconds
    allowed = min(criterion.max_seconds, share)
    if simulated_seconds > allowed:
        reason = (
            f"max_seconds, {seconds(criterion.max_seconds)}"
            if criterion.max_seconds <= share
            else f"max_fraction {criterion.max_fraction:g} of a real iteration of {seconds(real_seconds)}"
        )
        raise CriterionMissed(simulated_seconds, allowed, reason)


MOST_ROWS = 20_000
MOST_CELLS, METRICS_AT_MOST_CELLS = 1_500, 4
"""Most distinct inputs of a metric; with more than four metrics fewer, so that the total work is the same."""
FEWEST_EXECUTIONS = 2  # a single one does not show how runs differ
FEWEST_TO_JUDGE = 3  # executions of a model that judges others; allocations also have a minimum
FEWEST_MEMBERS = 4  # of a belief whose table has the largest size


@dataclass(frozen=True)
class FittedModel:
    """The result of a fit: the domain model, and a JSON-like report on the fit and its errors."""

    table: ModelTable
    report: dict[str, Any]


class MetricFit(NamedTuple):
    """The fit of one metric.

    Attributes:
        selection: the selected family, fitted.
        used: mask of the rows that it was fitted to, [n].
        spreads: deviations between runs, within runs and by drift.
        unexplained: JSON-like descriptions of rows that the model does not explain.
    """

    selection: Selection
    used: NDArray[np.bool_]
    spreads: Spreads
    unexplained: list[dict[str, Any]]


def fit_domain_model(
    spec: Spec,
    executions: Executions,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
    *,
    reported: bool = True,
) -> FittedModel:
    """Fit every metric of ``spec`` to ``executions``, and export the domain model's table.

    Args:
        seed: seed of subsets, folds and draws.
        clock: current time in seconds, to measure simulated iterations.
        reported: whether reported errors come from rows that the choice of the family did not use; False is faster.

    Raises:
        TooLittleData: fewer than two executions, or an iteration's duration that never varies.
        CriterionMissed: a simulated iteration takes longer than ``spec.criterion`` allows.
        EstimationError: a metric is not greater than 0 everywhere.
    """
    layout = Layout(spec)
    every = executions.flat(layout)
    check_enough(layout, every)
    flat = _thin_rows(every, seed)
    nodes = grid.feature_nodes(flat.features, len(layout.allocations))
    inputs = grid.inputs(layout, nodes)
    bin_of = grid.iteration_bins(spec.iterations, len(inputs))
    bins = bin_of[np.clip(flat.iterations, 0, spec.iterations - 1)].astype(np.intp)
    metrics = range(len(layout.metrics))
    fits = [_fit_metric(layout, executions.names, flat, bins, m, seed, reported) for m in metrics]
    cost = _change_cost(layout, flat, bins, fits[layout.seconds])
    if all(fit.selection.form == "none" for fit in fits):
        bin_of = np.zeros_like(bin_of)
    believed = members(
        layout,
        flat,
        inputs,
        bin_of,
        [fit.selection for fit in fits],
        [fit.used for fit in fits],
        count=int(np.clip(grid.MOST_ENTRIES // (len(inputs) * (int(bin_of.max()) + 1)), FEWEST_MEMBERS, MEMBERS)),
        rng=np.random.default_rng(seed),
    )
    table = _table(layout, flat, nodes, inputs, bin_of, fits, cost, believed)
    table = shift_members(layout, table, flat, [fit.selection.residuals for fit in fits], [fit.used for fit in fits])
    table = replace(table, courses=courses(flat, spec.iterations, np.random.default_rng(seed)))
    seconds = simulated_iteration_seconds(table, seed, clock)
    check(spec.criterion, seconds, float(np.median(flat.metrics[:, layout.seconds])))
    return FittedModel(table, _report(layout, every, flat, fits, cost, believed, seconds))


def check_judge(layout: Layout, flat: Flat) -> None:
    """Check that the samples ``flat`` suffice for a model by which policies for other models are judged.

    Raises:
        TooLittleData: fewer than 3 executions, too few different allocations, or durations that never differ.
        EstimationError: a metric is not greater than 0 everywhere.
    """
    if lacking := _lacking_to_judge(layout, flat):
        raise lacking
    check_enough(layout, flat)


def _lacking_to_judge(layout: Layout, flat: Flat) -> TooLittleData | None:
    """Return the error that ``check_judge`` raises for too few executions or allocations; None: there are enough."""
    needed = min(2 + len(layout.resources), len(layout.allocations))
    executions, allocations = len(np.unique(flat.groups)), len(np.unique(flat.allocations, axis=0))
    if executions >= FEWEST_TO_JUDGE and allocations >= needed:
        return None
    return TooLittleData(f"{FEWEST_TO_JUDGE} executions at {needed} allocations", f"{executions} at {allocations}")


def check_enough(layout: Layout, flat: Flat) -> None:
    """Check that the samples ``flat`` suffice for a domain model, for which a single allocation is enough.

    Raises:
        TooLittleData: fewer than two executions, or durations that never differ.
        EstimationError: a metric is not greater than 0 everywhere.
    """
    executions = len(np.unique(flat.groups))
    if executions < FEWEST_EXECUTIONS:
        raise TooLittleData(f"{FEWEST_EXECUTIONS} executions", str(executions))
    for name, values in zip(layout.metrics, flat.metrics.T, strict=True):
        if not (values > 0).all():
            raise EstimationError(f"{name} must be greater than 0; the least is {values.min():g}", f"/metrics/{name}")
    seconds = flat.metrics[:, layout.seconds]
    if np.ptp(np.log(seconds)) < 1e-9:
        has = f"{len(seconds)} times {seconds[0]:g} s"
        raise TooLittleData(f"measurements of {SECONDS} that differ", has, f"/metrics/{SECONDS}")


def _thin_rows(flat: Flat, seed: int) -> Flat:
    """Return at most ``MOST_ROWS`` rows, of a random subset of executions; every k-th row if these have more."""
    if len(flat.groups) <= MOST_ROWS:
        return flat
    names = np.unique(flat.groups)
    selection = np.random.default_rng(seed).permutation(names)[: MOST_ROWS // 20]
    chosen = np.flatnonzero(np.isin(flat.groups, selection))
    chosen = chosen[:: -(-len(chosen) // MOST_ROWS)]
    return flat.take(chosen)


def _fit_metric(
    layout: Layout, names: list[str], flat: Flat, bins: Integers, metric: int, seed: int, reported: bool
) -> MetricFit:
    logs = np.log(flat.metrics[:, metric])
    used = _usable(flat) if metric == layout.seconds else np.ones(len(logs), bool)
    share = min(1.0, METRICS_AT_MOST_CELLS / len(layout.metrics))
    columns = Inputs(tuple(layout.resources), tuple(layout.features), round(MOST_CELLS * share ** (1 / 3)))
    families = FAMILIES if np.ptp(logs) > 1e-9 else {"mean": FAMILIES["mean"]}
    count = int(bins.max()) + 1
    X, groups = flat.X[used], flat.groups[used]
    chosen = select(
        columns,
        X,
        np.exp(logs[used]),
        groups,
        bins[used],
        bin_count=count,
        seed=seed,
        families=families,
        reading=grid.on_nodes(layout),
        reported=reported,
    )
    spreads = decompose(chosen.residuals, groups, flat.iterations[used], chosen.folds, seed)
    unit = f" {layout.spec.metrics[metric].unit}".rstrip()
    measured = Measurements(layout.metrics[metric], unit, names, groups, flat.iterations[used], logs[used])
    return MetricFit(chosen, used, spreads, unexplained_entries(measured, spreads))


def _usable(flat: Flat) -> NDArray[np.bool_]:
    """Return the mask [n] of rows without a change of allocation; all True if these are fewer than 60 % of the rows or
    80 % of the distinct inputs, or lack an execution."""
    quiet: NDArray[np.bool_] = flat.unmeasured.sum(axis=1) == 0
    first, _ = distinct(flat.X)
    left, _ = distinct(flat.X[quiet])
    executions = len(np.unique(flat.groups[quiet])) == len(np.unique(flat.groups))
    enough = executions and quiet.mean() >= 0.6 and len(left) >= 0.8 * len(first)
    return quiet if enough else np.ones(len(quiet), bool)


def _change_cost(layout: Layout, flat: Flat, bins: Integers, fit: MetricFit) -> ChangeCost:
    stated = np.array([r.change_seconds for r in layout.spec.resources])
    effects = np.nan_to_num(fit.spreads.effects)[flat.groups]
    expected = np.exp(fit.selection.log_mean(flat.X, bins) + effects)
    result = change_cost(flat.metrics[:, layout.seconds], expected, flat.unmeasured, stated)
    moved = flat.changed * np.isfinite(flat.paused)[:, None]
    known = moved.any(axis=0)  # by launchers, to which it matters more than what iterations took
    if not known.any():
        return result
    rows = moved.any(axis=1)
    costs, _ = nnls(moved[np.ix_(rows, known)], flat.paused[rows])
    seconds = result.seconds.copy()
    seconds[known] = costs
    return ChangeCost(seconds, result.measured | known)


def _table(
    layout: Layout,
    flat: Flat,
    nodes: tuple[Floats, ...],
    inputs: Floats,
    bin_of: NDArray[np.int32],
    fits: list[MetricFit],
    cost: ChangeCost,
    believed: Members,
) -> ModelTable:
    count = int(bin_of.max()) + 1
    logs = np.stack([_surface(fit.selection, inputs, count) for fit in fits])
    marginal, residual = _offsets(layout, flat, fits, believed)
    log_mean = logs.reshape(len(fits), len(layout.allocations), -1, count).astype(np.float32)
    return ModelTable(
        log_mean=log_mean,
        iteration_bin=bin_of,
        feature_nodes=nodes,
        effect_sd=believed.effect_sd,
        noise_sd=believed.usual_noise_sd,
        drift_sd=np.array([f.spreads.drift_sd for f in fits]),
        marginal_low=marginal[:, 0],
        marginal_high=marginal[:, 1],
        residual_low=residual[:, 0],
        residual_high=residual[:, 1],
        change_seconds=cost.seconds,
        seen_low=flat.allocations.min(axis=0),
        seen_high=flat.allocations.max(axis=0),
        feature_low=flat.features.min(axis=0),
        feature_high=flat.features.max(axis=0),
        level=LEVEL,
        members=believed.log_mean - log_mean,
        noise_by_bin=believed.noise_sd,
    )


def _offsets(layout: Layout, flat: Flat, fits: list[MetricFit], believed: Members) -> tuple[Floats, Floats]:
    """Return bounds [M, 2] (low, high) that hold 90 % of the natural log of measured over modelled metric: of a new
    run, and of a run of known effect.

    They come from held-out executions; with too few executions to hold any out, from the models ``believed``."""
    if _lacking_to_judge(layout, flat) is None:
        marginal = np.array([f.selection.offsets[:2] for f in fits])
        return marginal, np.array([run_bounds(f.spreads, flat.groups[f.used], LEVEL) for f in fits])
    reach, both = float(stdtrit(FREEDOM, (1 + LEVEL) / 2)), np.array([-1.0, 1.0])
    noise = believed.usual_noise_sd
    return reach * np.hypot(noise, believed.effect_sd)[:, None] * both, reach * noise[:, None] * both


def _surface(selection: Selection, inputs: Floats, bins: int) -> Floats:
    """Return the natural log of the median at ``inputs`` [A · C, R + F] in each iteration bin, [A · C, bins]."""
    curve = np.log(selection.estimator.median(inputs))[:, None]
    known = np.minimum(np.arange(bins), len(selection.stages.level) - 1)
    surface = selection.stages.level[known] + selection.stages.elasticity[known] * curve
    return np.asarray(surface, np.float64)


def _report(
    layout: Layout,
    every: Flat,
    flat: Flat,
    fits: list[MetricFit],
    cost: ChangeCost,
    believed: Members,
    seconds: float,
) -> dict[str, Any]:
    timed = fits[layout.seconds]
    by_metric = dict(zip(layout.metrics, fits, strict=True))
    left_over = sorted((e for f in fits for e in f.unexplained), key=lambda e: -abs(float(np.log(e["factor"]))))
    return {
        "family": timed.selection.family,
        "candidates": [c.report(timed.selection.family) for c in timed.selection.candidates],
        "metrics": {name: _metric_report(fit, flat.groups[fit.used]) for name, fit in by_metric.items()},
        "run_effect": dict(zip(layout.metrics, believed.effect_sd.tolist(), strict=True)),
        "residual": dict(zip(layout.metrics, believed.usual_noise_sd.tolist(), strict=True)),
        "drift": {name: fit.spreads.drift_sd for name, fit in by_metric.items()},
        "change_seconds": dict(zip(layout.resources, cost.seconds.tolist(), strict=True)),
        "change_seconds_measured": dict(zip(layout.resources, cost.measured.tolist(), strict=True)),
        "simulated_iteration_seconds": seconds,
        "executions": len(np.unique(every.groups)),
        "observations": len(every.groups),
        "observations_used": len(flat.groups),
        "unexplained": left_over[:MOST],
    }


def _metric_report(fit: MetricFit, groups: Integers) -> dict[str, Any]:
    """Report one metric's relative errors and interval coverage (0…1) on held-out rows, with and without run effect.
    ``groups``: execution of each row, [n]."""
    selection, known, unknown = fit.selection, fit.spreads.bounds, fit.selection.offsets
    return {
        "family": selection.family,
        "iterations": selection.form,
        "mape": selection.nested.mape,
        "naive_mape": selection.naive_mape,
        "log_error": selection.nested.log_error,
        "mape_run_known": mean_by_execution(np.abs(np.expm1(-fit.spreads.within)), groups),
        "coverage": unknown.coverage,
        "coverage_run_known": known.coverage,
        "level": unknown.level,
    }

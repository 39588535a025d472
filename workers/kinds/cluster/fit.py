"""The fit of a domain model of kind ``cluster``: learning curves, steps, interference, arrivals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lengths import (
    AGES,
    ALIKE,
    FAMILIES,
    PARAMETRIC,
    CurvePoints,
    LearningCurves,
    RemainingGain,
    like_others,
    parametric,
    thinned_indices,
)
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.outlook import Beliefs
from app.kinds.cluster.samples import (
    APPLICATION,
    BATCH,
    BESIDE,
    BY_APPLICATION,
    COMPUTING,
    GPUS,
    ITERATION,
    JOB,
    NODE_CLASS,
    NODES,
    NOISE_SCALE,
    OF_APPLICATION,
    RISES,
    SECONDS,
    VALUE,
    Content,
)
from app.kinds.cluster.throughput import Place, seconds
from workers.estimators.base import TooLittleData
from workers.inputs import Workload
from workers.kinds.cluster.estimation import (
    FEWEST,
    SharedSteps,
    StepMeasurements,
    fit_arrivals,
    fit_pairs,
    fit_steps,
    forecasts,
    tabulate_fits,
)
from workers.kinds.cluster.estimation import StepFit as ThroughputFitted
from workers.kinds.contract import FittedModel as FittedModel

LEVEL = 0.9
POINTS, DIRECTIONS = 48, 8
FEWEST_CURVES, FEWEST_POINTS = 9, 5
"""Least number of whole curves, and of points per curve. With nine errors a conformal 90 % quantile exists."""
WHOLE = 0.95
"""Share of the median length from which a curve counts as whole."""
OWN_NOISE = 0.02
FOLDS = 5
SMALLEST = 1e-9


class Curve(NamedTuple):
    """One job's learning curve: n ascending iterations, and values in the metric's unit, larger is better, [n] each."""

    iteration: Floats
    value: Floats


class ForecastTests(NamedTuple):
    """n forecasts of the final values of held-out curves, from the fractions ``AGES`` of their length; NaN: none made.

    Attributes:
        error: forecast minus true final value, by family (``FAMILIES``), [2, n].
        half: half-width of the forecast's interval, by family, [2, n].
        gain: true gain from the fraction of the length to the end, [n].
        curve: index of the curve, [n].
        age: index into ``AGES``, [n].
    """

    error: Floats
    half: Floats
    gain: Floats
    curve: Integers
    age: Integers


class CurveFit(NamedTuple):
    """One fitted class of learning curves, at E iterations ``grid`` [E]: ``mean`` curve [E], loadings ``basis`` [E, R]
    on R standard normal factors, residual variance ``noise`` [E], index ``family`` into ``FAMILIES``, calibration
    ``factor`` of forecasts' half-widths by family and age [2, 10], and a JSON-like report."""

    grid: Floats
    mean: Floats
    basis: Floats
    noise: Floats
    family: int
    factor: Floats
    report: dict[str, Any]


def fit_class(curves: Sequence[Curve], seed: int) -> CurveFit:
    """Fit at least one learning curve of one application; with fewer than nine that run to about the usual end,
    forecasts extrapolate each curve by a formula, else by the curves' principal components if that errs less."""
    usable = [one for one in curves if len(one.value) >= FEWEST_POINTS]
    whole = _whole(usable)
    if len(whole) < FEWEST_CURVES:
        return _fit_class(whole or usable or curves, _test_forecasts([], usable, np.arange(len(usable))), len(curves))
    fold = np.random.default_rng([seed, 11]).permutation(len(whole)) % FOLDS
    parts = [
        _test_forecasts(
            [one for one, at in zip(whole, fold.tolist(), strict=True) if at != part],
            whole,
            np.flatnonzero(fold == part),
        )
        for part in range(FOLDS)
    ]
    tested = ForecastTests(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))
    errors = _errors(tested)
    family = ALIKE if np.isnan(errors).any() else int(errors.argmin())
    grid, mean, basis, noise = alike(whole)
    return CurveFit(grid, mean, basis, noise, family, _factors(tested), _report(tested, family, len(curves)))


def classes(application: Sequence[int], rises: Sequence[bool], fitted: Sequence[CurveFit]) -> LearningCurves:
    """Combine classes of curves: index of each one's ``application``, and whether its values rise (or are losses)."""
    if not fitted:
        return none()
    family, factor = np.array([one.family for one in fitted]), np.stack([one.factor for one in fitted])
    grid, mean, basis, noise = (np.stack(parts) for parts in zip(*(one[:4] for one in fitted), strict=True))
    names, directions = np.array(application, np.int64), np.array(rises, np.bool_)
    return LearningCurves(names, directions, grid, mean, basis, noise, family, factor)


def none() -> LearningCurves:
    """Make learning curves of no class: arrays of length 0."""
    points, whole = np.zeros((0, POINTS)), np.zeros(0, np.int64)
    basis = np.zeros((0, POINTS, DIRECTIONS))
    return LearningCurves(
        whole, whole.astype(np.bool_), points, points, basis, points, whole, np.zeros((0, len(FAMILIES), len(AGES)))
    )


def alike(curves: Sequence[Curve]) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute principal components of curves of about equal length: grid of E iterations [E], mean [E], basis [E, R] of
    R directions, and variance of the noise [E]. ``mean`` + ``basis`` · R standard normal factors is a random curve."""
    grid = np.linspace(
        min(one.iteration[0] for one in curves), float(np.median([one.iteration[-1] for one in curves])), POINTS
    )
    table = np.stack([np.interp(grid, one.iteration, one.value) for one in curves])
    mean = table.mean(axis=0)
    _, size, across = np.linalg.svd(table - mean, full_matrices=False)
    number = min(DIRECTIONS, max(1, len(curves) - 2))
    basis = np.zeros((POINTS, DIRECTIONS))
    basis[:, :number] = across[:number].T * size[:number] / np.sqrt(max(len(curves) - 1, 1))
    varied = table.var(axis=0)
    rest = np.maximum(varied - (basis**2).sum(axis=1), 0.0)
    # points of a grid that is finer than the curve are redundant
    denser = max(1.0, POINTS / float(np.median([len(one.value) for one in curves])))
    return grid, mean, basis, denser * (rest + OWN_NOISE * varied) + SMALLEST * max(float(varied.max()), SMALLEST)


def _whole(curves: Sequence[Curve]) -> list[Curve]:
    if not curves:
        return []
    usual = float(np.median([one.iteration[-1] for one in curves]))
    return [one for one in curves if one.iteration[-1] >= WHOLE * usual]


def _test_forecasts(known: Sequence[Curve], curves: Sequence[Curve], requests: Integers) -> ForecastTests:
    """Forecast the final values of the curves of indices ``requests`` from the points that the service would have kept.

    Without ``known`` curves only the parametric family makes forecasts; the other's are NaN.
    """
    which, ages = np.repeat(requests, len(AGES)), np.tile(np.arange(len(AGES)), len(requests))
    own = [curves[at] for at in which.tolist()]
    points, until = _cut(own, [*AGES] * len(requests))
    end = np.array([one.value[-1] for one in own])
    lone = parametric(points, until)
    others = RemainingGain(*np.full((len(RemainingGain._fields), len(which)), np.nan))
    if len(known):
        learned = classes([0], [True], [CurveFit(*alike(known), ALIKE, np.ones((len(FAMILIES), len(AGES))), {})])
        others = like_others(learned, 0, points, until)
    error = np.stack([one.level + one.gain - end for one in (others, lone)])
    return ForecastTests(error, np.stack([others.half, lone.half]), end - lone.level, which, ages)


def _cut(curves: Sequence[Curve], parts: Sequence[float]) -> tuple[CurvePoints, Floats]:
    """Return, for C curves, the points that the service keeps up to the fraction ``parts`` of each curve's length,
    without its last point, [C, k], and the curve's last iteration, [C]."""
    until = np.array([one.iteration[-1] for one in curves])
    due = (1 - SMALLEST) * np.asarray(parts) * until
    there = [
        _kept(min(int(np.searchsorted(one.iteration, when)) + 1, len(one.value) - 1))
        for one, when in zip(curves, due.tolist(), strict=True)
    ]
    iteration, value = np.full((2, len(curves), max(map(len, there), default=0)), np.nan)
    for row, (one, own) in enumerate(zip(curves, there, strict=True)):
        iteration[row, : len(own)], value[row, : len(own)] = one.iteration[own], one.value[own]
    return CurvePoints(iteration, value), until


_kept = cache(thinned_indices)


def _errors(tested: ForecastTests) -> Floats:
    """Return each family's mean absolute error over the forecasts that both made, [2]; NaN if there are none."""
    finite = np.isfinite(tested.error).all(axis=0)
    if not finite.any():
        return np.full(len(tested.error), np.nan)
    return np.asarray(np.abs(tested.error[:, finite]).mean(axis=1), np.float64)


def _factors(tested: ForecastTests) -> Floats:
    """Return the factors by which half-widths hold 90 % of the errors, by family and age, [2, 10]; NaN: few errors."""
    distance = _distance(tested)
    return np.array([[_factor(own[tested.age == age]) for age in range(len(AGES))] for own in distance])


def _distance(tested: ForecastTests) -> Floats:
    """Return the absolute errors in units of the interval's half-width, [2, n]."""
    return np.asarray(np.abs(tested.error) / np.maximum(tested.half, SMALLEST), np.float64)


def _factor(distance: Floats) -> float:
    """Return the upper bound of the next curve's distance with probability 0.9, given exchangeable ``distance`` [n].

    Split conformal prediction: the ⌈``LEVEL``·(n + 1)⌉-th smallest (Lei et al., "Distribution-free predictive inference
    for regression", JASA 2018, section 2), here of held-out curves (Barber et al., "Predictive inference with the
    jackknife+", Annals of Statistics 2021). NaN if n is too small.
    """
    distances = np.sort(distance[np.isfinite(distance)])
    place = math.ceil(LEVEL * (len(distances) + 1) - SMALLEST)
    return float(distances[place - 1]) if place <= len(distances) else math.nan


def _fit_class(curves: Sequence[Curve], tested: ForecastTests, count: int) -> CurveFit:
    start, end = curves[0].iteration[0], max(one.iteration[-1] for one in curves)
    grid, empty = np.linspace(start, max(end, start + 1e-9), POINTS), np.zeros(POINTS)
    report = _report(tested, PARAMETRIC, count)
    return CurveFit(grid, empty, np.zeros((POINTS, DIRECTIONS)), empty + 1.0, PARAMETRIC, _factors(tested), report)


def _report(tested: ForecastTests, family: int, curves: int) -> dict[str, Any]:
    """Report mean absolute errors of forecasts, and of present values instead, in the curve's unit; None: unknown."""
    there = np.asarray(np.isfinite(tested.error).any(axis=1), np.bool_)
    measured = np.isfinite(tested.error[there]).all(axis=0) & there.any()
    if not measured.any():
        return {"family": FAMILIES[family], "curves": curves, "error": None, "naive_error": None, "coverage": None}
    errors, gains = np.abs(tested.error[:, measured]).mean(axis=1).tolist(), np.abs(tested.gain[measured])
    candidates = [
        {"family": name, "error": error, "chosen": place == family}
        for place, (name, error) in enumerate(zip(FAMILIES, errors, strict=True))
        if there[place]
    ]
    return {
        "family": FAMILIES[family],
        "curves": curves,
        "candidates": candidates,
        "error": errors[family],
        "naive_error": float(gains.mean()) if np.isfinite(gains).all() else None,
        "coverage": _coverage(tested, family),
        "level": LEVEL,
    }


def _coverage(tested: ForecastTests, family: int) -> float | None:
    """Return the share (0 to 1) of forecasts by curve family ``family`` (row of ``tested.error``) whose 90 % interval
    holds the true final value. Its width is calibrated on the other half of the curves, for each completed fraction
    of a curve separately; None: too few curves."""
    distance, odd = _distance(tested)[family], tested.curve % 2 == 1
    inside = list[bool]()
    for own, age in itertools.product((odd, ~odd), range(len(AGES))):
        here = (tested.age == age) & np.isfinite(distance)
        factor = _factor(distance[~own & here])
        inside += (distance[own & here] <= factor).tolist() if np.isfinite(factor) else []
    return float(np.mean(inside)) if inside else None


TENTHS = 10


class PooledExecutions(NamedTuple):
    """All executions together, with indices into one list of ``applications``: tables with the columns of samples, of
    all ``steps`` [n, columns], and by execution of ``curves`` and ``arrivals``.

    Applications with enough steps alone come first (``measured`` of them), then others that occur in steps beside other
    jobs (``paired`` in all), then the rest."""

    applications: tuple[str, ...]
    measured: int
    paired: int
    steps: Floats
    curves: Sequence[Floats]
    arrivals: Sequence[Floats]


def fit(workload: Workload, seed: int) -> FittedModel:
    """Fit seconds per step, learning curves, interference and arrivals of a workload.

    Raises:
        TooLittleData: no application has three measured steps on two allocations.
    """
    layout = Layout(workload.spec)
    contents: list[Content] = [content for _, content in workload.samples]
    gathered = gather(contents)
    if not gathered.measured:
        has = f"{len(gathered.steps)} steps of {len(gathered.applications)} applications"
        has += " (a step is a row with application, gpus, batch and seconds)"
        raise TooLittleData(f"{FEWEST} measured steps of an application on 2 allocations", has)
    speeds = np.array([one.speed for one in workload.spec.nodes])
    alone = [measured_alone(gathered.steps, application, speeds) for application in range(gathered.measured)]
    fitted = [fit_steps(one, seed) for one in alone]
    node = np.array([int(layout.capacity.max()), len(layout.capacity)])
    throughput = tabulate_fits(fitted, alone, node)
    shared = beside(gathered, throughput_seconds(gathered.steps, throughput, speeds))
    interference, pairs_report = fit_pairs(shared, gathered.paired, seed)
    learned, curves_report = _fit_curve_classes(gathered, seed)
    arrivals, arrivals_report = fit_arrivals(gathered.arrivals, len(layout.queues), seed)
    result, forecasts_report = forecasts(gathered.arrivals, layout.queues, seed)
    model = ClusterModel(
        applications=gathered.applications,
        throughput=throughput,
        noise_scale=noise_scales(gathered),
        initial=np.array([(one.local * one.gpus).min() for one in alone]),
        curves=learned,
        interference=interference,
        arrivals=arrivals,
        forecasts=result,
    )
    model = replace(model, arrivals=model.arrivals._replace(jobs=Beliefs(model).log))
    reports = {"learning": curves_report, "interference": pairs_report, "arrivals": arrivals_report}
    return FittedModel(model.to_bytes(), _fit_report(gathered, fitted, len(contents)) | reports | forecasts_report)


def gather(contents: Sequence[Content]) -> PooledExecutions:
    """Concatenate the tables of all executions, with indices into one common list of applications."""
    names = list(dict.fromkeys(name for content in contents for name in content.applications))
    steps = np.concatenate(
        [np.zeros((0, BESIDE + 4)), *(_rename_indices(c.steps, c, names, (APPLICATION, *_BESIDE)) for c in contents)]
    )
    places = range(len(names))
    known = [place for place in places if _enough(steps[steps[:, APPLICATION] == place])]
    shared = np.unique(steps[steps[:, BESIDE] >= 0][:, [APPLICATION, *_BESIDE]])
    ranked = [*known, *(place for place in places if place in shared), *places]
    order = [names[place] for place in dict.fromkeys(ranked)]
    paired = len(set(known).union(shared[shared >= 0].tolist()))
    renamed = [[_rename_indices(getattr(c, part), c, order, at) for c in contents] for part, at in _NAMED.items()]
    return PooledExecutions(tuple(order), len(known), paired, np.concatenate([steps[:0], *renamed[0]]), *renamed[1:])


_BESIDE = tuple(range(BESIDE, BESIDE + 4))
_NAMED = {"steps": (APPLICATION, *_BESIDE), "curves": (OF_APPLICATION,), "arrivals": (BY_APPLICATION,)}


def _rename_indices(table: Floats, content: Content, names: Sequence[str], columns: Sequence[int]) -> Floats:
    """Copy ``table`` with the indices in ``columns`` changed from the content's applications to ``names``; −1 stays."""
    where = {name: place for place, name in enumerate(names)}
    places = np.array([*(where[name] for name in content.applications), -1], np.float64)
    renumbered = table.copy()
    for column in columns:
        renumbered[:, column] = places[table[:, column].astype(np.int64)]
    return renumbered


def _enough(steps: Floats) -> bool:
    alone = steps[(steps[:, BESIDE] < 0)]
    return len(alone) >= FEWEST and len(np.unique(alone[:, [GPUS, NODES]], axis=0)) >= 2


def measured_alone(steps: Floats, application: int, speeds: Floats) -> StepMeasurements:
    """Return the steps of one application (index) that had its nodes alone, converted to GPUs of speed 1 by the node
    classes' relative ``speeds``.

    The reported computing time of a distributed step counts as a step on one GPU, unless that size was measured itself.
    """
    own = steps[(steps[:, APPLICATION] == application) & (steps[:, BESIDE] < 0)]
    speed = speeds[own[:, NODE_CLASS].astype(np.int64)]
    local = own[:, BATCH] / own[:, GPUS]
    measurements = StepMeasurements(own[:, GPUS], own[:, NODES], local, own[:, SECONDS] * speed)
    alone = ~np.isnan(own[:, COMPUTING]) & (own[:, GPUS] > 1) & ~np.isin(local, local[own[:, GPUS] == 1])
    ones = np.ones(int(alone.sum()))
    more = StepMeasurements(ones, ones, local[alone], own[alone, COMPUTING] * speed[alone])
    return StepMeasurements._make(np.concatenate(pair) for pair in zip(measurements, more, strict=True))


def throughput_seconds(steps: Floats, table: Any, speeds: Floats) -> Floats:
    """Return the expected seconds of each of n steps alone on its nodes, [n]; NaN for applications not in the table.

    Args:
        steps: steps with the columns of samples, [n, columns].
        table: fitted throughput of the applications.
        speeds: relative GPU speed of each node class.
    """
    result = np.full(len(steps), np.nan)
    known = steps[:, APPLICATION] < len(table.largest)
    own = steps[known]
    place = Place(own[:, GPUS], own[:, NODES], own[:, BATCH] / own[:, GPUS])
    alone = seconds(table, own[:, APPLICATION].astype(np.int64), place)
    result[known] = alone / speeds[own[:, NODE_CLASS].astype(np.int64)]
    return result


def beside(gathered: PooledExecutions, expected: Floats) -> SharedSteps:
    """Return the steps measured beside other jobs, with their seconds relative to the median of the same step measured
    alone, else to ``expected`` seconds [n]. Steps without either are left out."""
    key = [APPLICATION, GPUS, NODES, NODE_CLASS, BATCH]
    lone = gathered.steps[gathered.steps[:, BESIDE] < 0]
    medians = _medians(lone[:, key], lone[:, SECONDS])
    alone = np.array([medians.get(tuple(row[key]), other) for row, other in zip(gathered.steps, expected, strict=True)])
    rows = (gathered.steps[:, BESIDE] >= 0) & np.isfinite(alone)
    steps, others = gathered.steps[rows], gathered.steps[rows, BESIDE:]
    each = [(others == one).sum(axis=1) for one in range(gathered.paired)]
    number = np.reshape(each, (gathered.paired, len(steps))).T.astype(np.float64)
    application = steps[:, APPLICATION].astype(np.intp)
    return SharedSteps(application, number, np.log(steps[:, SECONDS]) - np.log(alone[rows]))


def _medians(keys: Floats, values: Floats) -> dict[tuple[float, ...], float]:
    if not len(keys):
        return {}
    each, which = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    parts = np.split(values[order], np.cumsum(np.bincount(which.ravel()))[:-1])
    return {tuple(key): float(np.median(part)) for key, part in zip(each, parts, strict=True)}


def _fit_curve_classes(gathered: PooledExecutions, seed: int) -> tuple[LearningCurves, dict[str, Any]]:
    """Fit learning curves per application and direction (metric, loss); also return JSON-like reports by their name."""
    result: dict[tuple[int, bool], list[Curve]] = {}
    for table in gathered.curves:
        by_job = table[np.argsort(table[:, JOB], kind="stable")]
        for own in np.split(by_job, np.flatnonzero(np.diff(by_job[:, JOB])) + 1) if len(table) else ():
            rises = bool(own[0, RISES])
            curve = Curve(own[:, ITERATION], own[:, VALUE] if rises else -own[:, VALUE])
            result.setdefault((int(own[0, OF_APPLICATION]), rises), []).append(curve)
    known = {key: fit_class(curves, seed) for key, curves in result.items() if key[0] >= 0}
    reports = {
        f"{gathered.applications[key[0]]}, {'metric' if key[1] else 'loss'}": one.report for key, one in known.items()
    }
    return classes([key[0] for key in known], [key[1] for key in known], [*known.values()]), reports


def noise_scales(gathered: PooledExecutions) -> Floats:
    """Return the median gradient noise scale of each measured application by tenth of a run, [A, 10].

    Gaps are interpolated; NaN: no job reported it.
    """
    rows = [np.zeros((0, 3))]
    for table in gathered.curves:
        logs = table[~np.isnan(table[:, NOISE_SCALE]) & (table[:, OF_APPLICATION] >= 0)]
        last = np.full(int(table[:, JOB].max(initial=0)) + 1, 0.0)
        np.maximum.at(last, table[:, JOB].astype(np.int64), table[:, ITERATION])
        part = logs[:, ITERATION] / np.maximum(last[logs[:, JOB].astype(np.int64)], 1e-12)
        rows.append(
            np.column_stack([logs[:, OF_APPLICATION], np.minimum(part * TENTHS, TENTHS - 1), logs[:, NOISE_SCALE]])
        )
    all_rows = np.concatenate(rows)
    return np.stack([_by_tenth(all_rows[all_rows[:, 0] == one]) for one in range(gathered.measured)])


def _by_tenth(rows: Floats) -> Floats:
    tenth: Integers = rows[:, 1].astype(np.int64)
    there = np.unique(tenth)
    if not len(there):
        return np.full(TENTHS, np.nan)
    medians = np.array([np.median(rows[tenth == one, 2]) for one in there])
    return np.interp(np.arange(TENTHS), there, medians)


def _fit_report(gathered: PooledExecutions, fitted: Sequence[ThroughputFitted], executions: int) -> dict[str, Any]:
    """Make the fit's report of throughput by application; ``family`` is that of the application with the most steps,
    and errors in ``metrics`` are means over applications."""
    names = gathered.applications[: gathered.measured]
    first = max(fitted, key=lambda one: int(one.report["observations"])).report
    reports = {name: one.report for name, one in zip(names, fitted, strict=True)}
    errors = [(one["mape"], one["naive_mape"], one["coverage"]) for one in reports.values()]
    mape, naive, coverage = np.mean(np.array(errors, np.float64), axis=0).tolist()
    return {
        "family": first["family"],
        "candidates": first["candidates"],
        "metrics": {"seconds": {"mape": mape, "naive_mape": naive, "coverage": coverage, "level": first["level"]}},
        "throughput": reports,
        "executions": executions,
        "observations": len(gathered.steps),
        "unexplained": [],
    }

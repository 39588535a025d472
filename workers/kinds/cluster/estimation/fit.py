"""Fit the domain model of a workload of kind ``cluster`` to its samples: steps, learning curves, logs of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster.beliefs import Beliefs
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.learning_curves import LearningCurves
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.samples.content import (
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
from workers.kinds.cluster.estimation.arrivals import fit_arrivals
from workers.kinds.cluster.estimation.forecasts import forecasts
from workers.kinds.cluster.estimation.interference import Shared, fit_pairs
from workers.kinds.cluster.estimation.learning_curves import Curve, classes, fit_class
from workers.kinds.cluster.estimation.throughput import FEWEST, Fitted, Measured, fit_steps, tabulated
from workers.kinds.contract import Fitted as FittedModel

TENTHS = 10


class Gathered(NamedTuple):
    """All executions together, with positions of applications that hold for all.

    Those of enough steps come first, then others that steps were measured beside, or that have steps beside others.
    """

    applications: tuple[str, ...]
    measured: int
    paired: int
    steps: Floats
    curves: Sequence[Floats]
    arrivals: Sequence[Floats]


def fit(workload: Workload, seed: int) -> FittedModel:
    """A belief on seconds of steps, how applications learn and disturb one another, and how jobs arrive.

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
    throughput = tabulated(fitted, alone, node)
    shared = beside(gathered, throughput_seconds(gathered.steps, throughput, speeds))
    interference, pairs_report = fit_pairs(shared, gathered.paired, seed)
    learned, curves_report = _learned(gathered, seed)
    arrivals, arrivals_report = fit_arrivals(gathered.arrivals, len(layout.queues), seed)
    made, forecasts_report = forecasts(gathered.arrivals, layout.queues, seed)
    model = ClusterModel(
        applications=gathered.applications,
        throughput=throughput,
        noise_scale=noise_scales(gathered),
        initial=np.array([(one.local * one.gpus).min() for one in alone]),
        curves=learned,
        interference=interference,
        arrivals=arrivals,
        forecasts=made,
    )
    model = replace(model, arrivals=model.arrivals._replace(jobs=Beliefs(model).log))
    reports = {"learning": curves_report, "interference": pairs_report, "arrivals": arrivals_report}
    reports["forecasts"] = forecasts_report
    return FittedModel(model.to_bytes(), _report(gathered, fitted, len(contents)) | reports)


def gather(contents: Sequence[Content]) -> Gathered:
    """Executions with one list of applications."""
    names = list(dict.fromkeys(name for content in contents for name in content.applications))
    steps = np.concatenate(
        [np.zeros((0, BESIDE + 4)), *(_renamed(c.steps, c, names, (APPLICATION, *_BESIDE)) for c in contents)]
    )
    places = range(len(names))
    known = [place for place in places if _enough(steps[steps[:, APPLICATION] == place])]
    shared = np.unique(steps[steps[:, BESIDE] >= 0][:, [APPLICATION, *_BESIDE]])
    ranked = [*known, *(place for place in places if place in shared), *places]
    order = [names[place] for place in dict.fromkeys(ranked)]
    paired = len(set(known).union(shared[shared >= 0].tolist()))
    renamed = [[_renamed(getattr(c, part), c, order, at) for c in contents] for part, at in _NAMED.items()]
    return Gathered(tuple(order), len(known), paired, np.concatenate([steps[:0], *renamed[0]]), *renamed[1:])


_BESIDE = tuple(range(BESIDE, BESIDE + 4))
_NAMED = {"steps": (APPLICATION, *_BESIDE), "curves": (OF_APPLICATION,), "arrivals": (BY_APPLICATION,)}


def _renamed(table: Floats, content: Content, names: Sequence[str], columns: Sequence[int]) -> Floats:
    """A table whose applications stand as in ``names``; −1 stays."""
    where = {name: place for place, name in enumerate(names)}
    places = np.array([*(where[name] for name in content.applications), -1], np.float64)
    found = table.copy()
    for column in columns:
        found[:, column] = places[table[:, column].astype(np.int64)]
    return found


def _enough(steps: Floats) -> bool:
    alone = steps[(steps[:, BESIDE] < 0)]
    return len(alone) >= FEWEST and len(np.unique(alone[:, [GPUS, NODES]], axis=0)) >= 2


def measured_alone(steps: Floats, application: int, speeds: Floats) -> Measured:
    """Steps of one application that had its nodes alone, on GPUs of speed 1.

    What computing alone took is what one GPU would have taken, where that was not measured itself.
    """
    own = steps[(steps[:, APPLICATION] == application) & (steps[:, BESIDE] < 0)]
    speed = speeds[own[:, NODE_CLASS].astype(np.int64)]
    local = own[:, BATCH] / own[:, GPUS]
    found = Measured(own[:, GPUS], own[:, NODES], local, own[:, SECONDS] * speed)
    told = ~np.isnan(own[:, COMPUTING]) & (own[:, GPUS] > 1) & ~np.isin(local, local[own[:, GPUS] == 1])
    ones = np.ones(int(told.sum()))
    more = Measured(ones, ones, local[told], own[told, COMPUTING] * speed[told])
    return Measured._make(np.concatenate(pair) for pair in zip(found, more, strict=True))


def throughput_seconds(steps: Floats, table: Any, speeds: Floats) -> Floats:
    """Seconds that each step is expected to take alone; NaN for applications that aren't in the table, [n]."""
    found = np.full(len(steps), np.nan)
    known = steps[:, APPLICATION] < len(table.largest)
    own = steps[known]
    place = Place(own[:, GPUS], own[:, NODES], own[:, BATCH] / own[:, GPUS])
    alone = seconds(table, own[:, APPLICATION].astype(np.int64), place)
    found[known] = alone / speeds[own[:, NODE_CLASS].astype(np.int64)]
    return found


def beside(gathered: Gathered, expected: Floats) -> Shared:
    """Steps that were measured beside jobs of other applications, and of which it is known what they take alone.

    Where the same step was measured alone, what it took is compared with that, else with what is expected.
    """
    key = [APPLICATION, GPUS, NODES, NODE_CLASS, BATCH]
    lone = gathered.steps[gathered.steps[:, BESIDE] < 0]
    medians = _medians(lone[:, key], lone[:, SECONDS])
    alone = np.array([medians.get(tuple(row[key]), other) for row, other in zip(gathered.steps, expected, strict=True)])
    rows = (gathered.steps[:, BESIDE] >= 0) & np.isfinite(alone)
    steps, others = gathered.steps[rows], gathered.steps[rows, BESIDE:]
    each = [(others == one).sum(axis=1) for one in range(gathered.paired)]
    number = np.reshape(each, (gathered.paired, len(steps))).T.astype(np.float64)
    application = steps[:, APPLICATION].astype(np.intp)
    return Shared(application, number, np.log(steps[:, SECONDS]) - np.log(alone[rows]))


def _medians(keys: Floats, values: Floats) -> dict[tuple[float, ...], float]:
    if not len(keys):
        return {}
    each, which = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    parts = np.split(values[order], np.cumsum(np.bincount(which.ravel()))[:-1])
    return {tuple(key): float(np.median(part)) for key, part in zip(each, parts, strict=True)}


def _learned(gathered: Gathered, seed: int) -> tuple[LearningCurves, dict[str, Any]]:
    """Classes of curves by application and direction, and their reports by name."""
    found: dict[tuple[int, bool], list[Curve]] = {}
    for table in gathered.curves:
        by_job = table[np.argsort(table[:, JOB], kind="stable")]
        for own in np.split(by_job, np.flatnonzero(np.diff(by_job[:, JOB])) + 1) if len(table) else ():
            rises = bool(own[0, RISES])
            curve = Curve(own[:, ITERATION], own[:, VALUE] if rises else -own[:, VALUE])
            found.setdefault((int(own[0, OF_APPLICATION]), rises), []).append(curve)
    known = {key: fit_class(curves, seed) for key, curves in found.items() if key[0] >= 0}
    told = {_called(gathered, key): one.report for key, one in known.items()}
    return classes([key[0] for key in known], [key[1] for key in known], [*known.values()]), told


def _called(gathered: Gathered, key: tuple[int, bool]) -> str:
    return f"{gathered.applications[key[0]]}, {'metric' if key[1] else 'loss'}"


def noise_scales(gathered: Gathered) -> Floats:
    """Median noise scale of each measured application in each tenth of its jobs' runs, gaps bridged, [A, 10]."""
    rows = [np.zeros((0, 3))]
    for table in gathered.curves:
        told = table[~np.isnan(table[:, NOISE_SCALE]) & (table[:, OF_APPLICATION] >= 0)]
        last = np.full(int(table[:, JOB].max(initial=0)) + 1, 0.0)
        np.maximum.at(last, table[:, JOB].astype(np.int64), table[:, ITERATION])
        part = told[:, ITERATION] / np.maximum(last[told[:, JOB].astype(np.int64)], 1e-12)
        rows.append(
            np.column_stack([told[:, OF_APPLICATION], np.minimum(part * TENTHS, TENTHS - 1), told[:, NOISE_SCALE]])
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


def _report(gathered: Gathered, fitted: Sequence[Fitted], executions: int) -> dict[str, Any]:
    """Of the application that was measured most its family answers for the whole."""
    names = gathered.applications[: gathered.measured]
    first = max(fitted, key=lambda one: int(one.report["observations"])).report
    told = {name: one.report for name, one in zip(names, fitted, strict=True)}
    errors = [(one["mape"], one["naive_mape"], one["coverage"]) for one in told.values()]
    mape, naive, coverage = np.mean(np.array(errors, np.float64), axis=0).tolist()
    return {
        "family": first["family"],
        "candidates": first["candidates"],
        "metrics": {"seconds": {"mape": mape, "naive_mape": naive, "coverage": coverage, "level": first["level"]}},
        "throughput": told,
        "executions": executions,
        "observations": len(gathered.steps),
        "unexplained": [],
    }

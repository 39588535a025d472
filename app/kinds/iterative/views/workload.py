"""A workload: how its metrics respond to its resources, how well that is known, and where a sample would teach most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.figure import Figure
from app.charts.response import Fitted, Sample, doubt, response
from app.kinds.contract.fit_errors import errors
from app.kinds.contract.views import Learnt
from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projector import Projector

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
MOST_POINTS = 400


class Slice(NamedTuple):
    """The allocations along one resource, the others where runs begin.

    Attributes:
        resource: its position.
        rows: of the grid of allocations, [L].
        amounts: of the resource, [L].
    """

    resource: int
    rows: Rows
    amounts: Floats


def figures(compiled: Compiled, learnt: Learnt) -> Iterator[Figure]:
    """Curves by resource and metric, then the errors of what was fitted, then what is not known yet."""
    projector = compiled.projector
    samples = np.concatenate([*learnt.samples]) if learnt.samples else None
    slices = [_slice(projector.layout, position) for position in range(len(projector.layout.resources))]
    known = samples is not None or projector.table.informed
    for one in slices if known else ():
        for metric in range(len(projector.layout.metrics)):
            yield _response(projector, one, metric, samples)
    if learnt.report is not None:
        yield from errors(learnt.report)
    if projector.table.informed and projector.members > 1:
        yield from (_doubt(projector, one) for one in slices)


def _slice(layout: Layout, resource: int) -> Slice:
    held = np.delete(layout.allocations, resource, axis=1)
    usual = np.delete(layout.allocations[int(layout.index(layout.start_levels))], resource)
    rows = np.flatnonzero((held == usual).all(axis=1))
    return Slice(resource, rows, layout.allocations[rows, resource])


def _usual(table: ModelTable, count: int) -> Floats:
    """The middle of the features that the samples hold, [count, F]."""
    middle = (table.feature_low + table.feature_high) / 2
    return np.tile(middle, (count, 1))


def _logs(projector: Projector, rows: Rows, features: Floats) -> Floats:
    """Logs of what is expected in the middle of a run, [B, M]."""
    at = np.full(len(rows), projector.layout.iterations // 2)
    return np.asarray(projector.log_mean(rows, projector.point(features), at), np.float64)


def _response(projector: Projector, one: Slice, metric: int, samples: Floats | None) -> Figure:
    layout, resource = projector.layout, projector.layout.spec.resources[one.resource]
    name, unit = layout.metrics[metric].replace("_", " "), layout.spec.metrics[metric].unit
    amounts = f"{resource.name} ({resource.unit})" if resource.unit not in ("", resource.name) else resource.name
    return response(
        f"{name} by {resource.name}",
        amounts,
        f"{name} ({unit})" if unit else name,
        _fitted(projector, one, metric),
        _points(projector, one.resource, metric, samples),
        _told(projector),
    )


def _fitted(projector: Projector, one: Slice, metric: int) -> list[Fitted]:
    table = projector.table
    if not table.informed:
        return []
    logs = _logs(projector, one.rows, _usual(table, len(one.rows)))[:, metric]
    low, high = logs + table.marginal_low[metric], logs + table.marginal_high[metric]
    columns = zip(one.amounts, *(np.exp(part) for part in (logs, low, high)), strict=True)
    return [Fitted(*map(float, row)) for row in columns]


def _told(projector: Projector) -> str:
    table, names = projector.table, projector.layout.features
    if not table.informed:
        return "Points: samples. No domain model is fitted yet."
    at = ", ".join(f"{name} {value:g}" for name, value in zip(names, _usual(table, 1)[0], strict=True))
    carried = f", as they would be at {at}" if at else ""
    level = f"{100 * table.level:.0f} % of cases"
    return f"Points: samples{carried}. Line and band: what is expected of a new run ({level})."


def _points(projector: Projector, resource: int, metric: int, samples: Floats | None) -> list[Sample]:
    """Iterations that were measured, at most ``MOST_POINTS``, evenly from all, carried over to usual features."""
    if samples is None:
        return []
    layout, some = projector.layout, samples[:: -(-len(samples) // MOST_POINTS), 1:]
    ends = np.cumsum([len(layout.resources), len(layout.metrics)])
    amounts, metrics, features = np.split(some, ends, axis=1)
    values = metrics[:, metric]
    if projector.table.informed and len(layout.features):
        steps = [one.step for one in layout.spec.resources]
        rows = layout.index(np.rint((amounts - layout.allocations[0]) / steps).astype(np.int32))
        usual = _logs(projector, rows, _usual(projector.table, len(some)))
        values = values * np.exp(usual - _logs(projector, rows, features))[:, metric]
    return [Sample(*map(float, pair)) for pair in zip(amounts[:, resource], values, strict=True)]


def _doubt(projector: Projector, one: Slice) -> Figure:
    """The spread of what models that the samples can't tell apart expect of the seconds."""
    usual, at = _usual(projector.table, len(one.rows)), np.full(len(one.rows), projector.layout.iterations // 2)
    offsets = projector.offsets(one.rows, projector.point(usual), at)[:, :, projector.layout.seconds]
    spread = np.expm1(np.minimum(offsets.std(axis=1), 5.0))
    best, name = float(one.amounts[int(spread.argmax())]), projector.layout.resources[one.resource]
    told = f"How far models differ that the samples can’t tell apart. A sample at {best:g} {name} would teach most."
    points = [Sample(*map(float, pair)) for pair in zip(one.amounts, spread, strict=True)]
    return doubt(f"What is not known yet, by {name}", name, points, best, told)

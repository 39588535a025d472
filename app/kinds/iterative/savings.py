"""What a run cost and took beside other courses: allocations that are held from its first iteration to its last, and
what was recommended to it, where nothing was applied.

The model converts each reported iteration to another allocation: measured · table(other) / table(reported), so that the
run's own effect and the noise of each iteration stay what they were. How sure that is follows from the ensemble's
members, which fit the samples equally well and differ where these say little.

Letters in shapes: A allocations, P parts of reported iterations, M metrics, K members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import Pending
from app.kinds.contract.savings import Comparison, Estimate, Savings
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.engine import ENGINE, CheckedReport
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.prediction import target
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.report import IterationRunStart

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
CHUNK = 1 << 20  # numbers of one array, at most, while allocations are compared
MOST_REPLAYED = 1_000  # iterations; a second of one core
FEWEST = 2  # members from which an interval can be had
LEVEL = 0.9
QUANTILES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


class _Parts(NamedTuple):
    """Reported iterations, or the segments of those whose allocation changed before their end.

    Attributes:
        number: number of the report, [P].
        row: allocation that was held, a row of the grid, [P].
        iteration: [P].
        features: [P, F].
        measured: metrics without pauses of changes; of a segment its share by seconds, [P, M].
    """

    number: Rows
    row: Rows
    iteration: Rows
    features: Floats
    measured: Floats

    def some(self, which: Any) -> _Parts:
        """The parts that an index of the first axis selects."""
        return _Parts(
            self.number[which], self.row[which], self.iteration[which], self.features[which], self.measured[which]
        )


def savings(
    compiled: Compiled, start: Mapping[str, Any], reports: Sequence[Mapping[str, Any]], replayed_at: datetime | None
) -> Savings | None:
    """Compare a run with the largest and the best allocation, held throughout, over its reported iterations.

    The best is the cheapest whose expected metrics meet all targets or, if none does, the one with the least expected
    seconds; it is chosen with hindsight, by the model's mean. Time and money are those of the reported iterations:
    seconds, and hours times prices per unit.

    Args:
        start: parameters that the run was started with; its own targets hold.
        reports: the run's reports as stored, in order.
        replayed_at: time at which the run is replayed as if what the compiled workload recommends had been applied;
            None: it is not. Runs of over ``MOST_REPLAYED`` iterations are not.

    None without a domain model that was fitted to the workload's samples, and without reports.
    """
    layout, projector = compiled.layout, compiled.projector
    if not projector.table.fitted or not reports:
        return None
    parts = _read(projector, reports, int(start.get("first_iteration", 0)))
    spent, took = _usage(layout, reports)
    wanted = [target(start, metric) for metric in layout.spec.metrics]

    def compared(allocation: dict[str, float] | None, rows: Rows, pauses: Floats) -> Comparison:
        """Compare with ``rows`` of the grid in the parts, [P], and ``pauses`` of changes before them, seconds, [P]."""
        metrics = _converted(projector, parts, rows)  # [P, 1 + K, M], the mean first
        metrics[:, :, layout.seconds] += pauses[:, None]
        prices = layout.allocations[rows] @ layout.prices
        cost, sums = _hours(prices @ metrics[:, :, layout.seconds]), metrics.sum(axis=0)
        met = _meets(layout, sums[1:], wanted, len(reports)).mean()
        return Comparison(
            allocation=allocation,
            seconds=_estimate(sums[:, layout.seconds]),
            cost=_estimate(cost),
            saved=_estimate(cost - spent),
            meets_targets=float(met) if any(one is not None for one in wanted) else None,
        )

    def held(row: int) -> Comparison:
        named = dict(zip(layout.resources, map(float, layout.allocations[row]), strict=True))
        return compared(named, np.full(len(parts.row), row), np.zeros(len(parts.row)))

    advised = None
    if replayed_at is not None and len(reports) <= MOST_REPLAYED:
        advised = compared(None, *_replay(compiled, start, parts, reports, replayed_at))
    return Savings(
        iterations=len(reports),
        seconds=took,
        cost=spent,
        level=LEVEL,
        largest=held(len(layout.allocations) - 1),
        best_fixed=held(_best(projector, parts, wanted, len(reports))),
        advised=advised,
    )


def _usage(layout: Layout, reports: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """Return what a run cost, in the prices' currency, and its seconds."""
    spent = took = 0.0
    prices = dict(zip(layout.resources, layout.prices, strict=True))
    for report in reports:
        whole = {"allocation": report["allocation"], "seconds": report["metrics"][layout.metrics[layout.seconds]]}
        for part in report.get("segments") or [whole]:
            spent += _hours(part["seconds"]) * sum(prices[name] * units for name, units in part["allocation"].items())
        took += whole["seconds"]
    return float(spent), took


def _hours(seconds: Any) -> Any:
    return seconds / 3_600


def _read(projector: Projector, reports: Sequence[Mapping[str, Any]], first: int) -> _Parts:
    """Read reports; ``first``: number of the first one's iteration.

    The pauses that the model knows for changes are left out, at most half of the seconds.
    """
    layout, pauses = projector.layout, projector.table.change_seconds
    found = list[tuple[int, int, int, list[float], Floats]]()
    before: NDArray[np.int32] | None = None
    for number, report in enumerate(reports):
        metrics = np.array([report["metrics"][name] for name in layout.metrics], float)
        features = [float(report.get("features", {}).get(name, 0.0)) for name in layout.features]
        whole = {"allocation": report["allocation"], "seconds": metrics[layout.seconds]}
        for part in report.get("segments") or [whole]:
            levels = np.array(layout.encode_allocation(part["allocation"]), np.int32)
            pause = 0.0 if before is None else float(pauses[levels != before].sum())
            measured = metrics * (part["seconds"] / whole["seconds"])
            measured[layout.seconds] = max(part["seconds"] - pause, part["seconds"] / 2)
            iteration = min(first + number, layout.iterations - 1)
            found.append((number, int(layout.index(levels)), iteration, features, measured))
            before = levels
    numbers, rows, iterations, features_of, sums = zip(*found, strict=True)
    return _Parts(
        np.array(numbers, np.intp),
        np.array(rows, np.intp),
        np.array(iterations, np.intp),
        np.array(features_of, float).reshape(len(found), len(layout.features)),
        np.array(sums),
    )


def _best(projector: Projector, parts: _Parts, wanted: Sequence[float | None], iterations: int) -> int:
    """The best allocation to hold, by the model's mean: a row of the grid."""
    layout = projector.layout
    count, width = len(layout.allocations), len(layout.metrics)
    rows, sums = np.arange(count), np.zeros((count, width))
    each = max(CHUNK // (count * width), 1)
    for first in range(0, len(parts.row), each):
        some = parts.some(slice(first, first + each))
        point = projector.point(np.repeat(some.features, count, axis=0))
        there = projector.log_mean(np.tile(rows, len(some.row)), point, np.repeat(some.iteration, count))
        here = projector.log_mean(some.row, projector.point(some.features), some.iteration)
        sums += np.einsum("pm,pam->am", some.measured, np.exp(there.reshape(-1, count, width) - here[:, None]))
    meets, seconds = _meets(layout, sums, wanted, iterations), sums[:, layout.seconds]
    if not meets.any():
        return int(seconds.argmin())
    return int(np.where(meets, seconds * (layout.allocations @ layout.prices), np.inf).argmin())


def _converted(projector: Projector, parts: _Parts, rows: Rows) -> Floats:
    """Metrics of the parts as if they had run at ``rows`` of the grid [P], by the model's mean and by each of its
    members, [P, 1 + K, M]; K is 1 for a single model."""
    point = projector.point(parts.features)
    means = [projector.log_mean(row, point, parts.iteration)[:, None] for row in (parts.row, rows)]
    each = means
    if projector.members > 1:
        each = [
            log + projector.offsets(row, point, parts.iteration)
            for log, row in zip(means, (parts.row, rows), strict=True)
        ]
    change = np.concatenate([there - here for here, there in (means, each)], axis=1)
    return np.asarray(parts.measured[:, None] * np.exp(change), np.float64)


def _replay(
    compiled: Compiled, start: Mapping[str, Any], parts: _Parts, reports: Sequence[Mapping[str, Any]], now: datetime
) -> tuple[Rows, Floats]:
    """The rows of the grid that would have been held in the parts, and the pauses before them, had every decision been
    applied: the engine decides on reports that the model's mean converts to what it decided before, [P] each."""
    layout, pauses = compiled.layout, compiled.projector.table.change_seconds
    first = int(start.get("first_iteration", 0))
    begun = IterationRunStart.model_validate({"workload": compiled.snapshot.name, **start})
    answered = ENGINE.begin(compiled, None, begun, now)
    rows, paused = np.empty_like(parts.row), np.zeros(len(parts.row))
    before: NDArray[np.int32] | None = None
    for number, report in enumerate(reports):
        levels = np.array(layout.encode_allocation(msgspec.json.decode(answered.decision)["allocation"]), np.int32)
        those = np.flatnonzero(parts.number == number)
        rows[those] = layout.index(levels)
        paused[those[0]] = 0.0 if before is None else float(pauses[levels != before].sum())
        before = levels
        if number == len(reports) - 1:
            break
        metrics = _converted(compiled.projector, parts.some(those), rows[those])[:, 0].sum(axis=0)
        metrics[layout.seconds] += paused[those[0]]
        given = ENGINE.decode(msgspec.json.encode({key: value for key, value in report.items() if key != "segments"}))
        checked = ENGINE.read(compiled, answered.state, first + number, given)
        assert isinstance(checked, CheckedReport)  # noqa: S101 - what the kind's engine reads
        turn = msgspec.structs.replace(checked, levels=levels.tolist(), metrics=metrics.tolist())
        (following,) = ENGINE.answer(compiled, [Pending("replay", first + number, answered.state, turn, {}, None)], now)
        if isinstance(following, Exception):
            raise following
        answered = following
    return rows, paused


def _meets(layout: Layout, sums: Floats, wanted: Sequence[float | None], iterations: int) -> NDArray[np.bool_]:
    """Whether sums of metrics [n, M] meet all targets, [n]; targets of iterations are met on average."""
    met = np.ones(len(sums), np.bool_)
    for at, (metric, goal) in enumerate(zip(layout.spec.metrics, wanted, strict=True)):
        if goal is not None:
            reached = sums[:, at] / (1 if metric.scope == "run" else iterations)
            met &= np.array([metric.is_met(float(value), goal) for value in reached])
    return met


def _estimate(values: Floats) -> Estimate:
    """An estimate from the value by the mean and those by K members, [1 + K]; no interval where there are too few."""
    if len(values) <= FEWEST:
        return Estimate(value=float(values[0]), low=None, high=None)
    low, high = np.quantile(values[1:], QUANTILES)
    return Estimate(value=float(values[0]), low=float(low), high=float(high))

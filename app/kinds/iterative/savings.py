"""What a run cost and took beside other courses: allocations that are held from its first iteration to its last, and
what was recommended to it, where nothing was applied.

The model converts each reported iteration to another allocation: measured · table(other) / table(reported), so that the
run's own effect and the noise of each iteration stay what they were. How sure that is follows from the ensemble's
members, which fit the samples equally well and differ where these say little.

Letters in shapes: A allocations, N reported iterations, M metrics, F features, K members.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from time import thread_time
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.charts.text import quantity
from app.kinds.contract.caps import Cap, Caps
from app.kinds.contract.engine import Pending
from app.kinds.contract.savings import Comparison, Estimate, Savings
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.contingencies import LEAST_WORKED, Segment, as_one
from app.kinds.iterative.engine import ENGINE, CheckedReport
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.prediction import target
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.report import IterationRunStart

logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
CHUNK = 1 << 20  # numbers of one array, at most
MOST_COMPARED = 10_000_000  # allocations times different iterations; some seconds of one core
MOST_REPLAYED, LONGEST_REPLAY = 1_000, 1.0  # iterations, and seconds of a core
MEASURED = ("segments", "change_seconds")  # of a report, at its own allocations
FEWEST = 2  # members from which an interval can be had
LEVEL = 0.9
QUANTILES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


class _Reported(NamedTuple):
    """Reported iterations, each as if it had run at its last allocation alone.

    Attributes:
        row: that allocation, a row of the grid, [N].
        iteration: [N].
        features: [N, F].
        measured: metrics without pauses of changes, [N, M].
    """

    row: Rows
    iteration: Rows
    features: Floats
    measured: Floats

    def part(self, first: int, count: int) -> _Reported:
        """Return ``count`` consecutive iterations, from index ``first`` (from 0) on; fewer at the end."""
        some = slice(first, first + count)
        return _Reported(self.row[some], self.iteration[some], self.features[some], self.measured[some])


def savings(
    compiled: Compiled, start: Mapping[str, Any], reports: Sequence[Mapping[str, Any]], replayed_at: datetime | None
) -> Savings | None:
    """Compare a run with the largest and the best allocation, held throughout, over its reported iterations.

    The best is the cheapest whose expected metrics meet all targets or, if none does, the one with the least expected
    seconds; it is chosen with hindsight, by the model's mean. Time and money are those of the reported iterations:
    seconds, and hours times the present prices per unit.

    Args:
        start: parameters that the run was started with; its own targets hold.
        reports: the run's reports as stored, in order.
        replayed_at: time at which the run is replayed as if what the compiled workload decides had been applied; None:
            it is not. Runs of over ``MOST_REPLAYED`` iterations are not, nor if it takes over ``LONGEST_REPLAY`` s
            of a core.

    None without a domain model that was fitted to the workload's samples, without reports, and where allocations times
    different iterations are more than ``MOST_COMPARED``. A comparison has no figures if its allocations are outside of
    the range that samples or this run have: there the members agree by their families' form, not by measurements.
    """
    layout, projector = compiled.layout, compiled.projector
    if not projector.table.fitted or not reports:
        return None
    read = _read(projector, reports, int(start.get("first_iteration", 0)))
    distinct, _ = _summed(projector, read, read.row)
    if len(distinct.row) * len(layout.allocations) > MOST_COMPARED:
        return None
    spent, took = _usage(layout, reports)
    wanted = [target(start, metric) for metric in layout.spec.metrics]

    def compared(allocation: dict[str, float] | None, work: _Reported, rows: Rows, pauses: Floats) -> Comparison:
        """Compare with ``work`` of P parts of iterations at ``rows`` of the grid after ``pauses`` [s], [P] each."""
        if unmeasured := _unmeasured(projector, read.row, rows):
            blank = dict.fromkeys(("seconds", "cost", "saved", "meets_targets"))
            return Comparison(allocation=allocation, unmeasured=unmeasured, **blank)
        prices = layout.allocations @ layout.prices
        some, others = _summed(projector, work, rows)
        sums, cost = np.zeros((1 + projector.members, len(layout.metrics))), np.zeros(1 + projector.members)
        each = max(CHUNK // sums.size, 1)
        for first in range(0, len(others), each):
            target_rows = others[first : first + each]
            metrics = _converted(projector, some.part(first, each), target_rows)
            sums += metrics.sum(axis=0)
            cost += _hours(prices[target_rows] @ metrics[:, :, layout.seconds])
        sums[:, layout.seconds] += pauses.sum()
        cost += _hours(float(prices[rows] @ pauses))
        met = _meets(layout, sums[1:], wanted, len(reports)).mean()
        return Comparison(
            allocation=allocation,
            seconds=_estimate(sums[:, layout.seconds]),
            cost=_estimate(cost),
            saved=_estimate(cost - spent),
            meets_targets=float(met) if any(one is not None for one in wanted) else None,
        )

    def hold(row: int) -> Comparison:
        named = layout.allocation_dict(projector.grid_levels[row])
        return compared(named, read, np.full(len(reports), row), np.zeros(len(reports)))

    courses = _replay(compiled, start, read, reports, replayed_at) if replayed_at is not None else None
    return Savings(
        iterations=len(reports),
        seconds=took,
        cost=spent,
        level=LEVEL,
        largest=hold(len(layout.allocations) - 1),
        best_fixed=hold(_best(projector, distinct, wanted, len(reports))),
        advised=None if courses is None else compared(None, *courses),
    )


def _unmeasured(projector: Projector, ran: Rows, rows: Rows) -> str | None:
    """Why ``rows`` of the grid [N] are extrapolated: beyond the samples' and the run's (``ran``, [N]) range of a
    resource by over half a step; None if they are not."""
    layout, table = projector.layout, projector.table
    here, there = layout.allocations[ran], layout.allocations[rows]
    low = np.minimum(table.seen_low, here.min(axis=0))
    high = np.maximum(table.seen_high, here.max(axis=0))
    for at, resource in enumerate(layout.spec.resources):
        least, most = there[:, at].min(), there[:, at].max()
        if least >= low[at] - resource.step / 2 and most <= high[at] + resource.step / 2:
            continue
        beyond = most if most > high[at] + resource.step / 2 else least
        known = f"{low[at]:g}" if low[at] == high[at] else f"{low[at]:g} to {high[at]:g}"
        where = quantity(f"{beyond:g}", resource.name, resource.unit)
        return f"not measured at {where}: samples and run have {known}"
    return None


def _usage(layout: Layout, reports: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
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


def _read(projector: Projector, reports: Sequence[Mapping[str, Any]], first: int) -> _Reported:
    """Read reports; ``first``: number of the first one's iteration.

    The pauses that the model knows for changes are left out, but for ``LEAST_WORKED`` of an iteration's seconds."""
    layout, n = projector.layout, len(reports)
    metrics = np.array([[report["metrics"][name] for name in layout.metrics] for report in reports], float)
    features = [[report.get("features", {}).get(name, 0.0) for name in layout.features] for report in reports]
    courses = np.array(features, float).reshape(n, len(layout.features))
    levels = np.array([layout.encode_allocation(report["allocation"]) for report in reports], np.int32)
    iteration = np.minimum(first + np.arange(n), layout.iterations - 1)
    result = np.array([report.get("change_seconds", np.nan) for report in reports], float)
    for i, report in enumerate(reports):
        if parts := report.get("segments"):
            amounts = np.array([layout.encode_allocation(part["allocation"]) for part in parts], np.int32)
            seconds = np.array([part["seconds"] for part in parts], float)
            before = levels[i - 1] if i else None
            own = metrics[i], courses[i : i + 1], iteration[i : i + 1]
            metrics[i], result[i] = as_one(projector, amounts, seconds, before, *own, result[i]), np.nan
    pauses = np.append(0.0, (levels[1:] != levels[:-1]) @ projector.change_seconds)
    took = metrics[:, layout.seconds]
    metrics[:, layout.seconds] = np.where(
        np.isnan(result), np.maximum(took - pauses, LEAST_WORKED * took), took - np.nan_to_num(result)
    )
    return _Reported(layout.index(levels), iteration, courses, metrics)


def _summed(projector: Projector, read: _Reported, rows: Rows) -> tuple[_Reported, Rows]:
    """Sum the iterations that the model converts alike: of equal allocation, features, stage and target row [N].

    Returns the sums, one for each of n different iterations, and their target rows, [n]."""
    stage = projector.table.iteration_bin[read.iteration]
    keys = np.column_stack([read.row, rows, stage, read.features])
    _, at, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    measured = np.zeros((len(at), read.measured.shape[1]))
    np.add.at(measured, group.reshape(-1), read.measured)
    return _Reported(read.row[at], read.iteration[at], read.features[at], measured), rows[at]


def _best(projector: Projector, read: _Reported, wanted: Sequence[float | None], iterations: int) -> int:
    """Return the row of the grid of the cheapest allocation whose expected metrics meet the targets ``wanted``, else of
    the fastest, had it been held for the ``read`` iterations; ``iterations``: their number."""
    layout = projector.layout
    count, width = len(layout.allocations), len(layout.metrics)
    rows, sums = np.arange(count), np.zeros((count, width))
    each = max(CHUNK // (count * width), 1)
    for first in range(0, len(read.row), each):
        some = read.part(first, each)
        point = projector.point(np.repeat(some.features, count, axis=0))
        there = projector.log_mean(np.tile(rows, len(some.row)), point, np.repeat(some.iteration, count))
        here = projector.log_mean(some.row, projector.point(some.features), some.iteration)
        sums += np.einsum("nm,nam->am", some.measured, np.exp(there.reshape(-1, count, width) - here[:, None]))
    meets, seconds = _meets(layout, sums, wanted, iterations), sums[:, layout.seconds]
    if not meets.any():
        return int(seconds.argmin())
    return int(np.where(meets, seconds * (layout.allocations @ layout.prices), np.inf).argmin())


def _converted(projector: Projector, read: _Reported, rows: Rows) -> Floats:
    """Metrics of iterations as if they had run at ``rows`` of the grid [N], by the model's mean and by each of its
    members, [N, 1 + K, M]; K is 1 for a single model."""
    point = projector.point(read.features)
    means = [projector.log_mean(row, point, read.iteration)[:, None] for row in (read.row, rows)]
    each = means
    if projector.members > 1:
        each = [
            log + projector.offsets(row, point, read.iteration)
            for log, row in zip(means, (read.row, rows), strict=True)
        ]
    change = np.concatenate([there - here for here, there in (means, each)], axis=1)
    return np.asarray(read.measured[:, None] * np.exp(change), np.float64)


def _replay(
    compiled: Compiled, start: Mapping[str, Any], read: _Reported, reports: Sequence[Mapping[str, Any]], now: datetime
) -> tuple[_Reported, Rows, Floats] | None:
    """The work of P parts of iterations, the rows of the grid that they would have had, and the pauses before them, [P]
    each, had every decision been applied: the engine decides on reports that the model's mean converts to what it
    decided before, within the run's own caps; where these stop it, it keeps its allocation.

    Contingencies are applied within iterations that the model's mean has last longer. None if the run is too long, or
    the engine fails."""
    if len(reports) > MOST_REPLAYED:
        return None
    layout, projector, until = compiled.layout, compiled.projector, thread_time() + LONGEST_REPLAY
    first = int(start.get("first_iteration", 0))
    parts = list[_Part]()
    before: NDArray[np.int32] | None = None
    try:
        begun = IterationRunStart.model_validate({"workload": compiled.snapshot.name, **start})
        caps = [Cap("run", of, limit) for of, limit in (begun.caps or Caps()).limits.items()]
        answered = ENGINE.begin(compiled, None, begun, now, caps)
        for i, report in enumerate(reports):
            course, metrics = _course(projector, msgspec.json.decode(answered.decision), read.part(i, 1), i, before)
            before = course[-1].levels
            parts += course
            if i == len(reports) - 1:
                break
            if thread_time() > until:
                return None
            step = ENGINE.decode(msgspec.json.encode({key: one for key, one in report.items() if key not in MEASURED}))
            checked: CheckedReport = ENGINE.read(compiled, answered.state, first + i, step)
            segments = [Segment(one.levels.tolist(), one.seconds) for one in course] if len(course) > 1 else []
            turn = msgspec.structs.replace(
                checked, levels=before.tolist(), metrics=metrics.tolist(), segments=tuple(segments)
            )
            pending = Pending("replay", first + i, answered.state, turn, start, None, caps)
            (following,) = ENGINE.answer(compiled, [pending], now)
            if isinstance(following, Exception):
                logger.warning("a run of workload %s can't be replayed: %s", compiled.snapshot.name, following)
                return None
            answered = following
    except Exception:  # whatever an agent may raise: the other comparisons stand
        logger.exception("a run of workload %s can't be replayed", compiled.snapshot.name)
        return None
    of, shares = np.array([one.iteration for one in parts]), np.array([one.share for one in parts])
    work = _Reported(read.row[of], read.iteration[of], read.features[of], read.measured[of] * shares[:, None])
    rows = np.array([int(layout.index(one.levels)) for one in parts], np.intp)
    return work, rows, np.array([one.pause for one in parts])


class _Part(NamedTuple):
    """A part of a replayed iteration at one allocation, ``levels`` in grid steps above the minimum [R]: its
    ``share`` of the iteration's work, and its ``seconds``, of which the first ``pause`` are its change's."""

    iteration: int
    levels: NDArray[np.int32]
    share: float
    pause: float
    seconds: float


def _course(
    projector: Projector,
    decision: Mapping[str, Any],
    one: _Reported,
    iteration: int,
    before: NDArray[np.int32] | None,
) -> tuple[list[_Part], Floats]:
    """Play a decision and its contingencies in one reported iteration, ``one`` (N = 1), by the model's mean, after the
    allocation ``before`` [R] (None: it is the first). Returns its parts, and its metrics, [M]."""
    layout, second = projector.layout, projector.layout.seconds
    plan = [(0.0, decision["allocation"])]
    plan += [(each["after_seconds"], each["allocation"]) for each in decision.get("contingencies", ())]
    parts, total, left = list[_Part](), np.zeros(one.measured.shape[1]), 1.0
    for place, (begun, allocation) in enumerate(plan):
        levels = np.array(layout.encode_allocation(allocation), np.int32)
        pause = 0.0 if before is None else float((levels != before) @ projector.change_seconds)
        metrics = _converted(projector, one, np.array([int(layout.index(levels))]))[0, 0]
        rest = pause + left * float(metrics[second])
        until = next((after - begun for after, _ in plan[place + 1 :] if after > begun), np.inf)
        seconds = min(rest, until)
        share = left if seconds == rest else max(seconds - pause, 0.0) / float(metrics[second])
        parts.append(_Part(iteration, levels, share, min(pause, seconds), seconds))
        total += share * metrics
        total[second] += min(pause, seconds)
        before, left = levels, left - share
        if seconds == rest:
            break
    return parts, total


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

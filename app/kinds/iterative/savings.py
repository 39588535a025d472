"""What a run cost and took beside allocations that are held from its first iteration to its last.

The model converts each reported iteration to another allocation: measured · table(other) / table(reported), so that the
run's own effect and the noise of each iteration stay what they were. How sure that is follows from the ensemble's
members, which fit the samples equally well and differ where these say little.

Letters in shapes: A allocations, G groups of reported iterations, M metrics, K members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.savings import Comparison, Estimate, Savings
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.prediction import target
from app.kinds.iterative.projector import Projector

Floats = NDArray[np.float64]
CHUNK = 1 << 20  # numbers of one array, at most, while allocations are compared
FEWEST = 2  # members from which an interval can be had
LEVEL = 0.9
QUANTILES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


class _Groups(NamedTuple):
    """Reported iterations with the same allocation, features and stage of the run, joined.

    Attributes:
        row: allocation that was held, a row of the grid, [G].
        iteration: one iteration of each group, [G].
        features: [G, F].
        measured: sums of metrics over the group, without pauses of changes, [G, M].
    """

    row: NDArray[np.intp]
    iteration: NDArray[np.intp]
    features: Floats
    measured: Floats


def savings(compiled: Compiled, start: Mapping[str, Any], reports: Sequence[Mapping[str, Any]]) -> Savings | None:
    """Compare a run with the largest and the best allocation, held throughout, over its reported iterations.

    The best is the cheapest whose expected metrics meet all targets or, if none does, the one with the least expected
    seconds; it is chosen with hindsight, by the model's mean. Time and money are those of the reported iterations:
    seconds, and hours times prices per unit.

    Args:
        start: body of the request that started the run, with its own targets.
        reports: the run's reports as stored, in order.

    None without a domain model that was fitted to the workload's samples, and without reports.
    """
    layout, projector = compiled.layout, compiled.projector
    if not projector.table.fitted or not reports:
        return None
    groups = _join(projector, reports, int(start.get("first_iteration", 0)))
    spent, took = _usage(layout, reports)
    expected = _expected(projector, groups)  # [A, M]
    money = _hours(expected[:, layout.seconds]) * (layout.allocations @ layout.prices)
    wanted = [target(start, metric) for metric in layout.spec.metrics]
    meets = _meets(layout, expected[None], wanted, len(reports))[0]
    best = int(np.where(meets, money, np.inf).argmin()) if meets.any() else int(expected[:, layout.seconds].argmin())
    chosen = (len(layout.allocations) - 1, best)
    sums = _by_member(projector, groups, chosen)  # [K, 2, M]
    met = _meets(layout, sums, wanted, len(reports)) if any(one is not None for one in wanted) else None
    found = []
    for at, row in enumerate(chosen):
        seconds = sums[:, at, layout.seconds]
        cost = _hours(seconds) * float(layout.allocations[row] @ layout.prices)
        found.append(
            Comparison(
                allocation=dict(zip(layout.resources, map(float, layout.allocations[row]), strict=True)),
                seconds=_estimate(seconds, float(expected[row, layout.seconds])),
                cost=_estimate(cost, float(money[row])),
                saved=_estimate(cost - spent, float(money[row]) - spent),
                meets_targets=None if met is None else float(met[:, at].mean()),
            )
        )
    largest, static = found
    return Savings(seconds=took, cost=spent, iterations=len(reports), level=LEVEL, largest=largest, best_fixed=static)


def _usage(layout: Layout, reports: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """Return what a run cost, in the prices' currency, and its seconds."""
    spent = took = 0.0
    prices = dict(zip(layout.resources, layout.prices, strict=True))
    for report in reports:
        whole = {"allocation": report["allocation"], "seconds": report["metrics"][layout.metrics[layout.seconds]]}
        for part in report.get("segments") or [whole]:
            spent += _hours(part["seconds"]) * sum(prices[name] * units for name, units in part["allocation"].items())
        took += whole["seconds"]
    return spent, took


def _hours(seconds: Any) -> Any:
    return seconds / 3_600


def _join(projector: Projector, reports: Sequence[Mapping[str, Any]], first: int) -> _Groups:
    """Join reports with equal allocation, features and stage; ``first``: number of the first report's iteration.

    The pauses that the model knows for changes are left out, at most half of the seconds. Each segment of an iteration
    counts at its own allocation, with metrics other than seconds in proportion to these.
    """
    layout, pauses = projector.layout, projector.table.change_seconds
    sums: dict[tuple[int, int, tuple[float, ...]], Floats] = {}
    iterations: dict[tuple[int, int, tuple[float, ...]], int] = {}
    before: NDArray[np.int32] | None = None
    for number, report in enumerate(reports):
        iteration = min(first + number, layout.iterations - 1)
        metrics = np.array([report["metrics"][name] for name in layout.metrics])
        features = tuple(float(report.get("features", {}).get(name, 0.0)) for name in layout.features)
        whole = {"allocation": report["allocation"], "seconds": metrics[layout.seconds]}
        for part in report.get("segments") or [whole]:
            levels = np.array(layout.encode_allocation(part["allocation"]), np.int32)
            pause = 0.0 if before is None else float(pauses[levels != before].sum())
            measured = metrics * (part["seconds"] / whole["seconds"])
            measured[layout.seconds] = max(part["seconds"] - pause, part["seconds"] / 2)
            key = int(layout.index(levels)), int(projector.table.iteration_bin[iteration]), features
            sums[key] = sums.get(key, 0.0) + measured
            iterations.setdefault(key, iteration)
            before = levels
    return _Groups(
        np.array([row for row, _, _ in sums], np.intp),
        np.array(list(iterations.values()), np.intp),
        np.array([features for _, _, features in sums], np.float64).reshape(len(sums), len(layout.features)),
        np.array(list(sums.values())),
    )


def _expected(projector: Projector, groups: _Groups) -> Floats:
    """Sums of metrics over the run at each allocation, by the model's mean, [A, M]."""
    count, width = len(projector.layout.allocations), len(projector.layout.metrics)
    found = np.zeros((count, width))
    rows = np.arange(count)
    each = max(CHUNK // (count * width), 1)
    for first in range(0, len(groups.row), each):
        part = slice(first, first + each)
        some = _Groups(groups.row[part], groups.iteration[part], groups.features[part], groups.measured[part])
        point = projector.point(np.repeat(some.features, count, axis=0))
        there = projector.log_mean(np.tile(rows, len(some.row)), point, np.repeat(some.iteration, count))
        here = projector.log_mean(some.row, projector.point(some.features), some.iteration)
        ratio = np.exp(there.reshape(len(some.row), count, width) - here[:, None])
        found += np.einsum("gm,gam->am", some.measured, ratio)
    return found


def _by_member(projector: Projector, groups: _Groups, chosen: Sequence[int]) -> Floats:
    """Sums of metrics over the run at the allocations ``chosen``, by each member, [K, len(chosen), M]."""
    point = projector.point(groups.features)
    rows = [groups.row, *(np.full(len(groups.row), row) for row in chosen)]
    logs = [projector.log_mean(row, point, groups.iteration)[:, None] for row in rows]
    if projector.members > 1:
        logs = [log + projector.offsets(row, point, groups.iteration) for log, row in zip(logs, rows, strict=True)]
    here, *there = logs  # [G, K, M] each
    return np.stack([np.einsum("gm,gkm->km", groups.measured, np.exp(log - here)) for log in there], axis=1)


def _meets(layout: Layout, sums: Floats, wanted: Sequence[float | None], iterations: int) -> NDArray[np.bool_]:
    """Whether sums of metrics [K, A, M] meet all targets, [K, A]; targets of iterations are met on average."""
    met = np.ones(sums.shape[:2], np.bool_)
    for at, (metric, goal) in enumerate(zip(layout.spec.metrics, wanted, strict=True)):
        if goal is not None:
            reached = sums[:, :, at] / (1 if metric.scope == "run" else iterations)
            met &= np.array([[metric.is_met(float(value), goal) for value in row] for row in reached])
    return met


def _estimate(members: Floats, mean: float) -> Estimate:
    """An estimate from one value by each of K members; without an interval where there are too few."""
    if len(members) < FEWEST:
        return Estimate(value=mean, low=None, high=None)
    low, high = np.quantile(members, QUANTILES)
    return Estimate(value=mean, low=float(low), high=float(high))

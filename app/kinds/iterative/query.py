"""States given in full by a query, and validation of a run's own targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import exact
from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import (
    LARGEST_ITERATION,
    LARGEST_NUMBER,
    SMALLEST_NUMBER,
    InvalidInput,
    invalid,
    of_query,
    pairs,
    whole_number,
)
from app.kinds.contract.kind import Parameter
from app.kinds.iterative.announced import encode_upcoming
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.report import UpcomingIteration
from app.kinds.iterative.state import State, advance, begin, log_factor

# States given in full with a request, instead of kept between reports.


Array = NDArray[np.floating]


class GivenState(NamedTuple):
    """Last iteration of a run, in the layout's order of R resources, M metrics and F features.

    Attributes:
        iteration: its number, from 0.
        levels: allocation in grid steps above the minimum, [R].
        metrics, features: measured metrics [M] and features [F], in their units.
        totals: sums of the metrics over the run, this iteration included, [M]; NaN: unknown.
        targets: the run's targets, [M]; NaN: the workload's.
        probabilities: required probabilities, [M]; NaN: none.
    """

    iteration: int
    levels: list[int]
    metrics: list[float]
    features: list[float]
    totals: list[float]
    targets: list[float]
    probabilities: list[float]


def states(compiled: Compiled, rows: Sequence[GivenState]) -> State:
    """Return the states of B runs from their last iterations ``rows``.

    The run effect is estimated from that iteration alone. Sums over earlier iterations are ``totals`` or, where these
    are unknown, the model's expectation with this effect at the present allocation."""
    layout, projector = compiled.layout, compiled.projector
    columns = zip(*rows, strict=True)
    iteration, levels, metrics, features, totals, targets, probabilities = (np.array(column) for column in columns)
    features = features.reshape(len(rows), len(layout.features))
    before = compiled.fresh(len(rows))._replace(
        iteration=iteration.astype(np.int32),
        levels=levels.astype(np.int16),
        targets=np.where(np.isnan(targets), layout.targets, targets),
        probabilities=probabilities,
        features=features,
    )
    after = advance(projector, before, levels, metrics, features)
    used = _expected_sums(projector, after, iteration)
    elapsed = np.where(np.isnan(totals), used + metrics, totals)
    rate = (projector.minima + projector.steps * levels) * after.prices
    cost = rate.sum(axis=1) * elapsed[:, layout.seconds] * projector.hours_per_second
    return after._replace(elapsed=elapsed, cost=cost)


def _expected_sums(projector: Projector, after: State, iteration: NDArray[np.integer]) -> Array:
    """Return the sums of M metrics that the model expects, at the last allocation of ``after`` and with its run effect,
    over the iterations before ``iteration`` [B], [B, M]."""
    projector = projector.ahead
    here, point = projector.layout.index(after.levels)[None], projector.point(after.features)
    start = np.zeros_like(iteration)
    sums = [
        projector.remaining(m, here, point, start)[0] - projector.remaining(m, here, point, iteration)[0]
        for m in range(len(projector.layout.metrics))
    ]
    result: Array = np.stack([total * np.exp(log_factor(projector, after, m)) for m, total in enumerate(sums)], axis=1)
    return result


# Query parameters of a state or a run's beginning; targets and features by name.


_PAIRS: dict[str, Any] = {"type": "array", "items": {"type": "string", "pattern": "^.+:.+$"}}
_NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": LARGEST_ITERATION}
PARAMETERS = (
    Parameter("iteration", "The reported iteration.", _NUMBER, 11),
    Parameter("allocation", "Allocation used by that iteration: `name:value`.", _PAIRS, ["gpus:4"]),
    Parameter("metric", "Metrics it measured: `name:value`.", _PAIRS, ["iteration_seconds:31.5"]),
    Parameter("feature", "Features of that iteration: `name:value`.", _PAIRS, ["batch:128"]),
    Parameter("total", "Totals over the run so far: `name:value`.", _PAIRS, ["iteration_seconds:380"]),
    Parameter("target", "Targets that override the workload's.", _PAIRS, ["iteration_seconds:1500"]),
    Parameter("probability", "Required probabilities of meeting targets.", _PAIRS, ["iteration_seconds:0.95"]),
)

QUERIED = ("/query/target", "/query/probability")
PARTS = {"allocation": "allocation", "metrics": "metric", "features": "feature"}


def parse_state(compiled: Compiled, query: Query) -> GivenState | State:
    """Parse a run's last iteration from a query; without an iteration, return the state of a run that hasn't begun.

    Raises:
        InvalidInput: a part is missing, unknown, duplicate or not a number, or the state doesn't fit the workload.
    """
    if "iteration" in query:
        return state_of_query(compiled, query)
    parts = [name for name in ("allocation", "metric", "total") if name in query]
    if parts:
        raise invalid("/query/iteration", f"is required with {', '.join(parts)}", None)
    targets, features = pairs(query, "target"), pairs(query, "feature")
    return beginning(compiled, targets, features or None, pairs(query, "probability"), QUERIED)


def beginning(
    compiled: Compiled,
    targets: Mapping[str, float],
    features: Mapping[str, float] | None,
    probabilities: Mapping[str, float | None],
    pointers: tuple[str, str] = ("/targets", "/probabilities"),
    upcoming: Sequence[UpcomingIteration] = (),
    first: int = 0,
) -> State:
    """Return the state of a run without reports (B = 1), with its own targets, probabilities and features.

    Args:
        compiled: the workload.
        targets: the run's targets by metric; others are the workload's.
        features: features of the first iteration by name; None: unknown.
        probabilities: required probabilities by metric; None: not required; missing: the workload's.
        pointers: JSON pointers of targets and probabilities, for errors.
        upcoming: announced iterations after the first.
        first: number of the first iteration, from 0.

    Raises:
        InvalidInput: an iteration, target or feature doesn't fit the workload, or ``upcoming`` is given without
            ``features``.
    """
    layout = compiled.layout
    if first >= layout.iterations:
        accepted = f"must be less than {layout.iterations}, the workload's number of iterations"
        raise invalid("/first_iteration", accepted, first)
    state = begin(
        compiled.projector,
        layout.start_levels[None],
        targets=check_targets(compiled, targets, pointers[0], layout.targets.tolist()),
        probabilities=check_probabilities(compiled, probabilities, pointers[1]),
        features=None if features is None else [layout.encode_features(features)],
    )._replace(iteration=np.array([first], np.int32))
    if features is None and upcoming:
        raise invalid("/features", "is required with upcoming: the first iteration's features", None)
    if not layout.features or features is None:
        return state
    announced = encode_upcoming(layout, [one.features for one in upcoming], first + 1, "/upcoming")
    return state._replace(upcoming=np.concatenate([state.features, announced])[None])


def state_of_query(compiled: Compiled, query: Query) -> GivenState:
    """Parse ``iteration=11&allocation=gpus:4&metric=iteration_seconds:31.5&feature=batch:128``, optionally with
    ``total=iteration_seconds:380`` (sums so far), ``target=…`` and ``probability=…``.

    Raises:
        InvalidInput: a part is missing, unknown, duplicate or invalid, or the iteration is beyond the last.
    """
    iteration = _iteration(query["iteration"], compiled.layout.iterations)
    parts = [pairs(query, part) for part in ("allocation", "metric", "feature")]
    try:
        levels, metrics, features = compiled.encode(*parts)
    except InvalidInput as refused:
        raise of_query(refused, PARTS) from refused
    totals = _by_metric(compiled, query, "total") if "total" in query else compiled.unknown
    targets = _by_metric(compiled, query, "target") if "target" in query else compiled.unknown
    probabilities = compiled.layout.probabilities.tolist()
    if "probability" in query:
        probabilities = check_probabilities(compiled, pairs(query, "probability"), QUERIED[1])
    return GivenState(iteration, levels, metrics, features, totals, targets, probabilities)


def check_targets(compiled: Compiled, targets: Mapping[str, float], pointer: str, rest: list[float]) -> list[float]:
    """Return M targets in the layout's order: those given by metric, ``rest`` [M] for the other metrics.

    Raises:
        InvalidInput: the metric has no target in the spec, or the value is out of range.
    """
    known = [metric.name for metric in compiled.layout.spec.metrics if metric.target is not None]
    for name, value in targets.items():
        if name not in known:
            raise invalid(f"{pointer}/{name}", f"no metric with a target; known: {', '.join(known) or 'none'}", value)
        if not SMALLEST_NUMBER <= value <= LARGEST_NUMBER:
            raise invalid(f"{pointer}/{name}", f"must be {exact(SMALLEST_NUMBER)} to {exact(LARGEST_NUMBER)}", value)
    return [targets.get(name, other) for name, other in zip(compiled.layout.metrics, rest, strict=True)]


def check_probabilities(
    compiled: Compiled, probabilities: Mapping[str, float | None], pointer: str = "/probabilities"
) -> list[float]:
    """Return M required probabilities in the layout's order: given by metric, else the workload's; NaN: none.

    Raises:
        InvalidInput: the metric is unknown or its target can't have one, or the value isn't between 0 and 1.
    """
    known = {metric.name: metric.uncertain for metric in compiled.layout.spec.metrics}
    for name, value in probabilities.items():
        if name not in known:
            raise invalid(f"{pointer}/{name}", f"unknown name; known: {', '.join(known)}", value)
        problem = known[name]
        if problem and value is not None:
            raise invalid(f"{pointer}/{name}", problem, value)
        if value is not None and not 0 < value < 1:
            raise invalid(f"{pointer}/{name}", "must be greater than 0 and less than 1", value)
    requests = zip(compiled.layout.metrics, compiled.layout.probabilities.tolist(), strict=True)
    values = [probabilities.get(name, default) for name, default in requests]
    return [math.nan if value is None else value for value in values]


def _by_metric(compiled: Compiled, query: Query, part: str) -> list[float]:
    values = pairs(query, part)
    if part == "target":
        return check_targets(compiled, values, "/query/target", compiled.unknown)
    for name, value in values.items():
        if name not in compiled.layout.metrics:
            known = ", ".join(compiled.layout.metrics)
            raise invalid(f"/query/total/{name}", f"unknown name; known: {known}", value)
        if not (math.isfinite(value) and value >= 0):
            raise invalid(f"/query/total/{name}", "must be a finite number, 0 or greater", value)
    return [values.get(name, np.nan) for name in compiled.layout.metrics]


def _iteration(values: list[str], iterations: int) -> int:
    number = whole_number(values, "iteration")
    if number >= iterations:
        raise invalid("/query/iteration", f"must be less than {iterations}, the number of iterations", number)
    return number

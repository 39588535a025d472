"""A state that a query gives in full, or the beginning of a run; targets and features by name."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from app.errors import FieldError, Invalid
from app.http.query import invalid, whole_number
from app.kinds.contract.base import InvalidInput
from app.kinds.contract.engine import Query
from app.kinds.iterative.decisions.compiled import Basis
from app.kinds.iterative.decisions.snapshot import Snapshot
from app.kinds.iterative.state import State, begin


def given(basis: Basis, query: Query) -> Snapshot | State:
    """The state that a query gives; without an iteration, that of a run that has not begun.

    Raises:
        Invalid: a part is missing, unknown, twice there, or no number.
        InvalidInput: the state doesn't fit the workload.
    """
    if "iteration" in query:
        return snapshot(basis, query)
    parts = [name for name in ("allocation", "metric", "total") if name in query]
    if parts:
        raise invalid("/query/iteration", f"is required with {', '.join(parts)}", None)
    targets, features = _pairs(query, "target"), _pairs(query, "feature")
    return beginning(basis, targets, features or None, "/query/target")


def beginning(
    basis: Basis, targets: Mapping[str, float], features: Mapping[str, float] | None, pointer: str = "/targets"
) -> State:
    """A run that has reported nothing (B = 1), under its own targets and features.

    Raises:
        Invalid, InvalidInput: the workload hasn't such targets or features.
    """
    return begin(
        basis.projector,
        basis.layout.start_levels[None],
        targets=check_targets(basis, targets, pointer, basis.layout.targets.tolist()),
        features=None if features is None else [encode_features(basis, features)],
    )


def snapshot(basis: Basis, query: Query) -> Snapshot:
    """The state that a query gives: ``iteration=11&allocation=gpus:4&metric=iteration_seconds:31.5&feature=batch:128``,
    and optionally ``total=iteration_seconds:380`` (sums over the run so far) and ``target=iteration_seconds:1500``."""
    iteration = _iteration(query["iteration"], basis.layout.iterations)
    try:
        levels, metrics, features = basis.encode(
            _pairs(query, "allocation"), _pairs(query, "metric"), _pairs(query, "feature")
        )
    except InvalidInput as error:
        raise _of_query(error) from error
    totals = _by_metric(basis, query, "total") if "total" in query else basis.unknown
    targets = _by_metric(basis, query, "target") if "target" in query else basis.unknown
    return Snapshot(iteration, levels, metrics, features, totals, targets)


def encode_features(basis: Basis, features: Mapping[str, float]) -> list[float]:
    """Features by name in the layout's order.

    Raises:
        InvalidInput: unknown or missing names, or values out of bounds.
    """
    layout = basis.layout
    allocation = layout.allocation_dict(layout.start_levels)
    return layout.encode_report(allocation, dict.fromkeys(layout.metrics, 1.0), features)[2]


def check_targets(basis: Basis, targets: Mapping[str, float], pointer: str, rest: list[float]) -> list[float]:
    """Targets in the layout's order, ``rest`` where none is given.

    Raises:
        Invalid: a metric that has no target in the workload's spec, or a value that can be none.
    """
    known = [metric.name for metric in basis.layout.spec.metrics if metric.target is not None]
    for name, value in targets.items():
        if name not in known:
            raise invalid(f"{pointer}/{name}", f"no metric with a target; known: {', '.join(known) or 'none'}", value)
        if not (math.isfinite(value) and value > 0):
            raise invalid(f"{pointer}/{name}", "must be a finite number greater than 0", value)
    return [targets.get(name, other) for name, other in zip(basis.layout.metrics, rest, strict=True)]


def _by_metric(basis: Basis, query: Query, part: str) -> list[float]:
    pairs = _pairs(query, part)
    if part == "target":
        return check_targets(basis, pairs, "/query/target", basis.unknown)
    for name, value in pairs.items():
        if name not in basis.layout.metrics:
            known = ", ".join(basis.layout.metrics)
            raise invalid(f"/query/total/{name}", f"unknown name; known: {known}", value)
        if not (math.isfinite(value) and value >= 0):
            raise invalid(f"/query/total/{name}", "must be a finite number, 0 or greater", value)
    return [pairs.get(name, np.nan) for name in basis.layout.metrics]


def _iteration(values: list[str], iterations: int) -> int:
    number = whole_number(values, "iteration")
    if number >= iterations:
        raise invalid("/query/iteration", f"must be less than {iterations}, the number of iterations", number)
    return number


def _pairs(query: Query, part: str) -> dict[str, float]:
    """``name:value`` parameters by name; several may stand in one, with commas between them."""
    pairs: dict[str, float] = {}
    for text in query.get(part, ()):
        for pair in text.split(",") if "," in text else (text,):
            name, _, value = pair.rpartition(":")
            if name in pairs:
                raise invalid(f"/query/{part}/{name}", "must be given once", pair)
            try:
                pairs[name] = float(value)
            except ValueError:
                raise invalid(f"/query/{part}", "must be name:number", pair) from None
    return pairs


_PARAMETERS = {"allocation": "allocation", "metrics": "metric", "features": "feature"}


def _of_query(error: InvalidInput) -> Invalid:
    """The same, pointing at the query's parameters instead of a report's parts."""
    fields = []
    for issue in error.errors:
        _, part, *rest = issue.pointer.split("/")
        pointer = "/".join(["/query", _PARAMETERS.get(part, part), *rest])
        fields.append(FieldError(pointer, issue.message, issue.value))
    return Invalid("; ".join(f"{field.pointer}: {field.message}" for field in fields), errors=fields)

"""Decisions that are read, or taken for a state given in full; nothing here writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
import numpy as np

from app.database.base import utc_now
from app.database.engine import Database
from app.decisions import repository
from app.decisions.basis import Basis
from app.decisions.decider import Subject, begin_with, decide
from app.decisions.schemas import EncodedDecision
from app.decisions.snapshot import Snapshot, states
from app.errors import FieldError, Invalid, NotFound
from app.hot import MicroBatch
from app.kinds.base import InvalidInput
from app.kinds.iterative.state import begin

LARGEST_ITERATION = 2**31 - 1
Query = dict[str, list[str]]


def encoded(decision: dict[str, object]) -> bytes:
    """A decision as kept, in its usual order."""
    return msgspec.json.encode({name: decision.get(name) for name in EncodedDecision.__struct_fields__})


def of_run(database: Database, tenant: str, run: str, iteration: int | None) -> bytes:
    """The decision that a run's last (or ``iteration``-th) report was answered with.

    Raises:
        NotFound: no such run, or that iteration isn't reported.
    """
    with database.reading() as session:
        found = repository.of_run(session, tenant, run, iteration)
    if found is None:
        raise NotFound(f"no run {run!r}; start one with POST /runs")
    if found.decision is None:
        raise NotFound(
            f"iteration {iteration} of run {run} isn't reported; the next one to report is {found.following}"
        )
    return encoded(found.decision)


class StateDecisions:
    """Decides for states given in full; those that arrive together are decided together."""

    def __init__(self, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self._batch: MicroBatch[Basis, Snapshot] = MicroBatch(self._evaluate)

    async def decide(self, basis: Basis, query: Query) -> bytes:
        """The decision for the state that ``query`` gives; without an iteration, for a run that has not begun.

        Raises:
            Invalid: a part is missing, unknown, twice there, or no number.
            InvalidInput: the state doesn't fit the workload.
        """
        if "iteration" not in query:
            return self._first(basis, query)
        return await self._batch.submit(basis, snapshot(basis, query))

    def _first(self, basis: Basis, query: Query) -> bytes:
        given = [name for name in ("allocation", "metric", "total") if name in query]
        if given:
            raise _invalid("/query/iteration", f"is required with {', '.join(given)}", None)
        features = _pairs(query, "feature")
        state = begin(
            basis.projector,
            basis.layout.start_levels[None],
            targets=_overridden(basis, _pairs(query, "target")),
            features=[encode_features(basis, features)] if features else None,
        )
        return begin_with(basis, state, None, self._clock())[0]

    def _evaluate(self, basis: Basis, items: Sequence[Snapshot]) -> list[bytes]:
        subjects = [Subject(None, item.iteration) for item in items]
        return decide(basis, states(basis, items), subjects, self._clock())


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


def encode_features(basis: Basis, features: dict[str, float]) -> list[float]:
    """Features by name in the layout's order.

    Raises:
        InvalidInput: unknown or missing names, or values out of bounds.
    """
    layout = basis.layout
    allocation = layout.allocation_dict(layout.start_levels)
    return layout.encode_report(allocation, dict.fromkeys(layout.metrics, 1.0), features)[2]


def _overridden(basis: Basis, targets: dict[str, float]) -> list[float]:
    return check_targets(basis, targets, "/query/target", basis.layout.targets.tolist())


def check_targets(basis: Basis, targets: dict[str, float], pointer: str, rest: list[float]) -> list[float]:
    """Targets in the layout's order, ``rest`` where none is given.

    Raises:
        Invalid: a metric that has no target in the workload's spec, or a value that can be none.
    """
    known = [metric.name for metric in basis.layout.spec.metrics if metric.target is not None]
    for name, value in targets.items():
        if name not in known:
            raise _invalid(f"{pointer}/{name}", f"no metric with a target; known: {', '.join(known) or 'none'}", value)
        if not (math.isfinite(value) and value > 0):
            raise _invalid(f"{pointer}/{name}", "must be a finite number greater than 0", value)
    return [targets.get(name, other) for name, other in zip(basis.layout.metrics, rest, strict=True)]


def _by_metric(basis: Basis, query: Query, part: str) -> list[float]:
    pairs = _pairs(query, part)
    if part == "target":
        return check_targets(basis, pairs, "/query/target", basis.unknown)
    for name, value in pairs.items():
        if name not in basis.layout.metrics:
            known = ", ".join(basis.layout.metrics)
            raise _invalid(f"/query/total/{name}", f"unknown name; known: {known}", value)
        if not (math.isfinite(value) and value >= 0):
            raise _invalid(f"/query/total/{name}", "must be a finite number, 0 or greater", value)
    return [pairs.get(name, np.nan) for name in basis.layout.metrics]


def _iteration(values: list[str], iterations: int) -> int:
    number = whole_number(values, "iteration")
    if number >= iterations:
        raise _invalid("/query/iteration", f"must be less than {iterations}, the number of iterations", number)
    return number


def whole_number(values: list[str], name: str) -> int:
    """The one value of a query parameter as a number, 0 or greater."""
    text = values[0]
    if len(values) > 1:
        raise _invalid(f"/query/{name}", "must be given once", values)
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > LARGEST_ITERATION:
        raise _invalid(f"/query/{name}", "must be a whole number, 0 or greater", text)
    return int(text)


def _pairs(query: Query, part: str) -> dict[str, float]:
    """``name:value`` parameters by name; several may stand in one, with commas between them."""
    pairs: dict[str, float] = {}
    for text in query.get(part, ()):
        for pair in text.split(",") if "," in text else (text,):
            name, _, value = pair.rpartition(":")
            if name in pairs:
                raise _invalid(f"/query/{part}/{name}", "must be given once", pair)
            try:
                pairs[name] = float(value)
            except ValueError:
                raise _invalid(f"/query/{part}", "must be name:number", pair) from None
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


def _invalid(pointer: str, message: str, value: object) -> Invalid:
    return Invalid(f"{pointer}: {message}", errors=[FieldError(pointer, message, value)])

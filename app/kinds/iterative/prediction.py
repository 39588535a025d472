"""What a domain model expects of one iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import InvalidInput, invalid, of_query, pairs, whole_number
from app.kinds.contract.kind import Parameter
from app.kinds.iterative.announced import announced
from app.kinds.iterative.decisions.forecast import next_iteration
from app.kinds.iterative.decisions.query import PARTS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import begin

_PAIRS: dict[str, Any] = {"type": "array", "maxItems": 64, "items": {"type": "string"}}
PARAMETERS = (
    Parameter("allocation", "`name:value`, once per resource.", _PAIRS, ["gpus:4"], required=True),
    Parameter("feature", "`name:value`, once per feature.", _PAIRS, ["batch:128"]),
    Parameter("iteration", "Counts from 0.", {"type": "integer", "minimum": 0, "default": 0}, 0),
)


class Interval(BaseModel):
    """A prediction: mean, and the bounds that hold with probability `level` for an unseen run."""

    mean: float
    low: float
    high: float
    level: float


class Prediction(BaseModel):
    """Prediction for one iteration."""

    workload: str
    model: int = Field(description="Version of the model used.")
    allocation: dict[str, float]
    iteration: int
    features: dict[str, float]
    predicted: dict[str, Interval] = Field(description="Predicted values by metric.")
    seen: bool = Field(description="Whether allocation and features lie within the range of the samples.")


def predict(layout: Layout, table: ModelTable, query: Query) -> dict[str, Any]:
    """What an iteration of a run that is not seen yet is expected to measure: the fields of ``Prediction``.

    Raises:
        InvalidInput: unknown or missing names, values out of bounds or off the grid, an iteration beyond the last.
    """
    iteration = whole_number(query["iteration"], "iteration") if "iteration" in query else 0
    _check_iteration(iteration, layout)
    allocation, features = pairs(query, "allocation"), pairs(query, "feature")
    try:
        levels, _, encoded = layout.encode_report(allocation, dict.fromkeys(layout.metrics, 1.0), features)
    except InvalidInput as refused:
        raise of_query(refused, PARTS) from refused
    at, given = np.array(levels, np.int32), np.array(encoded)
    return {
        "allocation": layout.allocation_dict(at),
        "iteration": iteration,
        "features": features,
        "predicted": _predicted(table, layout, at, given, iteration),
        "seen": _seen(table, layout, at, given),
    }


def _check_iteration(iteration: int, layout: Layout) -> None:
    if not 0 <= iteration < layout.iterations:
        message = f"must be between 0 and {layout.iterations - 1}"
        raise invalid("/query/iteration", message, iteration)


def _predicted(
    table: ModelTable, layout: Layout, levels: NDArray[np.int32], features: NDArray[np.float64], iteration: int
) -> dict[str, Interval]:
    """What a decision would promise of that iteration, if it were the run's first, by metric."""
    projector = Projector(layout, table)
    state = begin(projector, levels[None], features=features[None])
    state = state._replace(iteration=state.iteration + iteration, upcoming=features[None, None])
    known = announced(projector, state)
    mean, low, high = next_iteration(projector, state, layout.index(levels[None]), known, np.zeros(1))
    return {
        metric: Interval(mean=float(mean[0, i]), low=float(low[0, i]), high=float(high[0, i]), level=table.level)
        for i, metric in enumerate(layout.metrics)
    }


def _seen(table: ModelTable, layout: Layout, levels: NDArray[np.int32], features: NDArray[np.float64]) -> bool:
    allocation = layout.allocations[int(layout.index(levels))]
    within = (table.seen_low <= allocation) & (allocation <= table.seen_high)
    usual = (table.feature_low <= features) & (features <= table.feature_high)
    return bool(table.informed and within.all() and usual.all())

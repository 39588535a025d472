"""Risk and outcome of runs by their targets, and predictions over the API."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.charts.text import amount_or_duration, number, probability
from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import InvalidInput, invalid, of_query, pairs, whole_number
from app.kinds.contract.kind import Parameter
from app.kinds.contract.run_outcome import DEFAULT_PROBABILITY, EndedRun, Judgement
from app.kinds.iterative.announced import announced_iterations
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.query import PARTS
from app.kinds.iterative.reasons import Forecast, next_iteration
from app.kinds.iterative.spec import ROUNDING, SECONDS, Metric
from app.kinds.iterative.state import State, begin, stack_rows, unpack

# Risk and outcome of iterative runs.
#
# A run is at risk while a target is less likely to be met than its ``probability`` (0.5 if none), or can't be met any
# more. A finished run met its targets if its sums satisfy those for the whole run, and its means those per iteration,
# over the reported iterations: stopping early is legitimate, and the reason states how many iterations ran.


def target(start: Mapping[str, Any], metric: Metric) -> float | None:
    """Return the target of a metric in its unit: that of the run's ``start``, else the workload's; None: none."""
    own: float | None = start.get("targets", {}).get(metric.name, metric.target)
    return own


def state_of(compiled: Compiled, stored: Any) -> State | None:
    """Return a run's state as a batch of one, from its ``RunState``; None if ``stored`` is None."""
    return None if stored is None else unpack(compiled.layout, stack_rows(compiled.projector, [compiled.row(stored)]))


def metrics_so_far(layout: Layout, state: State, start: Mapping[str, Any]) -> dict[str, float]:
    """Return each metric's sum over the run or, for scope "iteration", its mean, by name; empty before any report.

    ``state`` is a batch of one, ``start`` the body that started the run."""
    done = int(state.iteration[0]) - int(start.get("first_iteration", 0))
    if done < 1:
        return {}
    metrics = enumerate(layout.spec.metrics)
    return {one.name: float(state.elapsed[0, at]) / (1 if one.scope == "run" else done) for at, one in metrics}


def judge(compiled: Compiled, run: EndedRun) -> Judgement:
    """Judge a finished run by its targets. The reason has each deviation and, after an early end, the iterations."""
    layout = compiled.layout
    state = state_of(compiled, run.state)
    came_to = {} if state is None else metrics_so_far(layout, state, run.start)
    if state is None or not came_to:
        return Judgement(None, "no iteration was reported")
    missed, met = list[str](), list[str]()
    for metric in layout.spec.metrics:
        wanted = target(run.start, metric)
        if wanted is not None:
            good = metric.is_met(came_to[metric.name], wanted)
            (met if good else missed).append(_comparison_text(metric, came_to[metric.name], wanted, good=good))
    done = int(state.iteration[0])
    early = [f"after {done:,} of {layout.iterations:,} iterations"] if done < layout.iterations else []
    if not met and not missed:
        return Judgement(None, "; ".join(["no target is set", *early]))
    return Judgement(not missed, "; ".join([*missed, *met, *early]))


def risks(layout: Layout, state: State, seen: Forecast) -> list[str]:
    """Return for each of B runs the reason why it may miss a target at the decided allocation; "" if it doesn't."""
    chance, projected, excess = seen.chance[1], seen.projected[1], seen.excess[1]
    known = state.probabilities == state.probabilities  # it is not a number where none is required
    unlikely, beyond = chance < np.where(known, state.probabilities, DEFAULT_PROBABILITY), excess > ROUNDING
    if not (unlikely | beyond).any():  # nearly always, and on the way of every report
        return [""] * len(chance)
    of_run, most, judged = _columns(tuple(layout.spec.metrics))
    passed = of_run & most & (state.elapsed > state.targets + ROUNDING * np.abs(state.targets))  # a sum never falls
    over = (state.iteration >= layout.iterations)[:, None]
    unlikely &= ~over
    # without a model, or after the last report, by the projection of measurements
    beyond &= judged & np.where(over, of_run, np.isnan(chance) & (state.judged > 0)[:, None])
    flagged = passed | unlikely | beyond
    return [
        "; ".join(
            _risk(
                metric,
                float(state.targets[i, at]),
                float(state.elapsed[i, at]) if passed[i, at] else None,
                float(projected[i, at]),
                float(chance[i, at]) if unlikely[i, at] else None,
                float(state.probabilities[i, at]),
            )
            for at, metric in enumerate(layout.spec.metrics)
            if flagged[i, at]
        )
        for i in range(len(flagged))
    ]


@lru_cache
def _columns(metrics: tuple[Metric, ...]) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    return (
        np.array([metric.scope == "run" for metric in metrics]),
        np.array([metric.goal == "at_most" for metric in metrics]),
        np.array([metric.goal != "track" for metric in metrics]),
    )


def _risk(
    metric: Metric, wanted: float, elapsed: float | None, projected: float, chance: float | None, required: float
) -> str:
    """Return a text on a target at risk: exceeded by ``elapsed``, unlikely (``chance`` below ``required``), or missed
    (``projected``); ``wanted``, ``elapsed`` and ``projected`` are in the metric's unit."""
    goal = _goal(metric, wanted)
    if elapsed is not None:
        what = "has passed" if is_deadline(metric) else "is exceeded"
        return f"{goal} {what}: {amount_or_duration(elapsed, metric.unit)} so far"
    if chance is not None:
        more = "" if np.isnan(required) else f", {number(100 * required, 6)} % required"
        return f"{probability(chance)} likely to meet {goal}{more}"
    return f"projected {amount_or_duration(projected, metric.unit)}; {goal}"


def _comparison_text(metric: Metric, came_to: float, wanted: float, *, good: bool) -> str:
    """Return a text such as “finished in 31.2 s, 800 ms before the deadline of 32 s”."""
    if is_deadline(metric):
        side = "before" if good else "after"
        gap = amount_or_duration(abs(wanted - came_to), metric.unit)
        return f"finished in {amount_or_duration(came_to, metric.unit)}, {gap} {side} {_goal(metric, wanted)}"
    mean = "" if metric.scope == "run" else "mean "
    return f"{mean}{_name(metric)} {amount_or_duration(came_to, metric.unit)}; {_goal(metric, wanted)}"


def _goal(metric: Metric, wanted: float) -> str:
    if is_deadline(metric):
        return f"the deadline of {amount_or_duration(wanted, metric.unit)}"
    bound = {"at_most": "at most", "at_least": "at least", "track": "about"}[metric.goal]
    return f"the target of {bound} {amount_or_duration(wanted, metric.unit)} {_name(metric)} per {metric.scope}"


def is_deadline(metric: Metric) -> bool:
    """Whether the metric's target is an upper limit of the whole run's seconds."""
    return metric.name == SECONDS and metric.scope == "run" and metric.goal == "at_most"


def _name(metric: Metric) -> str:
    return metric.name.replace("_", " ")


# Predictions of one iteration over the API.


_PAIRS: dict[str, Any] = {"type": "array", "maxItems": 64, "items": {"type": "string"}}
PARAMETERS = (
    Parameter("allocation", "`name:value`, once per resource.", _PAIRS, ["gpus:4"], required=True),
    Parameter("feature", "`name:value`, once per feature.", _PAIRS, ["batch:128"]),
    Parameter("iteration", "Counts from 0.", {"type": "integer", "minimum": 0, "default": 0}, 0),
)


class Interval(BaseModel):
    """A prediction in the metric's unit: mean, and the bounds that hold with probability `level` for an unseen run."""

    mean: float
    low: float
    high: float
    level: float


class Prediction(BaseModel):
    """Prediction of an iteration's metrics in their units, with intervals, at an allocation."""

    workload: str
    model: int = Field(description="Version of the model used.")
    allocation: dict[str, float]
    iteration: int
    features: dict[str, float]
    predicted: dict[str, Interval] = Field(description="Predicted values by metric.")
    seen: bool = Field(description="Whether allocation and features lie within the range of the samples.")


def predict(layout: Layout, table: ModelTable, query: Query) -> dict[str, Any]:
    """Predict the metrics of an iteration of a new run from query parameters; returns the fields of ``Prediction``.

    Raises:
        InvalidInput: a name is unknown or missing, a value out of bounds or off the grid, or the iteration beyond the
            last.
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
        "predicted": _predict_metrics(table, layout, at, given, iteration),
        "seen": _within_samples(table, layout, at, given),
    }


def _check_iteration(iteration: int, layout: Layout) -> None:
    if not 0 <= iteration < layout.iterations:
        message = f"must be between 0 and {layout.iterations - 1}"
        raise invalid("/query/iteration", message, iteration)


def _predict_metrics(
    table: ModelTable, layout: Layout, levels: NDArray[np.int32], features: NDArray[np.float64], iteration: int
) -> dict[str, Interval]:
    projector = Projector(layout, table)
    state = begin(projector, levels[None], features=features[None])
    state = state._replace(iteration=state.iteration + iteration, upcoming=features[None, None])
    known = announced_iterations(projector, state)
    mean, low, high = next_iteration(projector, state, layout.index(levels[None]), known, np.zeros(1))
    return {
        metric: Interval(mean=float(mean[0, i]), low=float(low[0, i]), high=float(high[0, i]), level=table.level)
        for i, metric in enumerate(layout.metrics)
    }


def _within_samples(
    table: ModelTable, layout: Layout, levels: NDArray[np.int32], features: NDArray[np.float64]
) -> bool:
    allocation = layout.allocations[int(layout.index(levels))]
    within = (table.seen_low <= allocation) & (allocation <= table.seen_high)
    usual = (table.feature_low <= features) & (features <= table.feature_high)
    return bool(table.fitted and within.all() and usual.all())

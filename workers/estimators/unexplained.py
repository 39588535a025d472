"""What the model can't explain, said one by one: executions, iterations of an execution, and whole stages."""

from typing import Any, NamedTuple

import numpy as np

from app.charts.text import number
from workers.estimators.base import Floats, Integers
from workers.estimators.replicates import grouped_median
from workers.estimators.residuals import TAIL, Spreads

LEAST_REPORTED = float(np.log(1.5))
UNEVEN = 3.0  # a stage whose spread is so many times the typical stage's is told as a whole
ENOUGH = 8
MOST = 100


class Measured(NamedTuple):
    """Rows of one metric: names of the executions [G], execution [n], iteration [n], log metric [n], and units."""

    metric: str
    unit: str
    names: list[str]
    groups: Integers
    iterations: Integers
    logs: Floats


def unexplained(rows: Measured, spreads: Spreads) -> list[dict[str, Any]]:
    """At most ``MOST`` entries, the largest first: what (kind), where, by which factor, and the same in words.

    A factor is measured over expected; for an iteration what its own run's pace explains is taken out before.
    """
    stages, scale = _stages(rows, spreads.within)
    entries = _executions(rows, spreads) + stages + _iterations(rows, spreads.within, scale)
    return sorted(entries, key=lambda entry: -abs(float(np.log(entry["factor"]))))[:MOST]


def _executions(rows: Measured, spreads: Spreads) -> list[dict[str, Any]]:
    known = np.flatnonzero(~np.isnan(spreads.effects))
    centre = float(np.median(spreads.effects[known]))
    off = spreads.effects - centre
    limit = max(3.0 * 1.4826 * float(np.median(np.abs(off[known]))), LEAST_REPORTED)
    return [_execution(rows, int(g), float(np.exp(off[g]))) for g in known if abs(off[g]) > limit]


def _execution(rows: Measured, group: int, factor: float) -> dict[str, Any]:
    name = rows.names[group]
    text = f"execution {name!r}: {_times(factor)} the {rows.metric} that its allocation explains, throughout"
    return {"kind": "execution", "metric": rows.metric, "execution": name, "factor": _round(factor), "text": text}


def _stages(rows: Measured, within: Floats) -> tuple[list[dict[str, Any]], Floats]:
    """Stages that vary far more than the others, and the scale of the noise at each row [n]."""
    size = int(rows.iterations.max()) + 1
    by_stage = 1.4826 * grouped_median(np.abs(within), rows.iterations, size)
    counts = np.bincount(rows.iterations, minlength=size)
    known = by_stage[counts > 0]
    typical = max(float(np.median(known)), 1e-6)
    uneven = (counts >= ENOUGH) & (np.nan_to_num(by_stage) > max(UNEVEN * typical, LEAST_REPORTED / 2))
    entries = [_stage(rows, int(stage)) for stage in np.flatnonzero(uneven)]
    return entries, np.where(uneven, by_stage, typical)[rows.iterations]


def _stage(rows: Measured, stage: int) -> dict[str, Any]:
    values = np.exp(rows.logs[rows.iterations == stage])
    low, high = np.quantile(values, [0.05, 0.95])
    text = (
        f"iteration {stage}: {rows.metric} from {number(low)} to {number(high)}{rows.unit} over {len(values)} "
        "executions, far more than other iterations vary; neither allocation nor features explain it"
    )
    factor = _round(float(high / low))
    return {"kind": "stage", "metric": rows.metric, "iteration": stage, "factor": factor, "text": text}


def _iterations(rows: Measured, within: Floats, scale: Floats) -> list[dict[str, Any]]:
    beyond = np.flatnonzero(np.abs(within) > np.maximum(TAIL * scale, LEAST_REPORTED))
    return [_iteration(rows, int(i), float(np.exp(within[i]))) for i in beyond]


def _iteration(rows: Measured, row: int, factor: float) -> dict[str, Any]:
    name, iteration, value = rows.names[rows.groups[row]], int(rows.iterations[row]), float(np.exp(rows.logs[row]))
    text = (
        f"execution {name!r}, iteration {iteration}: {rows.metric} {number(value)}{rows.unit}, {_times(factor)} what "
        "its allocation and the pace of its run explain"
    )
    place = {"execution": name, "iteration": iteration, "factor": _round(factor), "text": text}
    return {"kind": "iteration", "metric": rows.metric} | place


def _times(factor: float) -> str:
    return f"{number(factor)} times"


def _round(factor: float) -> float:
    return float(f"{factor:.4g}")

"""Repeated measurements of one input, drawn together robustly: what every family is fitted on."""

from typing import NamedTuple

import numpy as np

from workers.estimators.base import Floats, Integers


class Cells(NamedTuple):
    """Distinct inputs [c, D], the median log of what was measured there [c], and by how many executions [c]."""

    X: Floats
    logs: Floats
    counts: Floats


def grouped_median(values: Floats, index: Integers, size: int) -> Floats:
    """Median of ``values`` [n] per ``index`` [n] → [size]; not a number where an index does not occur."""
    order = np.lexsort((values, index))
    sorted_values = values[order]
    counts = np.bincount(index, minlength=size)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    middles = np.full(size, np.nan)
    some = counts > 0
    low, high = starts[some] + (counts[some] - 1) // 2, starts[some] + counts[some] // 2
    middles[some] = (sorted_values[low] + sorted_values[high]) / 2
    return middles


def distinct(*columns: Floats | Integers) -> tuple[Integers, Integers]:
    """First row of each distinct combination of ``columns`` ([n] or [n, d] each), and each row's combination [n]."""
    stacked = np.column_stack([np.asarray(c, np.float64) for c in columns])
    _, first, inverse = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.intp), inverse.reshape(-1).astype(np.intp)


def collapse(X: Floats, logs: Floats, groups: Integers) -> Cells:
    """Median over executions of each execution's median, per distinct row of ``X`` [n, D].

    A run effect shifts all rows of an execution together, so an execution counts once per input, however long it ran.
    """
    first, run_cell = distinct(X, groups)
    per_run = grouped_median(logs, run_cell, len(first))
    rows, cell = distinct(X[first])
    counts = np.bincount(cell, minlength=len(rows)).astype(np.float64)
    return Cells(X[first][rows], grouped_median(per_run, cell, len(rows)), counts)


def replicate_variance(X: Floats, logs: Floats, groups: Integers) -> float:
    """Robust variance between executions at the same input; 0 when nothing was repeated."""
    first, run_cell = distinct(X, groups)
    per_run = grouped_median(logs, run_cell, len(first))
    rows, cell = distinct(X[first])
    centre = grouped_median(per_run, cell, len(rows))
    counts = np.bincount(cell, minlength=len(rows))
    repeated = counts[cell] > 1
    if not repeated.any():
        return 0.0
    correction = counts[cell][repeated] / (counts[cell][repeated] - 1)
    deviations = np.abs(per_run - centre[cell])[repeated] * np.sqrt(correction)
    return float((1.4826 * np.median(deviations)) ** 2)

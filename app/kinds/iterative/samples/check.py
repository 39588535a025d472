"""Rows of an execution against the workload's layout, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import LARGEST_NUMBER, FieldIssue, InvalidInput
from app.kinds.contract.text import plain
from app.kinds.iterative.layout import Layout

Floats = NDArray[np.float64]
ITERATION = "/iteration"


class RowIssue(NamedTuple):
    """The first error of an execution: index of its row, and the offending field."""

    row: int
    issue: FieldIssue


class Checker:
    """Checks executions of one layout: arrays [n, C] of iteration, allocation, metrics and features, C columns."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        spec = layout.spec
        self.pointers = [
            ITERATION,
            *(f"/allocation/{name}" for name in layout.resources),
            *(f"/metrics/{name}" for name in layout.metrics),
            *(f"/features/{name}" for name in layout.features),
        ]
        self._allocation = slice(1, 1 + len(layout.resources))
        self._metrics = slice(self._allocation.stop, self._allocation.stop + len(layout.metrics))
        self._features = slice(self._metrics.stop, self._metrics.stop + len(layout.features))
        self._minimum = np.array([r.minimum for r in spec.resources])
        self._step = np.array([r.step for r in spec.resources])
        self._top = np.array([r.levels - 1 for r in spec.resources])
        self._low = np.array([f.minimum for f in spec.features])
        self._high = np.array([f.maximum for f in spec.features])
        self._count = np.arange(spec.iterations, dtype=np.float64)

    @property
    def columns(self) -> int:
        """Number of columns C."""
        return len(self.pointers)

    def fault(self, data: Floats) -> RowIssue | None:
        """What is wrong with an execution, [n, C] with n ≤ the spec's iterations; None when nothing is."""
        good = np.abs(data) <= LARGEST_NUMBER  # neither are infinities, nor what is no number
        good[0, 0] &= data[0, 0] in self._count
        good[1:, 0] &= data[1:, 0] == data[0, 0] + self._count[1 : len(data)]
        good[:, 0] &= data[:, 0] < len(self._count)
        with np.errstate(invalid="ignore", over="ignore"):  # what isn't finite is refused anyway
            exact = (data[:, self._allocation] - self._minimum) / self._step
            level = np.rint(exact)
            good[:, self._allocation] &= (np.abs(exact - level) <= 1e-6) & (level >= 0) & (level <= self._top)
        good[:, self._metrics] &= data[:, self._metrics] > 0
        features = data[:, self._features]
        good[:, self._features] &= (features >= self._low) & (features <= self._high)
        if good.all():
            return None
        row, column = divmod(int(np.argmin(good)), self.columns)
        return RowIssue(row, self._issue(data, row, column))

    def _issue(self, data: Floats, row: int, column: int) -> FieldIssue:
        value = plain(data[row, column])
        if column == 0 and row and data[row, 0] == data[0, 0] + row:
            return too_many_issue(len(self._count), value)
        if column == 0:
            return iteration_issue(plain(data[0, 0] + row) if row else None, value)
        try:
            self.layout.encode_report(*self.named(data[row]))
        except InvalidInput as error:
            by_pointer = {issue.pointer: issue for issue in error.errors}
            issue = by_pointer.get(self.pointers[column], error.errors[0])
            return issue._replace(value=plain(issue.value))
        return FieldIssue(self.pointers[column], "is not accepted", value)

    def named(self, row: Floats) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """Allocation, metrics and features of one row [C] by name."""
        values = row.tolist()
        return (
            dict(zip(self.layout.resources, values[self._allocation], strict=True)),
            dict(zip(self.layout.metrics, values[self._metrics], strict=True)),
            dict(zip(self.layout.features, values[self._features], strict=True)),
        )

    def summary(self, data: Floats) -> dict[str, float]:
        """Sum of ``iteration_seconds`` over the rows of an execution; a finite number, as JSON has no other."""
        with np.errstate(over="ignore"):
            seconds = data[:, self._metrics.start + self.layout.seconds].sum()
        return {"seconds": float(min(seconds, np.finfo(np.float64).max))}


def iteration_issue(expected: int | None, value: Any) -> FieldIssue:
    """An iteration number that isn't the next one, ``expected``; None: of the first, which may be any of the spec's."""
    if expected is None:
        return FieldIssue(ITERATION, "must be a whole number from 0 to less than the workload's iterations", value)
    return FieldIssue(ITERATION, f"must be {expected}: iterations count up without gaps, in one block", value)


def too_many_issue(iterations: int, value: Any) -> FieldIssue:
    """An execution longer than the workload's."""
    return FieldIssue(ITERATION, f"must be less than the workload's {iterations} iterations", value)


def table(rows: Sequence[Sequence[float]], columns: int) -> Floats:
    """Rows as an array, [n, columns]."""
    return np.array(rows, dtype=np.float64).reshape(len(rows), columns)

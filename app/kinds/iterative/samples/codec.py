"""Samples of kind ``iterative``: an execution is a table of iterations."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from app.database.tables import Execution
from app.kinds.contract.reading import Sound, tabular
from app.kinds.contract.samples import Export, Format
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.samples.check import Checker, table
from app.kinds.iterative.samples.csv import CsvReader, column_names
from app.kinds.iterative.samples.json import JsonReader, NdjsonReader
from app.samples.schemas import ExecutionRead, Report


class IterativeShelf:
    """Executions as float64, little-endian, [iterations, C]: iteration, allocation, metrics, features."""

    formats: ClassVar[Mapping[str, Format]] = {
        "application/json": Format(lambda shelf, _: JsonReader(shelf.checker), "json", "json"),
        "application/x-ndjson": Format(lambda shelf, _: NdjsonReader(shelf.checker), "upload", "json"),
        "text/csv": Format(lambda shelf, _: CsvReader(shelf.checker), "upload", "short"),
    }
    exports: ClassVar[Mapping[str, Export]] = {
        "text/csv": Export(lambda shelf: shelf.csv_head(), lambda shelf, execution: shelf.csv_rows(execution))
    }
    tells_reports = True

    def __init__(self, layout: Layout) -> None:
        self.checker = Checker(layout)

    def unpacked(self, data: bytes) -> NDArray[np.float64]:
        """An execution's table, [iterations, C]."""
        return np.frombuffer(data, "<f8").reshape(-1, self.checker.columns)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Its seconds."""
        return self.checker.summary(self.unpacked(data))

    def read(self, execution: Execution, *, reports: bool) -> ExecutionRead:
        """An execution as answered; with every iteration if asked."""
        return ExecutionRead(
            execution=execution.name,
            source=execution.source,
            iterations=execution.iterations,
            created_at=execution.created_at,
            reports=[self._report(values) for values in self.unpacked(execution.data)] if reports else None,
            **(execution.summary or {}),
        )

    def _report(self, values: NDArray[np.float64]) -> Report:
        allocation, metrics, features = self.checker.named(values)
        return Report(iteration=int(values[0]), allocation=allocation, metrics=metrics, features=features)

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]]) -> Sound | None:
        """One row per report."""
        if not reports:
            return None
        layout = self.checker.layout
        parts = [(layout.resources, "allocation"), (layout.metrics, "metrics"), (layout.features, "features")]
        rows = [
            [float(iteration), *(float(report[part][name]) for names, part in parts for name in names)]
            for iteration, report in enumerate(reports)
        ]
        data = table(rows, self.checker.columns)
        return tabular(run, 0, data, self.checker.summary(data))

    def csv_head(self) -> str:
        """The header of an export."""
        return ",".join(column_names(self.checker.layout)) + "\n"

    def csv_rows(self, execution: Execution) -> Iterator[str]:
        """The rows of an execution."""
        name = _cell(execution.name)
        for values in self.unpacked(execution.data).tolist():
            yield f"{name},{','.join(map(_number, values))}\n"


def _cell(text: str) -> str:
    """A cell, quoted where need be."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([text])
    return out.getvalue()


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")

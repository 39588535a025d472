"""Samples of kind ``iterative``: an execution is a table of iterations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.csv_cells import line
from app.kinds.contract.json_samples import JsonReader, NdjsonReader
from app.kinds.contract.reading import Sample, tabular
from app.kinds.contract.samples import Export, Format, Stored
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.samples.check import Checker, table
from app.kinds.iterative.samples.csv import CsvReader, column_names
from app.kinds.iterative.samples.json import SampleReader
from app.kinds.iterative.samples.schemas import (
    CSV_EXAMPLE,
    JSON_SCHEMA,
    NDJSON_SCHEMA,
    SAMPLE_EXAMPLE,
    ExecutionRead,
    Report,
)


class IterationSamples:
    """Executions as float64, little-endian, [iterations, C]: iteration, allocation, metrics, features."""

    formats: ClassVar[Mapping[str, Format]] = {
        "application/json": Format(
            lambda codec, _: JsonReader(SampleReader(codec.checker).sample),
            "json",
            "json",
            schema=JSON_SCHEMA,
            example={"samples": [SAMPLE_EXAMPLE]},
        ),
        "application/x-ndjson": Format(
            lambda codec, _: NdjsonReader(SampleReader(codec.checker).sample), "upload", "json", schema=NDJSON_SCHEMA
        ),
        "text/csv": Format(lambda codec, _: CsvReader(codec.checker), "upload", "short", example=CSV_EXAMPLE),
    }
    exports: ClassVar[Mapping[str, Export]] = {
        "text/csv": Export(lambda codec: codec.csv_head(), lambda codec, execution: codec.csv_rows(execution))
    }
    tells_reports = True

    def __init__(self, layout: Layout) -> None:
        self.checker = Checker(layout)

    def unpacked(self, data: bytes) -> NDArray[np.float64]:
        """An execution's table, [iterations, C]."""
        return np.frombuffer(data, "<f8").reshape(-1, self.checker.columns)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Sum of an execution's seconds."""
        return self.checker.summary(self.unpacked(data))

    def read(self, execution: Stored, *, reports: bool) -> ExecutionRead:
        """An execution as answered; with every iteration if asked."""
        return ExecutionRead(
            kind="iterative",
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

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:
        """One row per report, numbered from ``first`` on."""
        if not reports:
            return None
        layout = self.checker.layout
        parts = [(layout.resources, "allocation"), (layout.metrics, "metrics"), (layout.features, "features")]
        rows = [
            [float(iteration), *(float(report[part][name]) for names, part in parts for name in names)]
            for iteration, report in enumerate(reports, start=first)
        ]
        data = table(rows, self.checker.columns)
        return tabular(run, 0, data, self.checker.summary(data))

    def csv_head(self) -> str:
        """The header of an export."""
        return ",".join(column_names(self.checker.layout)) + "\n"

    def csv_rows(self, execution: Stored) -> Iterator[str]:
        """The rows of an execution."""
        name = line([execution.name]).removesuffix("\n")
        for values in self.unpacked(execution.data).tolist():
            yield f"{name},{','.join(map(_number, values))}\n"


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")

"""A ready-made sample codec: an execution is the reports of one run, whose fields are numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.json_samples import MALFORMED, JsonReader, NdjsonReader, malformed, repeated
from app.kinds.contract.reading import Refused, Sample, tabular
from app.kinds.contract.samples import ExecutionBase, Export, Format, Stored
from app.kinds.contract.text import name_issue, plain
from app.kinds.simulated.layout import NumberedLayout

JSON, NDJSON = "application/json", "application/x-ndjson"
_SAMPLE: dict[str, Any] = {
    "type": "object",
    "required": ["execution", "reports"],
    "properties": {
        "execution": {"type": "string", "minLength": 1, "maxLength": 255},
        "reports": {"type": "array", "minItems": 1, "items": {"type": "object"}},
    },
}
_SAMPLES: dict[str, Any] = {
    "type": "object",
    "required": ["samples"],
    "properties": {"samples": {"type": "array", "items": _SAMPLE}},
}


class SampleBody(msgspec.Struct, forbid_unknown_fields=True):
    """An execution: its identifier, and its reports in order."""

    execution: str
    reports: list[dict[str, Any]]


_sample = msgspec.json.Decoder(SampleBody)


class ReportSamples:
    """Executions as float64, little-endian, [n, C]: a row per report, a column per field. See ``SampleCodec``.

    A kind's own sets ``report`` and ``execution``, its models; ``execution`` has the reports as ``reports``.
    """

    report: ClassVar[type[BaseModel]]
    execution: ClassVar[type[ExecutionBase]]
    formats: ClassVar[Mapping[str, Format]] = {
        JSON: Format(lambda codec, _: JsonReader(codec.sample), "json", "json", schema=_SAMPLES),
        NDJSON: Format(lambda codec, _: NdjsonReader(codec.sample), "upload", "json"),
    }
    exports: ClassVar[Mapping[str, Export]] = {
        NDJSON: Export(lambda _: "", lambda codec, execution: codec.as_json(execution))
    }
    tells_reports = True

    def __init__(self, layout: NumberedLayout) -> None:
        self.layout = layout

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """What each column is, [C]."""
        return tuple(name for name in self.report.model_fields if name != "kind")

    @staticmethod
    def example(executions: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, bytes]:
        """Reports by execution, in every format."""
        each = [json.dumps({"execution": name, "reports": list(reports)}) for name, reports in executions.items()]
        return {JSON: f'{{"samples": [{", ".join(each)}]}}'.encode(), NDJSON: "\n".join(each).encode()}

    def unpacked(self, data: bytes) -> NDArray[np.float64]:
        """An execution's table, [n, C]."""
        return np.frombuffer(data, "<f8").reshape(-1, len(self.fields))

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Sum of an execution's seconds."""
        return {"seconds": self.layout.iteration_seconds * len(self.unpacked(data))}

    def read(self, execution: Stored, *, reports: bool) -> ExecutionBase:
        """An execution as answered; with every report if asked."""
        return self.execution.model_validate(
            {
                "kind": self.report.model_fields["kind"].default,
                "execution": execution.name,
                "source": execution.source,
                "iterations": execution.iterations,
                "created_at": execution.created_at,
                "reports": self._reports(execution.data) if reports else None,
                **(execution.summary or {}),
            }
        )

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """One row per report."""
        return self._sample(run, 0, [self.report.model_validate(report) for report in reports]) if reports else None

    def sample(self, data: bytes | msgspec.Raw, number: int) -> Sample | Refused:
        """One execution out of its JSON."""
        try:
            body = _sample.decode(data)
        except MALFORMED as error:
            return malformed(bytes(data), number, error)
        twice = repeated(data, 2 + sum(map(len, body.reports)))
        issue = name_issue(body.execution) or twice or self._length_issue(len(body.reports))
        if issue is not None:
            return Refused(body.execution, number, issue)
        reports = []
        for index, fields in enumerate(body.reports):
            try:
                report = self.report.model_validate(fields, strict=True)
                self.layout.action_of(report)
            except (ValidationError, InvalidInput) as error:
                issue = _issue(error)
                issue = issue._replace(pointer=f"/reports/{index}{issue.pointer}", value=plain(issue.value))
                return Refused(body.execution, number, issue)
            reports.append(report)
        return self._sample(body.execution, number, reports)

    def _length_issue(self, count: int) -> FieldIssue | None:
        if 1 <= count <= self.layout.iterations:
            return None
        return FieldIssue("/reports", f"must be 1 to {self.layout.iterations}, the workload's iterations", count)

    def _sample(self, name: str, line: int, reports: Sequence[BaseModel]) -> Sample:
        table = np.array([[float(getattr(report, field)) for field in self.fields] for report in reports])
        return tabular(name, line, table, {"seconds": self.layout.iteration_seconds * len(table)})

    def _reports(self, data: bytes) -> list[dict[str, float]]:
        return [dict(zip(self.fields, row, strict=True)) for row in self.unpacked(data).tolist()]

    def as_json(self, execution: Stored) -> Iterator[str]:
        """An execution as a line of JSON."""
        yield json.dumps({"execution": execution.name, "reports": self._reports(execution.data)}) + "\n"


def _issue(error: ValidationError | InvalidInput) -> FieldIssue:
    if isinstance(error, InvalidInput):
        return error.errors[0]
    first = error.errors(include_url=False)[0]
    return FieldIssue("".join(f"/{part}" for part in first["loc"]), first["msg"], first["input"])

"""JSON: ``{"execution": "…", "reports": [{"allocation": …, "metrics": …, "features": …}, …]}``.

As ``application/x-ndjson`` one such sample per line; as ``application/json`` all of them in ``{"samples": […]}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.nesting import TOO_DEEP, deep_place
from app.kinds.contract.reading import Refused, Sample, tabular
from app.kinds.contract.text import name_issue, plain
from app.kinds.iterative.samples.check import Checker, iteration_issue, table, too_many_issue


class SampleReport(msgspec.Struct, forbid_unknown_fields=True):
    """What one iteration used and measured; its number may be left out."""

    allocation: dict[str, float]
    metrics: dict[str, float]
    features: dict[str, float] = {}
    iteration: int | None = None


class SampleBody(msgspec.Struct, forbid_unknown_fields=True):
    """An execution: its identifier, and its reports in order."""

    execution: str
    reports: list[SampleReport]


class Samples(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``application/json``."""

    samples: list[msgspec.Raw]


MALFORMED = (msgspec.DecodeError, UnicodeError, RecursionError)
_sample = msgspec.json.Decoder(SampleBody)
_samples = msgspec.json.Decoder(Samples)


class NdjsonReader:
    """Reads one execution per line."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order; blank lines are skipped."""
        before = 0
        for block in blocks:
            lines = block.split(b"\n")
            for number, line in enumerate(lines, start=before + 1):
                if line and not line.isspace():
                    yield self.sample(line, number)
            before += len(lines)

    def sample(self, data: bytes | msgspec.Raw, number: int) -> Sample | Refused:
        """One execution out of its JSON."""
        try:
            sample = _sample.decode(data)
        except MALFORMED as error:
            return Refused(_guessed_name(bytes(data)), number, _issue(bytes(data), error))
        return self._checked(sample, number)

    def _checked(self, sample: SampleBody, number: int) -> Sample | Refused:
        issue = name_issue(sample.execution) or self._shape_issue(sample)
        if issue is not None:
            return Refused(sample.execution, number, issue)
        layout = self._checker.layout
        rows = [
            [
                float(index if report.iteration is None else report.iteration),
                *(report.allocation[name] for name in layout.resources),
                *(report.metrics[name] for name in layout.metrics),
                *(report.features[name] for name in layout.features),
            ]
            for index, report in enumerate(sample.reports)
        ]
        data = table(rows, self._checker.columns)
        fault = self._checker.fault(data)
        if fault is None:
            return tabular(sample.execution, number, data, self._checker.summary(data))
        return Refused(sample.execution, number, _at_report(fault.row, fault.issue))

    def _shape_issue(self, sample: SampleBody) -> FieldIssue | None:
        layout = self._checker.layout
        if not sample.reports:
            return FieldIssue("/reports", "must hold at least one report", [])
        if len(sample.reports) > layout.iterations:
            return too_many_issue(layout.iterations, len(sample.reports))
        for index, report in enumerate(sample.reports):
            issue = (
                _names_issue("allocation", layout.resources, report.allocation)
                or _names_issue("metrics", layout.metrics, report.metrics)
                or _names_issue("features", layout.features, report.features)
                or _number_issue(index, report.iteration)
            )
            if issue is not None:
                return _at_report(index, issue)
        return None


class JsonReader(NdjsonReader):
    """Reads a whole body at once; its size is bounded by the caller."""

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order.

        Raises:
            InvalidInput: the body isn't JSON, or has no list ``samples``.
        """
        body = b"\n".join(blocks)
        try:
            samples = _samples.decode(body).samples
        except MALFORMED as error:
            issue = _issue(body, error)
            detail = f"{issue.pointer or 'body'}: {issue.message}"
            raise InvalidInput([issue], detail) from error
        for number, raw in enumerate(samples, start=1):
            yield self.sample(raw, number)


def _names_issue(part: str, names: list[str], given: Mapping[str, float]) -> FieldIssue | None:
    if len(given) == len(names) and all(name in given for name in names):
        return None
    for name, value in given.items():
        if name not in names:
            return FieldIssue(f"/{part}/{name}", f"unknown name; known: {', '.join(names) or 'none'}", plain(value))
    missing = next(name for name in names if name not in given)
    return FieldIssue(f"/{part}/{missing}", "is missing", None)


def _number_issue(index: int, given: int | None) -> FieldIssue | None:
    return None if given is None or given == index else iteration_issue(index, given)


def _at_report(index: int, issue: FieldIssue) -> FieldIssue:
    return issue._replace(pointer=f"/reports/{index}{issue.pointer}")


def _issue(data: bytes, error: Exception) -> FieldIssue:
    """What a decoder refused; NaN and infinities, which JSON hasn't but Python writes, are named by their field."""
    place = deep_place(data)
    if place is not None:
        return FieldIssue(place, TOO_DEEP, None)
    try:
        document = json.loads(data)
    except ValueError:
        return FieldIssue("", f"malformed JSON: {error}", None)
    found = _not_finite(document, "")
    if found is not None:
        return FieldIssue(found[0], "must be a finite number", plain(found[1]))
    message, _, path = str(error).partition(" - at `$")
    return FieldIssue(_pointer(path.rstrip("`")), message, None)


def _not_finite(value: Any, pointer: str) -> tuple[str, float] | None:
    if isinstance(value, float) and value - value != 0:
        return pointer, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, item in items if (found := _not_finite(item, f"{pointer}/{key}"))), None)


def _pointer(path: str) -> str:
    """``.reports[0].metrics`` as a JSON pointer."""
    return path.replace("[...]", "").replace("[", "/").replace("]", "").replace(".", "/")


def _guessed_name(data: bytes) -> str:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    name = document.get("execution") if isinstance(document, dict) else None
    return name if isinstance(name, str) else ""

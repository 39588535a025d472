"""JSON: ``{"execution": "…", "reports": [{"allocation": …, "metrics": …, "features": …}, …]}``.

As ``application/x-ndjson`` one such sample per line; as ``application/json`` all of them in ``{"samples": […]}``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.kinds.contract.inputs import FieldIssue
from app.kinds.contract.json_samples import MALFORMED, malformed, repeated
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


_sample = msgspec.json.Decoder(SampleBody)


class SampleReader:
    """Reads one execution out of its JSON."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def sample(self, data: bytes | msgspec.Raw, number: int) -> Sample | Refused:
        """One execution out of its JSON."""
        try:
            sample = _sample.decode(data)
        except MALFORMED as error:
            return malformed(bytes(data), number, error)
        twice = repeated(data, _members(sample))
        return self._checked(sample, number) if twice is None else Refused(sample.execution, number, twice)

    def _checked(self, sample: SampleBody, number: int) -> Sample | Refused:
        issue = name_issue(sample.execution) or self._shape_issue(sample)
        if issue is not None:
            return Refused(sample.execution, number, issue)
        layout, first = self._checker.layout, _first(sample)
        rows = [
            [
                float(first + index),
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
        first = _first(sample)
        if not 0 <= first < layout.iterations:
            return _at_report(0, iteration_issue(None, first))
        if len(sample.reports) > layout.iterations - first:
            return too_many_issue(layout.iterations, first + len(sample.reports) - 1)
        for index, report in enumerate(sample.reports):
            issue = (
                _names_issue("allocation", layout.resources, report.allocation)
                or _names_issue("metrics", layout.metrics, report.metrics)
                or _names_issue("features", layout.features, report.features)
                or _number_issue(first + index, report.iteration)
            )
            if issue is not None:
                return _at_report(index, issue)
        return None


def _members(sample: SampleBody) -> int:
    """How many members its objects had, as far as is known."""
    given = [len(one.allocation) + len(one.metrics) + len(one.features) for one in sample.reports]
    optional = [bool(one.features) + (one.iteration is not None) for one in sample.reports]
    return 2 + 2 * len(given) + sum(given) + sum(optional)


def _names_issue(part: str, names: list[str], given: Mapping[str, float]) -> FieldIssue | None:
    if len(given) == len(names) and all(name in given for name in names):
        return None
    for name, value in given.items():
        if name not in names:
            return FieldIssue(f"/{part}/{name}", f"unknown name; known: {', '.join(names) or 'none'}", plain(value))
    missing = next(name for name in names if name not in given)
    return FieldIssue(f"/{part}/{missing}", "is missing", None)


def _first(sample: SampleBody) -> int:
    return sample.reports[0].iteration or 0


def _number_issue(expected: int, given: int | None) -> FieldIssue | None:
    return None if given is None or given == expected else iteration_issue(expected, given)


def _at_report(index: int, issue: FieldIssue) -> FieldIssue:
    return issue._replace(pointer=f"/reports/{index}{issue.pointer}")

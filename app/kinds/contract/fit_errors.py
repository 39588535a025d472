"""How far families of domain models were off on executions that were held out, as a model's report tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.charts.figure import Figure
from app.charts.ranking import Ranked, ranking

TOLD = "Mean absolute error on executions that were held out, as a share; the coloured one was chosen."


def errors(report: Mapping[str, Any]) -> Iterator[Figure]:
    """A bar for each candidate of which the error is known, the best first; nothing where there is none."""
    candidates: Sequence[Any] = report.get("candidates", ())
    found = sorted((one for one in candidates if one.get("mape") is not None), key=lambda one: one["mape"])
    if found:
        chosen = report.get("family")
        ranked = [
            Ranked(
                one["family"].replace("_", " "), one["mape"], chosen=bool(one.get("chosen", one["family"] == chosen))
            )
            for one in found
        ]
        yield ranking("Error of what was fitted, beside alternatives", "error", ranked, TOLD, ".1~%")

"""A forecast as a picture: what came of late in each series, and what is expected, with its band.

``python -m workers.evaluation.report.forecast FILE`` draws it from a forecast as the API answers with it, read from
standard input: ``steward forecast --plot`` runs that.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.charts.figure import layer, quantity
from app.charts.text import percent
from workers.evaluation.report import plot
from workers.evaluation.report.charts import WIDTH, figure, layers
from workers.evaluation.report.document import document
from workers.evaluation.report.markup import element, joined, section, table
from workers.evaluation.report.wording import number

Json = dict[str, Any]
HEIGHT = 160
DONE, REFUSED = 0, 1


def drawn(answer: Json) -> list[tuple[str, str, Json]]:
    """Heading, caption and chart of every series."""
    names = dict.fromkeys(row["series"] for row in answer["rows"])
    band = f"shaded: {percent(answer['level'], 0)} intervals; times are UTC"
    return [(name, f"{name}: what came, and what is expected; {band}", _chart(answer, name)) for name in names]


def _chart(answer: Json, series: str) -> Json:
    came = [row for row in answer["recent"] if row["series"] == series]
    rows = [row for row in answer["rows"] if row["series"] == series]
    at = {"field": "time", "type": "temporal", "title": "UTC", "axis": {"grid": False}, "scale": {"type": "utc"}}
    return layers(
        layer("line", "measured", came, {"x": at, "y": quantity("count", "count")}),
        layer("area", "awaited", rows, {"x": at, "y": quantity("low", "count"), "y2": {"field": "high"}}),
        layer("line", "decided", rows, {"x": at, "y": quantity("mean", "count")}, point=True),
        width=WIDTH,
        height=HEIGHT,
    )


def page(answer: Json) -> str:
    """The whole document."""
    parts = [section(name, figure(chart, caption)) for name, caption, chart in drawn(answer)]
    head = ["series", "from", "horizon (s)", "mean", "median", "low", "high", "by"]
    rows = [
        [row["series"], row["time"], *(number(row[name]) for name in ("horizon_seconds", *head[3:-1])), row["family"]]
        for row in answer["rows"]
    ]
    return document(title(answer), joined([element("h1", title(answer)), *parts, section("Rows", table(head, rows))]))


def title(answer: Json) -> str:
    """What is forecast."""
    return f"Forecast of {answer['workload']} by model {answer['model']}"


def main(arguments: Sequence[str]) -> int:
    """Draw what standard input holds; the exit status."""
    answer, (file,) = json.load(sys.stdin), [name for name in arguments if name != "--"]
    try:
        plot.write(Path(file), lambda: page(answer), lambda: plot.stacked(title(answer), drawn(answer)))
    except (OSError, ValueError) as error:
        print(f"{file}: {error}", file=sys.stderr)
        return REFUSED
    return DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

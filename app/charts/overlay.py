"""Charts of several runs on shared axes, made of the charts that a kind draws of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from app.charts.figures import Figure, Json, colour_channel, layer, layer_charts, tips
from app.charts.timeline import time

TOLD = "Colour and dashes tell the runs apart."
DASHES: Sequence[Sequence[int]] = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [4, 2, 1, 2])
"""Dashes of the lines of five runs, for those who can't tell the colours apart."""
AT = "at"
"""Field of charts over time in seconds, whose axis depends on the data."""


def overlay(figures: Mapping[str, Figure]) -> Figure | None:
    """Lay the lines of figures over one another; None if one of them has no line, or there is none.

    ``figures``: the same chart of several runs by label. Bands and other marks around the lines are left out; a target
    that is the same in all of them is kept.
    """
    lines = {label: _lines(figure) for label, figure in figures.items()}
    if not lines or not all(lines.values()):
        return None
    first = next(iter(figures.values()))
    pattern = next(iter(lines.values()))[0]
    x, y = (dict(pattern["encoding"][axis]) for axis in ("x", "y"))
    several = any(len({row.get("name") for one in marks for row in _rows(one)}) > 1 for marks in lines.values())
    field = x["field"]  # pages share cursor and zoom between charts by it
    rows = [
        {"run": label, "name": f"{label}: {row['name']}" if several and "name" in row else label}
        | {field: row[one["encoding"]["x"]["field"]], "value": row[one["encoding"]["y"]["field"]]}
        for label, marks in lines.items()
        for one in marks
        for row in _rows(one)
    ]
    names = list(dict.fromkeys(row["name"] for row in rows))
    if field == AT:
        x = time([row[AT] for row in rows])
    encoding: Json = {"x": x, "y": {**y, "field": "value"}, "color": colour_channel("name", names)}
    dashes = dict(zip(lines, DASHES, strict=False))
    run_of = {row["name"]: row["run"] for row in rows}
    scale = {"domain": names, "range": [dashes[run_of[name]] for name in names]}
    encoding["strokeDash"] = {**encoding["color"], "scale": scale}  # one legend for both
    across, up = "seconds" if field == AT else str(x.get("title")), str(y.get("title"))
    encoding["tooltip"] = tips(name="of", value=up)  # of x pages tell at the pointer
    mark = {"interpolate": pattern["mark"]["interpolate"]} if "interpolate" in pattern["mark"] else {}
    if 1 in Counter(row["name"] for row in rows).values():  # of which there is no line
        mark["point"] = True
    spec = layer_charts(layer("line", "series", rows, encoding, **mark), _common_target(figures))
    table = [[row["name"], row[field], row["value"]] for row in rows]
    return Figure(first.title, TOLD, spec, ["of", across, up], table)


def _lines(figure: Figure) -> list[Json]:
    """The figure's layers of lines over two quantities, without dashed ones, which are projections."""
    results = [one for one in figure.spec.get("layer", ()) if _mark(one) == "line" and _quantities(one)]
    return [one for one in results if "strokeDash" not in one["mark"]]


def _mark(one: Json) -> str:
    mark = one.get("mark", "")
    return str(mark.get("type", "") if isinstance(mark, Mapping) else mark)


def _quantities(one: Json) -> bool:
    channels = [one.get("encoding", {}).get(axis, {}) for axis in ("x", "y")]
    return bool(_rows(one)) and all(c.get("type") == "quantitative" and "field" in c for c in channels)


def _rows(one: Json) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = one.get("data", {}).get("values", ())
    return rows


def _common_target(figures: Mapping[str, Figure]) -> Json:
    """The layer of a target, if all figures have the same; else empty."""
    results = [
        [one for one in figure.spec.get("layer", ()) if _mark(one) == "rule" and one["mark"].get("style") == "target"]
        for figure in figures.values()
    ]
    same = all(one == results[0] for one in results)
    return dict(results[0][0]) if same and results[0] else {}

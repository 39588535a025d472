"""Plot of a run as an image or HTML file, drawn offline by Vega-Lite, if ``vl-convert-python`` is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .governed import Governed
from .row import Row
from .wishes import Misuse

SUFFIXES = (".png", ".svg", ".html")
WIDTH, HEIGHT, SCALE = 720, 150, 1.5
MEASURED, EXPECTED, TARGET = "#0b7285", "#0b728533", "#c92a2a"
Json = dict[str, Any]


def check(file: Path | None) -> Path | None:
    """Check that a plot can be written to ``file`` and return it; None for None.

    Raises:
        Misuse: its suffix isn't supported, its folder doesn't exist, or the drawing package isn't installed.
    """
    if file is None:
        return None
    if file.suffix.lower() not in SUFFIXES:
        raise Misuse(f"--plot {file}: one of {', '.join(SUFFIXES)} is accepted")
    if not file.parent.is_dir():
        raise Misuse(f"--plot {file}: folder {file.parent} does not exist")
    if find_spec("vl_convert") is None:
        raise Misuse(f"--plot {file}: plots need vl-convert-python: pip install vl-convert-python")
    return file


def draw(governed: Governed, file: Path, deadline: float | None) -> None:
    """Write a run's plot as PNG, SVG or HTML, by the suffix of ``file``; raises OSError if it can't be written.

    ``deadline``: seconds from the command's start; None: there is none.
    """
    import vl_convert

    spec = definition(governed, deadline)
    if file.suffix.lower() == ".png":
        file.write_bytes(vl_convert.vegalite_to_png(spec, scale=SCALE))
    elif file.suffix.lower() == ".svg":
        file.write_text(vl_convert.vegalite_to_svg(spec))
    else:
        file.write_text(vl_convert.vegalite_to_html(spec, bundle=True))


def definition(governed: Governed, deadline: float | None) -> Json:
    """Vega-Lite definition of a run's plot: predicted and measured seconds, resources, time to the deadline."""
    rows = governed.rows
    panels = [_panel("seconds per iteration; shaded: as predicted", _band(rows), _line([row.seconds for row in rows]))]
    for resource in governed.spec["resources"]:
        values = [row.allocation[resource["name"]] for row in rows]
        title = f"{resource['name']}, {resource['unit']}" if resource.get("unit") else resource["name"]
        panels.append(_panel(title, _line(values, interpolate="step-after")))
    passed = [sum(row.seconds for row in rows[: number + 1]) for number in range(len(rows))]
    panels.append(_panel("seconds gone by; dashed: the deadline", _line(passed), _rule(deadline)))
    schema = "https://vega.github.io/schema/vega-lite/v6.json"
    return {"$schema": schema, "vconcat": panels, "config": {"view": {"stroke": None}, "title": {"anchor": "start"}}}


def _panel(title: str, *layers: Json) -> Json:
    return {"title": title, "width": WIDTH, "height": HEIGHT, "layer": [one for one in layers if one]}


def _x() -> Json:
    return {"field": "iteration", "type": "quantitative", "title": "iteration", "axis": {"tickMinStep": 1}}


def _y(field: str) -> Json:
    return {"field": field, "type": "quantitative", "title": None}


def _line(values: list[float], **mark: str) -> Json:
    data = [{"iteration": number, "value": value} for number, value in enumerate(values)]
    return {
        "data": {"values": data},
        "mark": {"type": "line", "color": MEASURED, "point": {"color": MEASURED}, **mark},
        "encoding": {"x": _x(), "y": _y("value")},
    }


def _band(rows: list[Row]) -> Json:
    data = [{"iteration": row.index, "low": row.low, "high": row.high} for row in rows if row.low is not None]
    encoding = {"x": _x(), "y": _y("low"), "y2": {"field": "high"}}
    return {"data": {"values": data}, "mark": {"type": "area", "color": EXPECTED}, "encoding": encoding} if data else {}


def _rule(value: float | None) -> Json:
    mark = {"type": "rule", "color": TARGET, "strokeDash": [6, 4]}
    data = {"values": [{"value": value}]}
    return {} if value is None else {"data": data, "mark": mark, "encoding": {"y": _y("value")}}

"""Plots that a kind describes as plain values: reports draw them, whatever the kind.

A *plot* has ``heading``, ``caption``, ``form``, two axes ``x`` and ``y``, and ``panels``, one below the other:

- ``lines``, ``steps`` and ``areas`` (stacked): a panel has ``name`` (may be empty) and ``series``, each with ``name``
  and equally long ``x`` and ``y``; what is None in ``y`` is left out. A line that only some panels have keeps its
  colour. A line or steps with ``low`` and ``high`` have a band.
- ``tiles``: side by side; a panel has ``name`` and ``cells``, each with ``x`` and ``y``, the names of its column and of
  its row, ``name``, which gives the colour, and ``text``. The plot's ``columns`` and ``rows`` are in their order.

An axis has a ``title``; ``log``, ``share`` (told in per cent), ``zero`` (begins there) and ``domain`` where they hold.
What is called as the plot's ``neutral`` says is grey, and comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.charts.figures import layer
from workers.evaluation.report.charts import WIDTH, layers
from workers.evaluation.report.schedules import COLOURS

Json = dict[str, Any]
DASHES = ([1, 0], [7, 3], [2, 2], [10, 3, 2, 3], [4, 4], [1, 3])
"""Tell lines apart where there are no colours, in print."""
NEUTRAL = "#dee2e6"
HEIGHT, TILE, TICKS = 170, 34, 8


def drawn(plots: Sequence[Json]) -> list[tuple[str, str, Json]]:
    """Heading, caption and chart of each that has something to show."""
    charts = [(plot["heading"], plot["caption"], FORMS[plot["form"]](plot)) for plot in plots]
    return [(heading, caption, chart) for heading, caption, chart in charts if chart is not None]


def _lined(plot: Json) -> Json | None:
    panels = [panel for panel in plot["panels"] if panel["series"]]
    if not panels:
        return None
    names = list(dict.fromkeys(series["name"] for panel in panels for series in panel["series"]))
    charts = [_panel(plot, panel, names) for panel in panels]
    return charts[0] if len(charts) == 1 else {"vconcat": charts}


def _panel(plot: Json, panel: Json, names: Sequence[str]) -> Json:
    rows = [
        {"series": series["name"], "place": place, "x": x, "y": y}
        for place, series in enumerate(panel["series"])
        for x, y in zip(series["x"], series["y"], strict=True)
        if y is not None
    ]
    x, y = _axis("x", plot["x"]), _axis("y", plot["y"])
    encoding = {"x": x, "y": y, "color": _colour(names, plot.get("neutral"))}
    shape = "linear" if plot["form"] == "lines" else "step-after"
    if plot["form"] == "areas":
        more = {"y": {**y, "stack": "zero"}, "order": {"field": "place", "type": "quantitative"}}
        shown = [layer("area", "block", rows, {**encoding, **more}, interpolate=shape, stroke="white", strokeWidth=0.3)]
    else:
        scale = {"domain": list(names), "range": [DASHES[i % len(DASHES)] for i in range(len(names))]}
        dash = {"field": "series", "type": "nominal", "title": None, "scale": scale, "legend": _legend(names)}
        lines = layer("line", "series", rows, {**encoding, "strokeDash": dash}, interpolate=shape)
        shown = [*_bands(panel, shape, (x, y), _chosen(names, plot.get("neutral"))), lines]
    return layers(*shown, width=WIDTH, height=HEIGHT, **_titled(panel["name"]))


def _titled(name: str) -> Json:
    return {"title": {"text": name, "fontSize": 11, "fontWeight": "normal"}} if name else {}


def _bands(panel: Json, shape: str, axes: tuple[Json, Json], colours: Mapping[str, str]) -> list[Json]:
    """Of a panel's lines, those that have one."""
    x, y = axes
    bands = []
    for series in panel["series"]:
        if "low" in series:
            rows = [
                {"x": x, "y": low, "high": high}
                for x, low, high in zip(series["x"], series["low"], series["high"], strict=True)
            ]
            encoding = {"x": x, "y": y, "y2": {"field": "high"}}
            look = {"interpolate": shape, "opacity": 0.2, "color": colours[series["name"]]}
            bands.append(layer("area", "bands", rows, encoding, **look))
    return bands


def _colour(names: Sequence[str], neutral: str | None = None) -> Json:
    scale = {"domain": list(names), "range": [*_chosen(names, neutral).values()]}
    return {"field": "series", "type": "nominal", "title": None, "scale": scale, "legend": _legend(names)}


def _chosen(names: Sequence[str], neutral: str | None) -> dict[str, str]:
    others = [name for name in names if name != neutral]
    chosen = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(others)}
    return {name: chosen.get(name, NEUTRAL) for name in names}


def _legend(names: Sequence[str]) -> Json | None:
    return {"orient": "right", "labelLimit": 180, "symbolSize": 200} if len(names) > 1 else None


def _axis(field: str, axis: Mapping[str, Any]) -> Json:
    scale: Json = {"type": "log"} if axis.get("log") else {"zero": bool(axis.get("zero"))}
    scale["nice"] = False
    if axis.get("domain"):
        scale["domain"] = list(axis["domain"])
    shown = {"format": "~%" if axis.get("share") else ",.4~r", "tickCount": TICKS}
    return {"field": field, "type": "quantitative", "title": axis["title"], "scale": scale, "axis": shown}


def _tiled(plot: Json) -> Json | None:
    panels = [panel for panel in plot["panels"] if panel["cells"]]
    if not panels:
        return None
    used = {cell["name"] for panel in panels for cell in panel["cells"]}
    names = [name for name in plot["names"] if name in used]
    return {"hconcat": [_tiles(plot, panel, names) for panel in panels]}


def _tiles(plot: Json, panel: Json, names: Sequence[str]) -> Json:
    rows = [{"series": cell["name"], "x": cell["x"], "y": cell["y"], "text": cell["text"]} for cell in panel["cells"]]
    columns, lines = {"domain": list(plot["columns"])}, {"domain": plot["rows"][::-1]}
    named = {"field": "x", "type": "nominal", "title": plot["x"]["title"]}
    x = {**named, "scale": columns, "axis": {"labelAngle": -40}}
    y = {"field": "y", "type": "nominal", "title": plot["y"]["title"], "scale": lines}
    colour, text = _colour(names, plot.get("neutral")), {"field": "text", "type": "nominal"}
    return layers(
        layer("rect", "cell", rows, {"x": x, "y": y, "color": colour}, stroke="white", opacity=0.75),
        layer("text", "cell", rows, {"x": x, "y": y, "text": text}, fontSize=10),
        width=min(TILE * len(plot["columns"]), WIDTH // 2 - 30),
        height=24 * len(plot["rows"]),
        **_titled(panel["name"]),
    )


FORMS = {"lines": _lined, "steps": _lined, "areas": _lined, "tiles": _tiled}

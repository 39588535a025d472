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
from typing import Any, Literal

import altair as alt

from workers.evaluation.report.charts import WIDTH, data
from workers.evaluation.report.schedules import COLOURS

Json = dict[str, Any]
DASHES = ([1, 0], [7, 3], [2, 2], [10, 3, 2, 3], [4, 4], [1, 3])
"""Tell lines apart where there are no colours, in print."""
NEUTRAL = "#dee2e6"
HEIGHT, TILE, TICKS = 170, 34, 8


def drawn(plots: Sequence[Json]) -> list[tuple[str, str, Any]]:
    """Heading, caption and chart of each that has something to show."""
    charts = [(plot["heading"], plot["caption"], FORMS[plot["form"]](plot)) for plot in plots]
    return [one for one in charts if one[2] is not None]


def _lined(plot: Json) -> Any | None:
    """Lines, steps or areas."""
    panels = [panel for panel in plot["panels"] if panel["series"]]
    if not panels:
        return None
    names = list(dict.fromkeys(series["name"] for panel in panels for series in panel["series"]))
    charts = [_panel(plot, panel, names) for panel in panels]
    return charts[0] if len(charts) == 1 else alt.vconcat(*charts)


def _panel(plot: Json, panel: Json, names: Sequence[str]) -> Any:
    rows = [
        {"series": series["name"], "place": place, "x": x, "y": y}
        for place, series in enumerate(panel["series"])
        for x, y in zip(series["x"], series["y"], strict=True)
        if y is not None
    ]
    base, colours = alt.Chart(data(rows)), _colour(names, plot.get("neutral"))
    x, y = _axis(alt.X, "x:Q", plot["x"]), _axis(alt.Y, "y:Q", plot["y"])
    if plot["form"] == "areas":
        chart = base.mark_area(interpolate="step-after", stroke="white", strokeWidth=0.3)
        chart = chart.encode(x=x, y=y.stack("zero"), color=colours, order=alt.Order("place:Q"))
    else:
        stepped = plot["form"] == "steps"
        chart = base.mark_line(interpolate="step-after" if stepped else "linear", strokeWidth=2)
        dashes = alt.Scale(domain=list(names), range=[DASHES[i % len(DASHES)] for i in range(len(names))])
        dash = alt.StrokeDash("series:N", title=None, scale=dashes, legend=_legend(names))
        lines = chart.encode(x=x, y=y, color=colours, strokeDash=dash)
        chart = _banded(plot, panel, lines, _chosen(names, plot.get("neutral")))
    titles = {"title": alt.TitleParams(panel["name"], fontSize=11, fontWeight="normal")} if panel["name"] else {}
    return chart.properties(width=WIDTH, height=HEIGHT, **titles)


def _banded(plot: Json, panel: Json, lines: Any, colours: Mapping[str, str]) -> Any:
    """Lines over the bands that a panel's have; themselves where none has one."""
    shape: Literal["step-after", "linear"] = "step-after" if plot["form"] == "steps" else "linear"
    bands = []
    for series in panel["series"]:
        if "low" in series:
            rows = [
                {"x": x, "y": low, "high": high}
                for x, low, high in zip(series["x"], series["low"], series["high"], strict=True)
            ]
            band = alt.Chart(data(rows)).mark_area(interpolate=shape, opacity=0.2, color=colours[series["name"]])
            bands.append(band.encode(x=lines.encoding.x, y=lines.encoding.y, y2="high:Q"))
    return alt.layer(*bands, lines) if bands else lines


def _colour(names: Sequence[str], neutral: str | None = None) -> alt.Color:
    scale = alt.Scale(domain=list(names), range=[*_chosen(names, neutral).values()])
    return alt.Color("series:N", title=None, scale=scale, legend=_legend(names))


def _chosen(names: Sequence[str], neutral: str | None) -> dict[str, str]:
    """Colours by name, in order."""
    others = [name for name in names if name != neutral]
    chosen = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(others)}
    return {name: chosen.get(name, NEUTRAL) for name in names}


def _legend(names: Sequence[str]) -> alt.Legend | None:
    return alt.Legend(orient="right", labelLimit=180, symbolSize=200) if len(names) > 1 else None


def _axis(channel: Any, field: str, axis: Mapping[str, Any]) -> Any:
    scale: dict[str, Any] = {"type": "log"} if axis.get("log") else {"zero": bool(axis.get("zero"))}
    scale["nice"] = False
    if axis.get("domain"):
        scale["domain"] = list(axis["domain"])
    shown = alt.Axis(format="~%" if axis.get("share") else ",.4~r", tickCount=TICKS)
    return channel(field, title=axis["title"], scale=alt.Scale(**scale), axis=shown)


def _tiled(plot: Json) -> Any | None:
    panels = [panel for panel in plot["panels"] if panel["cells"]]
    if not panels:
        return None
    used = {cell["name"] for panel in panels for cell in panel["cells"]}
    names = [name for name in plot["names"] if name in used]
    charts = [_tiles(plot, panel, names) for panel in panels]
    return alt.hconcat(*charts)


def _tiles(plot: Json, panel: Json, names: Sequence[str]) -> Any:
    rows = [{"series": cell["name"], "x": cell["x"], "y": cell["y"], "text": cell["text"]} for cell in panel["cells"]]
    base = alt.Chart(data(rows)).encode(
        x=alt.X(
            "x:N", title=plot["x"]["title"], scale=alt.Scale(domain=plot["columns"]), axis=alt.Axis(labelAngle=-40)
        ),
        y=alt.Y("y:N", title=plot["y"]["title"], scale=alt.Scale(domain=plot["rows"][::-1])),
    )
    tiles = base.mark_rect(stroke="white", opacity=0.75).encode(color=_colour(names, plot.get("neutral")))
    texts = base.mark_text(fontSize=10).encode(text="text:N")
    width, height = min(TILE * len(plot["columns"]), WIDTH // 2 - 30), 24 * len(plot["rows"])
    title = alt.TitleParams(panel["name"], fontSize=11, fontWeight="normal")
    return alt.layer(tiles, texts).properties(width=width, height=height, title=title)


FORMS = {"lines": _lined, "steps": _lined, "areas": _lined, "tiles": _tiled}

"""Charts of schedules and of the plots that kinds describe, on a page or as one image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import vl_convert

from app.charts.figures import layer
from workers.evaluation.report import schedules
from workers.evaluation.report.charts import WIDTH, definition, figure, layers
from workers.evaluation.report.markup import (
    Markup,
    count,
    document,
    element,
    join_parts,
    number,
    percent,
    section,
    table,
)
from workers.evaluation.report.schedules import COLOURS

Json = dict[str, Any]
SUFFIXES = (".html", ".svg", ".png")
MOST_LETTERS = 100  # maximum of a title line
SHARPNESS = 1.5  # pixels of a PNG per pixel of the definition


def save(file: Path, title: str, pictures: Sequence[Json]) -> None:
    """Write charts of schedules to a file, in the format of its suffix.

    Raises:
        ValueError: the suffix is none of ``.html``, ``.svg`` and ``.png``.
        OSError: the file cannot be written.
    """
    write(file, lambda: page(title, pictures), lambda: stack_plots(title, schedule_charts(pictures)))


def write(file: Path, as_page: Callable[[], str], as_chart: Callable[[], Json]) -> None:
    """Write a file in its suffix's format: what ``as_page`` returns as HTML, or ``as_chart``'s chart as SVG or PNG.

    Raises:
        ValueError: the suffix is none of ``.html``, ``.svg`` and ``.png``.
        OSError: the file cannot be written.
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{file.name}: a plot is one of {', '.join(SUFFIXES)}")
    if suffix == ".html":
        file.write_text(as_page(), encoding="utf-8")
    elif suffix == ".svg":
        chart = definition(as_chart())
        file.write_text(vl_convert.vegalite_to_svg(chart, allowed_base_urls=[]), encoding="utf-8")
    else:
        chart = definition(as_chart())
        file.write_bytes(vl_convert.vegalite_to_png(chart, scale=SHARPNESS, allowed_base_urls=[]))


def page(title: str, pictures: Sequence[Json]) -> str:
    """Return an HTML document of schedules: a table of their figures, and a section for each heading."""
    return document(title, join_parts([element("h1", title), summary(pictures), *sections(pictures)]))


def summary(pictures: Sequence[Json]) -> Markup:
    """Return an HTML table of schedules, one row each, in the given order: name, number of tasks, and figures.

    The figures are mean bounded slowdown, mean wait and makespan (s), deadlines missed and utilisation (%), and cost.

    ``pictures``: the schedules as JSON, as a kind of queues draws them, with ``name``, ``tasks`` and ``figures``.
    """
    head = ["strategy", "tasks", "mean bounded slowdown", "mean wait (s)", "makespan (s)"]
    rows = []
    for picture in pictures:
        figures = picture["figures"]
        times = [number(figures[name]) for name in ("slowdown", "wait", "makespan")]
        rest = [percent(figures["misses"]), percent(figures["utilisation"]), number(figures["cost"])]
        rows.append([picture["name"], count(picture["tasks"]), *times, *rest])
    return table([*head, "deadlines missed", "utilisation", "cost"], rows)


def schedule_charts(pictures: Sequence[Json], costs: Sequence[Json] = ()) -> list[tuple[str, str, Json]]:
    """Return heading, caption and Vega-Lite chart for each chart of the schedules that has data.

    Args:
        pictures: the schedules as JSON.
        costs: further points of the cost chart, with ``name``, ``cost`` and ``makespan`` (seconds).
    """
    shown = schedules.choose_pictures(pictures)
    which = "" if len(shown) == len(pictures) else f"; the first and the best {len(shown) - 1} of {len(pictures)}"
    results = [
        ("Ranks", "Mean bounded slowdown, the best first", schedules.bars(pictures, "slowdown", "slowdown")),
        ("Ranks", "Makespan, the shortest first", schedules.bars(pictures, "makespan", "makespan (s)")),
        ("Utilisation", f"Busy share of the processors over time{which}", schedules.utilisation(shown)),
        ("Queue", f"Tasks that are ready and wait, over time{which}", schedules.queue(shown)),
        (
            "Slowdown",
            f"Share of the tasks that are slowed down more than that{which}",
            schedules.slowdowns({picture["name"]: picture["slowdown"] for picture in shown}),
        ),
        (
            "Cost",
            "Cost against makespan; nothing beats those on the line in both",
            schedules.front(points(pictures, costs)),
        ),
    ]
    results += [
        ("Gantt chart", _bars_caption(picture), schedules.gantt(picture, frame))
        for picture, frame in zip(shown, schedules.frames(shown), strict=True)
    ]
    return [(heading, caption, chart) for heading, caption, chart in results if chart is not None]


def points(pictures: Sequence[Json], costs: Sequence[Json] = ()) -> list[Json]:
    """Return all points as dicts of ``name``, ``cost`` and ``makespan`` (s); [] for a single one, or if costs are 0."""
    own = [{"name": p["name"], **{k: p["figures"][k] for k in ("cost", "makespan")}} for p in pictures]
    names = {point["name"] for point in own}
    all_points = [*own, *(point for point in costs if point["name"] not in names)]
    return all_points if len(all_points) > 1 and any(point["cost"] for point in all_points) else []


def sections(pictures: Sequence[Json]) -> list[Markup]:
    """Return a rendered HTML section of schedules for each heading of ``schedule_charts``."""
    plots = schedule_charts(pictures)
    headings = dict.fromkeys(heading for heading, _, _ in plots)
    return [
        section(one, *(figure(chart, caption) for heading, caption, chart in plots if heading == one))
        for one in headings
    ]


def stack_plots(title: str, plots: Sequence[tuple[str, str, Json]]) -> Json:
    """Return one Vega-Lite chart of all ``plots`` (heading, caption, chart), one below the other, under ``title``."""
    charts = [{**chart, "title": chart_title(caption)} for _, caption, chart in plots]
    return {
        "title": title,
        "vconcat": charts,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
    }


def chart_title(caption: str) -> Json:
    """Return the Vega-Lite title of a chart, wrapped to lines of at most 100 characters (`MOST_LETTERS`)."""
    return {"text": wrap(caption, MOST_LETTERS)}


def _bars_caption(picture: Json) -> str:
    gantt = picture["gantt"]
    caption = f"{picture['name']}: which task ran when, and where"
    if gantt["whole"]:
        return caption
    shown = len({bar["task"] for bar in gantt["bars"]})
    later = gantt["from"] > picture["over_time"]["time"][0]
    which = "from the stretch that waited longest" if later else "the first"
    return f"{caption}; {count(shown)} of {count(picture['tasks'])} tasks, {which}"


# Plots described by a kind as plain values, which reports draw for any kind.
#
# A *plot* has ``heading``, ``caption``, ``form``, two axes ``x`` and ``y``, and ``panels``, one below the other:
#
# - ``lines``, ``steps`` and ``areas`` (stacked): a panel has ``name`` (may be empty) and ``series``, each with ``name``
#   and ``x`` and ``y`` of equal length; None in ``y`` is left out. A series has the same colour in all panels. Lines
#   and steps with ``low`` and ``high`` have a band.
# - ``tiles``: side by side; a panel has ``name`` and ``cells``, each with ``x`` and ``y`` (names of column and row),
#   ``name`` (which determines the colour) and ``text``. ``columns`` and ``rows`` of the plot give the order.
#
# An axis has a ``title``, and optionally ``log``, ``share`` (shown in per cent), ``zero`` (starts at 0) and ``domain``.
# The series or cells named ``neutral`` are grey.


DASHES = ([1, 0], [7, 3], [2, 2], [10, 3, 2, 3], [4, 4], [1, 3])
"""Dash patterns that distinguish lines in print without colours."""
NEUTRAL = "#dee2e6"
HEIGHT, TILE, TICKS = 170, 34, 8


def charts_of(plots: Sequence[Json]) -> list[tuple[str, str, Json]]:
    """Return heading, caption and Vega-Lite chart for each of a kind's plots that has data."""
    charts = [(plot["heading"], plot["caption"], FORMS[plot["form"]](plot)) for plot in plots]
    return [(heading, caption, chart) for heading, caption, chart in charts if chart is not None]


def _line_chart(plot: Json) -> Json | None:
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
        shown = [*_bands(panel, shape, (x, y), _assign_colours(names, plot.get("neutral"))), lines]
    return layers(*shown, width=WIDTH, height=HEIGHT, **_panel_title(panel["name"]))


def _panel_title(name: str) -> Json:
    return {"title": {"text": name, "fontSize": 11, "fontWeight": "normal"}} if name else {}


def _bands(panel: Json, shape: str, axes: tuple[Json, Json], colours: Mapping[str, str]) -> list[Json]:
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
    scale = {"domain": list(names), "range": [*_assign_colours(names, neutral).values()]}
    return {"field": "series", "type": "nominal", "title": None, "scale": scale, "legend": _legend(names)}


def _assign_colours(names: Sequence[str], neutral: str | None) -> dict[str, str]:
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


def _tile_chart(plot: Json) -> Json | None:
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
        **_panel_title(panel["name"]),
    )


FORMS = {"lines": _line_chart, "steps": _line_chart, "areas": _line_chart, "tiles": _tile_chart}

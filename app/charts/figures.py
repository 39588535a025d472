"""Chart definitions (Vega-Lite): axes, response curves, maps, rankings and learning curves."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from app.charts import text

# A chart is a Vega-Lite definition with the same content in words and as a table.
#
# Definitions are plain dictionaries. They name no colours but roles (``style``), and no width: pages and pictures add
# both. Names given by people are data in them, never field names or expressions, so that nothing they hold is obeyed.


Json = dict[str, Any]
Row = Mapping[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
HEIGHT = 200
FEW = 4
"""Largest count up to which an axis has one tick per whole number."""


class Figure(NamedTuple):
    """A chart with its description and its data as a table.

    Attributes:
        title: heading of the chart.
        caption: one or two sentences that explain its marks.
        spec: its Vega-Lite definition, without width or colours.
        columns, rows: the same data as a table, for screen readers; None for an empty cell.
    """

    title: str
    caption: str
    spec: Json
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def layer_charts(*layers: Json, height: int = HEIGHT, **more: Any) -> Json:
    """A Vega-Lite definition of overlaid layers, ``height`` in pixels; empty layers are left out.

    ``more``: further members of the definition.
    """
    return {"$schema": SCHEMA, "height": height, "layer": [layer for layer in layers if layer], **more}


def layer(kind: str, role: str, rows: Sequence[Row], encoding: Json, **mark: Any) -> Json:
    """A Vega-Lite layer of one mark type over rows of data; empty if there are no rows.

    ``kind``: Vega-Lite's mark type. ``role``: name of the mark's style, a key of ``roles``. ``encoding``: channels by
    name. ``mark``: the mark's further properties.
    """
    if not rows:
        return {}
    values = [dict(row) for row in rows]
    return {"data": {"values": values}, "mark": {"type": kind, "style": role, **mark}, "encoding": encoding}


def quantity(field: str, title: str | None, *, zero: bool = True, **more: Any) -> Json:
    """A quantitative Vega-Lite channel of a field; ``title`` None: no title; with ``zero`` its scale includes 0."""
    scale = {"zero": zero, **more.pop("scale", {})}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def count_axis(values: Iterable[float]) -> Json:
    """Axis options for counts: one tick per whole number up to 4, otherwise steps of at least 1."""
    most = max(values, default=0.0)
    return {"values": [*range(int(most) + 1)], "format": "d"} if 0 < most <= FEW else {"tickMinStep": 1}


def amount_axis(values: Iterable[float]) -> Json:
    """Axis options for amounts of a resource: ticks at whole numbers if all of them are whole numbers, else none."""
    known = [float(value) for value in values]
    return count_axis(known) if all(value.is_integer() for value in known) else {}


def category(field: str, title: str | None, order: Sequence[str] | None = None, **more: Any) -> Json:
    """A nominal Vega-Lite channel of a field, in the ``order`` of its names (None: as in the data)."""
    return {"field": field, "type": "nominal", "title": title, "sort": None if order is None else list(order), **more}


def colour_channel(field: str, order: Sequence[str], title: str | None = None) -> Json:
    """A Vega-Lite channel that colours a field's names in ``order``; with a legend if there are at least two names."""
    legend = {"orient": "top", "direction": "horizontal"} if len(order) > 1 else None
    return category(field, title, order, scale={"domain": list(order)}, legend=legend)


def span(field: str, title: str | None = "iteration", **more: Any) -> Json:
    """A horizontal axis of whole numbers, such as iterations, that ends exactly at the data."""
    axis = {"tickMinStep": 1, "grid": False, **more.pop("axis", {})}
    return quantity(field, title, zero=False, scale={"nice": False, **more.pop("scale", {})}, axis=axis, **more)


def tips(**titles: str) -> list[Json]:
    """A Vega-Lite tooltip of fields by name with their titles, which hold units; numbers have four digits."""
    return [
        {"field": field, "title": title}
        | ({"type": "nominal"} if field in TEXTS else {"type": "quantitative", "format": ",.4~r"})
        for field, title in titles.items()
    ]


TEXTS = {"name", "lane", "part", "at", "range", "expected", "change", "reason", "began", "lasted", "interval", "for"}
"""Fields of tooltips that are texts."""


# Response of a metric to a resource: measurements and a model's predictions.


class Fitted(NamedTuple):
    """A model's prediction at an amount of a resource: median and prediction interval, in the metric's unit."""

    amount: float
    median: float
    low: float
    high: float


class Sample(NamedTuple):
    """A measured value of a metric, in its unit, at an amount of a resource."""

    amount: float
    value: float


def response(
    title: str, resource: str, metric: str, fitted: Sequence[Fitted], samples: Sequence[Sample], caption: str
) -> Figure:
    """Chart of a metric over a resource: the model's median, its prediction interval as a band, and measured points.

    ``resource`` and ``metric`` label the axes; ``caption``: sentences that explain the marks.
    """
    amounts = [*(one.amount for one in fitted), *(one.amount for one in samples)]
    x = quantity("amount", resource, zero=False, axis={"grid": False} | amount_axis(amounts))
    curve: list[Json] = [one._asdict() for one in fitted]
    band = {"x": x, "y": quantity("low", metric), "y2": {"field": "high"}}
    for row, one in zip(curve, fitted, strict=True):
        row["range"] = f"{text.number(one.low)} to {text.number(one.high)}"
    points = [one._asdict() for one in samples]
    sampled = {"x": x, "y": quantity("value", metric), "tooltip": tips(amount=resource, value=f"sample, {metric}")}
    shown = tips(amount=resource, median=f"predicted {metric}", range="interval")
    spec = layer_charts(
        layer("area", "expected", curve, band),
        layer("point", "sample", points, sampled),
        layer("line", "fitted", curve, {"x": x, "y": quantity("median", metric), "tooltip": shown}),
        height=240,
    )
    rows = [["expected", *one] for one in fitted] or [["measured", *one, None, None] for one in samples]
    return Figure(title, caption, spec, ["what", resource, metric, "from", "to"], rows)


def responses(title: str, resource: str, metric: str, fitted: Mapping[str, Sequence[Fitted]], caption: str) -> Figure:
    """Chart of a metric over a resource with one median curve and band per name in ``fitted``.

    ``resource`` and ``metric`` label the axes; ``caption``: sentences that explain the marks.
    """
    curves = [{"name": name, **one._asdict()} for name, curve in fitted.items() for one in curve]
    x = quantity("amount", resource, zero=False, axis={"grid": False, "tickMinStep": 1})
    colour = {"color": colour_channel("name", list(fitted))}
    shown = tips(name="of", amount=resource, median=metric)
    spec = layer_charts(
        layer("area", "bands", curves, {"x": x, "y": quantity("low", metric), "y2": {"field": "high"}, **colour}),
        layer(
            "line", "series", curves, {"x": x, "y": quantity("median", metric), **colour, "tooltip": shown}, point=True
        ),
        height=240,
    )
    rows = [list(row.values()) for row in curves]
    return Figure(title, caption, spec, ["of", resource, metric, "from", "to"], rows)


def doubt(title: str, resource: str, points: Sequence[Sample], best: float | None, caption: str) -> Figure:
    """Chart of the relative spread of a model's predictions (share of 1) over amounts of a resource.

    ``best``: amount to sample next, marked by a rule; None: no rule. ``caption``: sentences that explain the marks.
    """
    x = quantity("amount", resource, zero=False, axis={"grid": False})
    rows = [one._asdict() for one in points]
    spec = layer_charts(
        layer(
            "area",
            "expected",
            rows,
            {"x": x, "y": quantity("value", "spread", axis={"format": "%"})}
            | {
                "tooltip": [
                    *tips(amount=resource),
                    {"field": "value", "type": "quantitative", "format": ".1%", "title": "spread"},
                ]
            },
        ),
        {} if best is None else layer("rule", "reference", [{"amount": best}], {"x": x}),
        height=110,
    )
    return Figure(title, caption, spec, [resource, "spread"], [list(one) for one in points])


# Styles: roles of marks, and their colours on light and dark backgrounds.


LIGHT_COLOURS = ("#0b7285", "#e8590c", "#6741d9", "#2b8a3e", "#d6336c", "#997404", "#1c7ed6", "#495057", "#9c36b5")
DARK_COLOURS = ("#3bc9db", "#ffa94d", "#b197fc", "#69db7c", "#faa2c1", "#ffe066", "#4dabf7", "#ced4da", "#e599f7")
DIVERGING_LIGHT = ("#0b4f8a", "#74b3e0", "#eceff1", "#f0a58f", "#a11a24")
DIVERGING_DARK = ("#74c0fc", "#31699b", "#343a40", "#a04a41", "#ff8787")
"""Diverging colours from negative by neutral to positive; their ends contrast with a light or dark background."""
ROLES_LIGHT = ("#868e96", "#c92a2a", "#ffffff", "#e9ecef")
ROLES_DARK = ("#868e96", "#ff8787", "#13171f", "#343a40")
"""Colours of secondary marks, of limits, of the background, and of lines on it."""
TEXT_LIGHT = ("#343a40", "#495057", "#e9ecef")
TEXT_DARK = ("#ced4da", "#adb5bd", "#343a40")
"""Colours of titles, of labels and notes, and of grid lines."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'Liberation Sans', sans-serif"


def config(*, dark: bool = False) -> dict[str, Any]:
    """Vega-Lite configuration (fonts, axes, colours) of the light or dark theme."""
    colours = DARK_COLOURS if dark else LIGHT_COLOURS
    text, quiet, line = TEXT_DARK if dark else TEXT_LIGHT
    named = {"labelColor": quiet, "titleColor": quiet, "labelFont": FONT, "titleFont": FONT, "labelLimit": 260}
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**named, "titleFontWeight": "normal", "gridColor": line, "domainColor": line, "tickColor": line},
        "legend": {**named, "titleFontWeight": "normal", "symbolStrokeWidth": 2},
        "title": {"anchor": "start", "fontSize": 13, "font": FONT, "color": text},
        "range": {"category": list(colours), "diverging": list(DIVERGING_DARK if dark else DIVERGING_LIGHT)},
        "style": roles(dark=dark),
    }


def roles(*, dark: bool) -> dict[str, dict[str, Any]]:
    """Vega-Lite styles of marks by role, such as `measured`, `target` or `note`, for the light or dark theme."""
    own, other, _, good, *_ = DARK_COLOURS if dark else LIGHT_COLOURS
    quiet, alarm, paper, line = ROLES_DARK if dark else ROLES_LIGHT
    note = (TEXT_DARK if dark else TEXT_LIGHT)[1]
    return {
        "measured": {"color": own, "stroke": own, "strokeWidth": 2},
        "sample": {"color": own, "fill": own, "opacity": 0.45, "size": 28},
        "expected": {"color": own, "fill": own, "opacity": 0.2, "strokeOpacity": 0},
        "awaited": {"color": other, "fill": other, "opacity": 0.2, "strokeOpacity": 0},
        "bands": {"opacity": 0.15, "strokeOpacity": 0},
        "fitted": {"color": own, "stroke": own, "strokeWidth": 2},
        "decided": {"color": other, "stroke": other, "strokeWidth": 2},
        "target": {"color": alarm, "stroke": alarm, "strokeDash": [6, 4], "strokeWidth": 1.5},
        "reference": {"color": good, "stroke": good, "strokeDash": [2, 3], "strokeWidth": 1.5},
        "series": {"strokeWidth": 2},
        "block": {"stroke": paper, "strokeWidth": 0.5},
        "bar": {"color": own, "fill": own},
        "other": {"color": quiet, "fill": quiet, "stroke": quiet},
        "interval": {"color": quiet, "stroke": quiet, "strokeWidth": 1.5},
        "stress": {"color": "#fab005", "fill": "#fab005", "opacity": 0.15, "strokeOpacity": 0},
        "ground": {"color": line, "fill": line, "opacity": 0.6},
        "cell": {},
        "change": {"color": other, "fill": paper, "stroke": other, "strokeWidth": 2, "size": 70},
        "label": {"color": paper, "fill": paper, "fontSize": 9},
        "note": {"color": note, "fill": note, "fontSize": 10},
    }


# Heat map of a policy's changes by iteration and present amount.


class Cell(NamedTuple):
    """A policy's change of a resource at an iteration and a present amount, in the resource's unit; 0: no change."""

    iteration: int
    amount: float
    change: float


def steps_map(title: str, resource: str, cells: Sequence[Cell], most: float, caption: str) -> Figure:
    """Heat map of a policy: iterations across, present amounts up; colours show the change of the amount.

    ``resource`` labels the amounts; ``most``: the largest change that colours tell apart, so that maps of several
    policies can be compared; ``caption``: sentences that explain the marks.
    """
    moving = [{**cell._asdict(), "by": cell.change} for cell in cells if cell.change]
    every = [cell._asdict() for cell in cells]
    x = {"field": "iteration", "type": "ordinal", "title": "iteration", "axis": {"labelOverlap": True, "labelAngle": 0}}
    y = {"field": "amount", "type": "ordinal", "title": resource, "sort": "descending", "axis": {"labelOverlap": True}}
    colour = {
        "field": "change",
        "type": "quantitative",
        "title": "change",
        "scale": {"domain": [-most, most], "domainMid": 0},
    }
    spec = layer_charts(
        layer("rect", "ground", every, {"x": x, "y": y}),
        layer(
            "rect",
            "cell",
            moving,
            {"x": x, "y": y, "color": colour, "tooltip": tips(iteration="at iteration", amount=resource, by="change")},
        ),
        height=220,
    )
    return Figure(
        title, caption, spec, ["iteration", resource, "change"], [list(cell) for cell in cells if cell.change]
    )


# Rankings by one number: errors of models, returns of policies.


ROW = 24
DECIDED = "decided"


class Ranked(NamedTuple):
    """A bar of a ranking; ``low`` and ``high`` are the bounds of its confidence interval, None without one."""

    name: str
    value: float
    chosen: bool = False
    low: float | None = None
    high: float | None = None


def beside_decided(title: str, axis: str, values: Mapping[str, float], caption: str) -> Figure:
    """Bar chart of values by name, largest first; the bar named `decided` is highlighted if there is one.

    ``axis`` labels the values; ``caption``: sentences that explain the marks.
    """
    largest_first = sorted(values.items(), key=lambda item: -item[1])
    ranked = [Ranked(name, value, chosen=name == DECIDED) for name, value in largest_first]
    return ranking(title, axis, ranked, f"{caption} Coloured: {DECIDED}." if DECIDED in values else caption)


def ranking(title: str, axis: str, ranked: Sequence[Ranked], caption: str, number: str = ".3~g") -> Figure:
    """Horizontal bars in the given order, with values as labels, and intervals if known; chosen bars are highlighted.

    ``axis`` labels the values; ``caption``: sentences that explain the marks; ``number``: D3 format of the values.
    """
    rows = [{**one._asdict(), "label": f"{one.name}\u2002{_bar_label(one.value, number)}"} for one in ranked]
    for row in rows:
        low, high = row["low"], row["high"]
        row["interval"] = text.NOTHING if low is None else f"{_bar_label(low, number)} to {_bar_label(high, number)}"
        row["shown"] = _bar_label(row["value"], number)
    shown = [
        {"field": "name", "title": "name"},
        {"field": "shown", "title": axis},
        {"field": "interval", "title": "interval"},
    ]
    y = category("label", None, [row["label"] for row in rows], axis={"labelLimit": 240})
    x = quantity("value", axis, axis={"format": number, "tickCount": 5})
    spec = layer_charts(
        layer(
            "bar",
            "bar",
            [row for row in rows if row["chosen"]],
            {"x": x, "y": y, "tooltip": shown},
            height={"band": 0.6},
        ),
        layer(
            "bar",
            "other",
            [row for row in rows if not row["chosen"]],
            {"x": x, "y": y, "tooltip": shown},
            height={"band": 0.6},
        ),
        layer(
            "rule",
            "interval",
            [row for row in rows if row["low"] is not None],
            {"x": quantity("low", axis), "x2": {"field": "high"}, "y": y},
        ),
        height=ROW * max(len(rows), 1),
    )
    table = [[one.name, one.value, one.low, one.high] for one in ranked]
    return Figure(title, caption, spec, ["name", axis, "from", "to"], table)


def parts_of_bar(title: str, axis: str, bounds: Mapping[str, float], mark: Ranked | None, caption: str) -> Figure:
    """One horizontal bar from the first of ``bounds`` to the last; each further bound ends a part of the same name.

    Args:
        title: heading.
        axis: label of the values.
        bounds: values by name; a part that would end before it begins is left out.
        mark: a value to mark across the bar; None: none.
        caption: sentences that explain the parts.
    """
    ends, rows = list(bounds.items()), list[Row]()
    for (_, low), (name, high) in pairwise(ends):
        rows += [{"part": name, "low": low, "high": high}] if high > low else []
    x, wide = quantity("low", axis, zero=False), {"height": {"band": 0.5}}
    colour = colour_channel("part", [row["part"] for row in rows])
    marked = [] if mark is None else [{"part": mark.name, "low": mark.value}]
    spec = layer_charts(
        layer(
            "bar",
            "bar",
            rows,
            {
                "x": x,
                "x2": {"field": "high"},
                "color": colour,
                "tooltip": tips(part="part", low=f"{axis} from", high="to"),
            },
            **wide,
        ),
        layer("tick", "interval", marked, {"x": x, "tooltip": {"field": "part"}}, thickness=3),
        height=2 * ROW,
    )
    table = [*(list(end) for end in ends), *([mark.name, mark.value] for _ in marked if mark is not None)]
    return Figure(title, caption, spec, ["up to", axis], table)


def _bar_label(value: float, number: str) -> str:
    """Number in a bar's label, in per cent for a ``number`` format with %."""
    if number.endswith("%"):
        return f"{text.number(100 * value)} %"
    return text.number(value)


# Learning curves: training returns over environment steps, with references in the same unit.


WIDE = 20
DASHES = [6, 4]
LABEL = 0.07
"""Height of a label as a share of a learning chart's height."""


class LearningPoint(NamedTuple):
    """Mean training return of a training after a number of environment steps."""

    name: str
    steps: int
    value: float


def learning(
    learnt: Sequence[LearningPoint], marks: Mapping[str, float], caption: str, plans: Collection[str] = ()
) -> Figure:
    """Learning curves: training return over environment steps.

    ``marks``: reference returns by name, drawn as horizontal lines, dashed unless ``plans`` has the name. ``caption``:
    sentences that explain the marks.
    """
    names = list(dict.fromkeys(one.name for one in learnt))
    x = span("steps", "environment steps", axis={"format": "~s"})
    # A symmetric logarithmic scale if the largest value is at least 20 times the smallest, else the default ({})
    values = [*(one.value for one in learnt), *marks.values()]
    sizes = [abs(value) for value in values if value]
    scale: Json = {} if not sizes or max(sizes) < WIDE * min(sizes) else {"type": "symlog", "constant": min(sizes)}
    y = quantity("value", "training return", zero=False, scale=scale)
    rules: list[Json] = [{"name": name, "value": value} for name, value in marks.items()]
    # Positions of values on the axis; lines too close for two labels share that of the highest
    at = {v: math.copysign(math.log1p(abs(v) / scale["constant"]), v) if scale else v for v in values}
    labels: list[Json] = []
    for rule in sorted(rules, key=lambda one: -float(one["value"])):
        if labels and at[labels[-1]["value"]] - at[rule["value"]] < LABEL * (max(at.values()) - min(at.values())):
            labels[-1] = {**labels[-1], "name": f"{labels[-1]['name']}, {rule['name']}"}
        else:
            labels.append(rule)
    colour = {"color": colour_channel("name", names)} if len(names) > 1 else {}
    role = "series" if len(names) > 1 else "measured"
    rows = [one._asdict() for one in learnt]
    text = {"y": y, "x": {"value": 4}, "text": {"field": "name"}}
    spec = layer_charts(
        layer(
            "line",
            role,
            rows,
            {"x": x, "y": y, **colour, "tooltip": tips(name="of", value="training return")},
            point={"size": 20},
        ),
        layer("rule", "other", [rule for rule in rules if rule["name"] not in plans], {"y": y}, strokeDash=DASHES),
        layer("rule", "reference", [rule for rule in rules if rule["name"] in plans], {"y": y}),
        layer("text", "note", labels, text, align="left", dy=-6),
        height=240,
    )
    table = [[one.name, one.steps, one.value] for one in learnt] + [[name, None, v] for name, v in marks.items()]
    return Figure("Training return", caption, spec, ["of", "steps", "training return"], table)

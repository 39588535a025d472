"""Charts of reports: Vega-Lite definitions, and SVG images rendered from them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import vl_convert

from app.charts import figures
from app.charts.figures import DARK_COLOURS, LIGHT_COLOURS, SCHEMA, Json, category, layer, quantity
from workers.evaluation.report.markup import Markup, element

# Plots on dark ground: an image adapts its colours to the viewer's colour scheme.


COLOURS = dict(zip(LIGHT_COLOURS, DARK_COLOURS, strict=True)) | {
    "white": "#13171f",
    "#000": "#ced4da",
    "black": "#ced4da",
    "#212529": "#f8f9fa",
    "#343a40": "#ced4da",
    "#495057": "#ced4da",
    "#dee2e6": "#495057",
    "#e9ecef": "#343a40",
    "#c92a2a": "#ff8787",
    "#1971c2": "#74c0fc",
    "#5f3dc4": "#b197fc",
    "#2f9e44": "#69db7c",
    "#0072b2": "#4dabf7",
    "#009e73": "#38d9a9",
}
"""Colour on dark ground for each colour on light ground; colours not listed are legible on both."""


def _rules() -> str:
    result = (f'[{of}="{light}"]{{{of}:{dark}}}' for light, dark in COLOURS.items() for of in ("fill", "stroke"))
    return f"<style>@media (prefers-color-scheme: dark){{{''.join(result)}}}</style>"


RULES = _rules()


def readable(svg: str) -> str:
    """Return an SVG in light-ground colours with a style that adapts it to a viewer's dark colour scheme."""
    head, end, rest = svg.partition(">")
    return f"{head}{end}{RULES}{rest}"


# Plots of reports: Vega-Lite definitions, rendered to SVG in this process without network access.
#
# Names from users are only data in them, never field names or expressions, so that they cannot inject anything.


CLASSES = ("L0", "L1", "L2", "L3", "L4")
WIDTH = 640
PADDING = {"left": 18, "right": 24, "top": 5, "bottom": 5}
"""Pixels around a plot, since fonts may be wider in the viewer than in the renderer."""
ROW = 20  # pixels of one policy in a plot with a row for each
OWN = ("#0b7285", "#e8590c", "#6741d9", "#2b8a3e", "#c2255c", "#1864ab", "#a61e4d", "#5c940d")
CHARTS_RULES = ("#495057", "#868e96", "#adb5bd", "#748ffc", "#e599f7", "#63e6be", "#ffc078", "#ced4da")
ROLES = {"optimum": "#212529", "plan": "#212529", "random": "#ff8787", "tuner": "#f59f00"}
DASHES = {
    "candidate": [1, 0],
    "heuristic": [5, 3],
    "optimum": [2, 2],
    "plan": [6, 2, 2, 2],
    "random": [1, 3],
    "tuner": [8, 3],
}
DOT = {"filled": True, "size": 70, "opacity": 1}
TERMS = ("#c92a2a", "#1971c2", "#f08c00", "#5f3dc4", "#2f9e44")


def definition(chart: Json) -> Json:
    """Return a chart completed to a Vega-Lite document in the common style."""
    return {"$schema": SCHEMA, "padding": PADDING, **chart, "config": {**figures.config(), "background": "white"}}


def figure(chart: Json, caption: str) -> Markup:
    """Render a Vega-Lite chart to an HTML figure with an inline SVG image; ValueError if it is no valid chart."""
    drawn = vl_convert.vegalite_to_svg(definition(chart), allowed_base_urls=[])
    source = f"data:image/svg+xml;base64,{base64.b64encode(readable(drawn).encode()).decode()}"
    return element("figure", element("img", src=source, alt=caption), element("figcaption", caption))


def layers(*shown: Json, width: float, height: float, **more: Any) -> Json:
    """Return a Vega-Lite layer chart of the non-empty layers, with width and height in pixels."""
    return {"layer": [one for one in shown if one], "width": width, "height": height, **more}


class Palette:
    """Fixed colour and dash of each policy in all plots; candidates have colours of their own.

    Args:
        policies: dicts with ``name`` and ``role``, in display order.
    """

    def __init__(self, policies: Sequence[Json]) -> None:
        self.names = [str(policy["name"]) for policy in policies]
        self.roles = {str(policy["name"]): str(policy["role"]) for policy in policies}
        own = [name for name in self.names if self.roles[name] == "candidate"]
        rules = [name for name in self.names if self.roles[name] == "heuristic"]
        self.colours = {name: ROLES.get(self.roles[name], "#868e96") for name in self.names}
        self.colours |= {name: OWN[index % len(OWN)] for index, name in enumerate(own)}
        self.colours |= {name: CHARTS_RULES[index % len(CHARTS_RULES)] for index, name in enumerate(rules)}
        self.own = own

    def colour(self, names: Sequence[str], *, legend: bool = True) -> Json:
        """Return the Vega-Lite colour channel of the field ``policy``, restricted to ``names``; ``legend``: show it."""
        shown = [name for name in self.names if name in set(names)]
        scale = {"domain": shown, "range": [self.colours[name] for name in shown]}
        key = {"orient": "right", "labelLimit": 220, "symbolLimit": 40, "symbolOpacity": 1} if legend else None
        return {"field": "policy", "type": "nominal", "title": None, "scale": scale, "legend": key}

    def dash(self, names: Sequence[str]) -> Json:
        """Return the Vega-Lite dash channel of the field ``policy``, by role, to distinguish lines without colour."""
        shown = [name for name in self.names if name in set(names)]
        scale = {"domain": shown, "range": [DASHES.get(self.roles[name], [1, 0]) for name in shown]}
        return {"field": "policy", "type": "nominal", "scale": scale, "legend": None}


def advantages(candidates: Sequence[Json], palette: Palette) -> Json | None:
    """Return a chart of each candidate's return minus the best heuristic's by level, with intervals; None if empty."""
    rows = [
        {"level": level["level"], "policy": candidate["name"], **level["advantage"]}
        for candidate in candidates
        for level in candidate["levels"]
        if level["advantage"] is not None
    ]
    if not rows:
        return None
    shared = {
        "x": category("level", None, axis={"labelAngle": 0}, scale={"domain": list(CLASSES)}),
        "xOffset": category("policy", None, palette.own),
        "color": palette.colour([row["policy"] for row in rows], legend=len(candidates) > 1),
    }
    title = "return over the best heuristic"
    zero, low, mean = (quantity(name, title, scale={"padding": 12}) for name in ("zero", "low", "mean"))
    return layers(
        layer("rule", "interval", [{"zero": 0}], {"y": zero}, strokeDash=[4, 4]),
        layer("rule", "series", rows, {**shared, "y": low, "y2": {"field": "high"}}, strokeWidth=3),
        layer("point", "cell", rows, {**shared, "y": mean}, **DOT),
        width=WIDTH,
        height=220,
    )


def returns(level: Json, palette: Palette, measure: str = "return", *, least: bool = False) -> Json | None:
    """Return a chart of every policy's mean return at one level with its interval; the tick is the interquartile mean.

    None without data; the random baseline is left out.

    Args:
        level: the report's entry of a level.
        palette: colours of the policies.
        measure: label of the value axis.
        least: whether smaller values are better.
    """
    policies = level["policies"]
    rows = [
        {"policy": name, "iqm": (scores.get("iqm") or scores["return"])["mean"], **scores["return"]}
        for name, scores in policies.items()
        if scores.get("return") is not None and palette.roles.get(name) != "random"  # far below the others
    ]
    if not rows:
        return None
    order = [row["policy"] for row in sorted(rows, key=lambda row: row["mean"], reverse=not least)]
    shared = {"y": _names(order), "color": palette.colour(order, legend=False)}
    look: Json = {"zero": False, "scale": {"padding": 12}, "axis": {"tickCount": 5}}
    low, mean, iqm = (quantity(name, measure, **look) for name in ("low", "mean", "iqm"))
    return layers(
        layer("rule", "series", rows, {**shared, "x": low, "x2": {"field": "high"}}, strokeWidth=3),
        layer("point", "cell", rows, {**shared, "x": mean}, **DOT),
        layer("tick", "cell", rows, {**shared, "x": iqm}, thickness=2, size=14),
        width=WIDTH - 140,
        height=ROW * len(rows),
    )


def _names(order: Sequence[str]) -> Json:
    return category("policy", None, order, axis={"labelLimit": 260})


def curves(
    candidates: Sequence[Json],
    palette: Palette,
    steps: str = "environment steps",
    measure: str = "return while learning",
) -> Json | None:
    """Return a chart of learning curves: ``measure`` over ``steps`` (the axes' labels); None without data."""
    rows = [
        {"policy": candidate["name"], "steps": step, "return": value}
        for candidate in candidates
        for step, value in candidate.get("curve") or ()
        if value is not None
    ]
    if not rows:
        return None
    shown = [candidate["name"] for candidate in candidates if candidate.get("curve")]
    encoding = {
        "x": quantity("steps", steps, axis={"format": "~s"}),
        "y": quantity("return", measure, zero=False),
        "color": palette.colour(shown),
    }
    line = layer("line", "series", rows, encoding, point=len(rows) < 200)
    return {**line, "width": WIDTH - 120, "height": 220}


def profile(result: Json, palette: Palette) -> Json | None:
    """Return a chart by policy of the share of episodes above score τ (0: random, 1: best heuristic), or None."""
    rows = [
        {"policy": name, "tau": tau, "share": share, "low": low, "high": high}
        for name, values in result["policies"].items()
        for tau, share, low, high in zip(result["tau"], values["share"], values["low"], values["high"], strict=True)
    ]
    if not rows:
        return None
    names = [name for name in palette.names if name in result["policies"]]
    own = [row for row in rows if row["policy"] in palette.own]
    title = "normalised score τ (0: random, 1: best heuristic)"
    shared = {"x": quantity("tau", title, scale={"nice": False}), "color": palette.colour(names)}
    above: dict[str, Any] = {"axis": {"format": "%"}, "scale": {"domain": [0, 1]}}
    low, share = (quantity(name, "share of episodes above τ", **above) for name in ("low", "share"))
    return layers(
        layer("area", "bands", own, {**shared, "y": low, "y2": {"field": "high"}}),
        layer("line", "series", rows, {**shared, "y": share, "strokeDash": palette.dash(names)}),
        width=WIDTH - 160,
        height=210,
    )


def terms(level: Json, names: Sequence[str], weights: Mapping[str, float], palette: Palette) -> Json | None:
    """Return stacked bars of each policy's weighted reward terms at one level, mean per episode; None without data."""
    rows = [
        {"policy": policy, "term": term, "order": index, "paid": weights.get(term, 1.0) * scores["terms"][term]}
        for policy, scores in level["policies"].items()
        for index, term in enumerate(names)
        if scores.get("terms") is not None
    ]
    if not rows:
        return None
    policies = [name for name in palette.names if name in level["policies"]]
    colours = {"domain": list(names), "range": [TERMS[i % len(TERMS)] for i in range(len(names))]}
    encoding = {
        "y": _names(policies),
        "x": quantity("paid", "weight × term, mean per episode"),
        "color": category("term", None, scale=colours, legend={"orient": "top"}),
        "order": {"field": "order", "type": "ordinal"},
    }
    return {**layer("bar", "cell", rows, encoding), "width": WIDTH - 140, "height": ROW * len(policies)}


def heat_map(result: Json) -> Json | None:
    """Return a heat map of a policy's mean action over two quantities of its observation; None without data."""
    left, low = result["x"]["edges"], result["y"]["edges"]
    rows = [
        {"x": left[i], "x2": left[i + 1], "y": low[j], "y2": low[j + 1], "value": value}
        for j, line in enumerate(result["value"]["mean"])
        for i, value in enumerate(line)
        if value is not None
    ]
    if not rows:
        return None
    largest = max(abs(row["value"]) for row in rows) or 1.0
    scale = {"scheme": "redblue", "domain": [-largest, largest], "domainMid": 0}
    legend = {"orient": "top", "gradientLength": 220, "titleLimit": 500}
    named = {"type": "quantitative", "title": str(result["value"]["name"])}
    encoding = {
        "x": quantity("x", str(result["x"]["name"]).replace("_", " "), zero=False, scale={"nice": False}),
        "x2": {"field": "x2"},
        "y": quantity("y", str(result["y"]["name"]).replace("_", " "), zero=False, scale={"nice": False}),
        "y2": {"field": "y2"},
        "color": {"field": "value", **named, "scale": scale, "legend": legend},
    }
    return {**layer("rect", "cell", rows, encoding), "width": 420, "height": 280}


def tuning(history: Sequence[Sequence[float]]) -> Json | None:
    """Return a chart of the tuner's best return so far by trial, from pairs (trial, return); None without trials."""
    rows = [{"trial": trial, "best": best} for trial, best in history if best is not None]
    if not rows:
        return None
    encoding = {
        "x": quantity("trial", "trial", axis={"tickMinStep": 1}),
        "y": quantity("best", "best return so far", zero=False),
    }
    line = layer("line", "series", rows, encoding, interpolate="step-after", color=ROLES["tuner"])
    return {**line, "width": 420, "height": 160}

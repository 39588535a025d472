"""The report's plots: Vega-Lite definitions drawn to SVG in this process, without a network.

Names given by people are data in them, never field names or expressions, so that nothing they hold is obeyed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import vl_convert

from workers.evaluation.report.markup import Markup, element

Json = dict[str, Any]
CLASSES = ("L0", "L1", "L2", "L3", "L4")
WIDTH = 640
ROW = 20  # pixels of one policy in a plot with a row for each
OWN = ("#0b7285", "#e8590c", "#6741d9", "#2b8a3e", "#c2255c", "#1864ab", "#a61e4d", "#5c940d")
RULES = ("#495057", "#868e96", "#adb5bd", "#748ffc", "#e599f7", "#63e6be", "#ffc078", "#ced4da")
ROLES = {"optimum": "#212529", "random": "#ff8787", "tuner": "#f59f00"}
DASHES = {
    "candidate": [1, 0],
    "heuristic": [5, 3],
    "optimum": [2, 2],
    "random": [1, 3],
    "tuner": [8, 3],
}
TERMS = ("#c92a2a", "#1971c2", "#f08c00", "#5f3dc4", "#2f9e44")


def definition(chart: Any) -> Json:
    """A plot as Vega-Lite, in the style of all."""
    styled = chart.configure_view(stroke=None).configure_title(anchor="start", fontSize=13)
    definition: Json = styled.to_dict(validate=False)
    return definition


def figure(chart: Any, caption: str) -> Markup:
    """A plot as an image inside the page; nothing runs in it, and its names can't collide with another's."""
    drawn = vl_convert.vegalite_to_svg(definition(chart), allowed_base_urls=[])
    source = f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}"
    return element("figure", element("img", src=source, alt=caption), element("figcaption", caption))


def data(values: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as they stand in the definition."""
    return alt.InlineData(values=[dict(value) for value in values])


class Palette:
    """One colour and one dash per policy, the same in every plot; agents stand out from what they are compared with."""

    def __init__(self, policies: Sequence[Json]) -> None:
        self.names = [str(policy["name"]) for policy in policies]
        self.roles = {str(policy["name"]): str(policy["role"]) for policy in policies}
        own = [name for name in self.names if self.roles[name] == "candidate"]
        rules = [name for name in self.names if self.roles[name] == "heuristic"]
        self.colours = {name: ROLES.get(self.roles[name], "#868e96") for name in self.names}
        self.colours |= {name: OWN[index % len(OWN)] for index, name in enumerate(own)}
        self.colours |= {name: RULES[index % len(RULES)] for index, name in enumerate(rules)}
        self.own = own

    def colour(self, names: Sequence[str], *, legend: bool = True) -> alt.Color:
        """The channel for ``policy``, limited to those names."""
        shown = [name for name in self.names if name in set(names)]
        scale = alt.Scale(domain=shown, range=[self.colours[name] for name in shown])
        key = alt.Legend(orient="right", labelLimit=220, symbolLimit=40, symbolOpacity=1) if legend else None
        return alt.Color("policy:N", title=None, scale=scale, legend=key)

    def dash(self, names: Sequence[str]) -> alt.StrokeDash:
        """The channel that tells an agent's line from a rule's, for those who see no colours."""
        shown = [name for name in self.names if name in set(names)]
        scale = alt.Scale(domain=shown, range=[DASHES.get(self.roles[name], [1, 0]) for name in shown])
        return alt.StrokeDash("policy:N", scale=scale, legend=None)


def advantages(candidates: Sequence[Json], palette: Palette) -> Any | None:
    """Difference to the best heuristic by level, with its interval: an agent goes up while it is not below the line."""
    rows = [
        {"level": level["level"], "policy": candidate["name"], **level["advantage"]}
        for candidate in candidates
        for level in candidate["levels"]
        if level["advantage"] is not None
    ]
    if not rows:
        return None
    base = alt.Chart(data(rows)).encode(
        x=alt.X("level:N", title=None, axis=alt.Axis(labelAngle=0), scale=alt.Scale(domain=list(CLASSES))),
        xOffset=alt.XOffset("policy:N", sort=palette.own),
        color=palette.colour([row["policy"] for row in rows], legend=len(candidates) > 1),
    )
    axis = alt.Y("low:Q", title="return over the best heuristic", scale=alt.Scale(padding=12))
    bars = base.mark_rule(strokeWidth=3).encode(y=axis, y2="high:Q")
    zero = alt.Chart(data([{"zero": 0}])).mark_rule(strokeDash=[4, 4], color="#868e96").encode(y="zero:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(y="mean:Q")
    return alt.layer(zero, bars, points).properties(width=WIDTH, height=220)


def returns(level: Json, palette: Palette, measure: str = "return", *, least: bool = False) -> Any | None:
    """Mean return of every policy of one level with its interval, and the interquartile mean as a tick.

    Args:
        measure: what the return is called.
        least: whether the least is the best.
    """
    found = level["policies"]
    rows = [
        {"policy": name, "iqm": (scores.get("iqm") or scores["return"])["mean"], **scores["return"]}
        for name, scores in found.items()
        if scores.get("return") is not None and palette.roles.get(name) != "random"  # so far off that it hides the rest
    ]
    if not rows:
        return None
    order = [row["policy"] for row in sorted(rows, key=lambda row: row["mean"], reverse=not least)]
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("policy:N", title=None, sort=order, axis=alt.Axis(labelLimit=260)),
        color=palette.colour(order, legend=False),
    )
    scale = alt.Scale(zero=False, padding=12)
    bars = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title=measure, scale=scale), x2="high:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x=alt.X("mean:Q", scale=scale))
    ticks = base.mark_tick(thickness=2, size=14).encode(x=alt.X("iqm:Q", scale=scale))
    return alt.layer(bars, points, ticks).properties(width=WIDTH - 140, height=ROW * len(rows))


def curves(
    candidates: Sequence[Json],
    palette: Palette,
    steps: str = "environment steps",
    measure: str = "return while learning",
) -> Any | None:
    """Return of the training episodes over environment steps, or what else ``measure`` and ``steps`` call it."""
    rows = [
        {"policy": candidate["name"], "steps": step, "return": value}
        for candidate in candidates
        for step, value in candidate.get("curve") or ()
        if value is not None
    ]
    if not rows:
        return None
    shown = [candidate["name"] for candidate in candidates if candidate.get("curve")]
    chart = alt.Chart(data(rows)).mark_line(point=len(rows) < 200)
    return chart.encode(
        x=alt.X("steps:Q", title=steps, axis=alt.Axis(format="~s")),
        y=alt.Y("return:Q", title=measure, scale=alt.Scale(zero=False)),
        color=palette.colour(shown),
    ).properties(width=WIDTH - 120, height=220)


def profile(found: Json, palette: Palette) -> Any | None:
    """Share of one level's episodes whose normalised score exceeds tau, with the bands of the agents."""
    rows = [
        {"policy": name, "tau": tau, "share": share, "low": low, "high": high}
        for name, values in found["policies"].items()
        for tau, share, low, high in zip(found["tau"], values["share"], values["low"], values["high"], strict=True)
    ]
    if not rows:
        return None
    names = [name for name in palette.names if name in found["policies"]]
    own = data([row for row in rows if row["policy"] in palette.own])
    base = alt.Chart(data(rows)).encode(
        x=alt.X("tau:Q", title="normalised score τ (0: random, 1: best heuristic)", scale=alt.Scale(nice=False))
    )
    share = alt.Y("low:Q", title="share of episodes above τ", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    band = (
        base.mark_area(opacity=0.2)
        .properties(data=own)
        .encode(
            y=share,
            y2="high:Q",
            color=palette.colour(names),
        )
    )
    line = base.mark_line().encode(y="share:Q", color=palette.colour(names), strokeDash=palette.dash(names))
    return alt.layer(band, line).properties(width=WIDTH - 160, height=210)


def terms(level: Json, names: Sequence[str], weights: Mapping[str, float], palette: Palette) -> Any | None:
    """What each policy pays in one level, by term of the reward and stacked: shorter is better."""
    rows = [
        {"policy": policy, "term": term, "order": index, "paid": weights.get(term, 1.0) * scores["terms"][term]}
        for policy, scores in level["policies"].items()
        for index, term in enumerate(names)
        if scores.get("terms") is not None
    ]
    if not rows:
        return None
    policies = [name for name in palette.names if name in level["policies"]]
    chart = alt.Chart(data(rows)).mark_bar()
    return chart.encode(
        y=alt.Y("policy:N", title=None, sort=policies, axis=alt.Axis(labelLimit=260)),
        x=alt.X("paid:Q", title="weight × term, mean per episode"),
        color=alt.Color(
            "term:N",
            title=None,
            scale=alt.Scale(domain=list(names), range=[TERMS[i % len(TERMS)] for i in range(len(names))]),
            legend=alt.Legend(orient="top"),
        ),
        order="order:O",
    ).properties(width=WIDTH - 140, height=ROW * len(policies))


def heat_map(found: Json) -> Any | None:
    """What a policy does on average where two figures of its observation lie: blue takes more, red gives back."""
    left, low = found["x"]["edges"], found["y"]["edges"]
    rows = [
        {"x": left[i], "x2": left[i + 1], "y": low[j], "y2": low[j + 1], "value": value}
        for j, line in enumerate(found["value"]["mean"])
        for i, value in enumerate(line)
        if value is not None
    ]
    if not rows:
        return None
    largest = max(abs(row["value"]) for row in rows) or 1.0
    scale = alt.Scale(scheme="redblue", domain=[-largest, largest], domainMid=0)
    legend = alt.Legend(orient="top", gradientLength=220, titleLimit=500)
    chart = alt.Chart(data(rows)).mark_rect()
    return chart.encode(
        x=alt.X("x:Q", title=str(found["x"]["name"]), scale=alt.Scale(nice=False, zero=False)),
        x2="x2:Q",
        y=alt.Y("y:Q", title=str(found["y"]["name"]), scale=alt.Scale(nice=False, zero=False)),
        y2="y2:Q",
        color=alt.Color("value:Q", title=str(found["value"]["name"]), scale=scale, legend=legend),
    ).properties(width=420, height=280)


def tuning(history: Sequence[Sequence[float]]) -> Any | None:
    """Best return found so far by the tuner of static settings."""
    rows = [{"trial": trial, "best": best} for trial, best in history if best is not None]
    if not rows:
        return None
    chart = alt.Chart(data(rows)).mark_line(interpolate="step-after", color=ROLES["tuner"])
    return chart.encode(
        x=alt.X("trial:Q", title="trial", axis=alt.Axis(tickMinStep=1)),
        y=alt.Y("best:Q", title="best return so far", scale=alt.Scale(zero=False)),
    ).properties(width=420, height=160)

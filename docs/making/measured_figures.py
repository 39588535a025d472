"""Figures of what benchmarks have measured and recorded in `benchmarks/results.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import altair as alt
from look import LINE, OTHER, lined

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks/results.json"
Layered = alt.LayerChart | alt.FacetChart
Row = dict[str, Any]


def rows(benchmark: str) -> list[Row]:
    """What a benchmark has recorded."""
    return [row for row in json.loads(RESULTS.read_text())["results"] if row["benchmark"] == benchmark]


def errors() -> alt.Chart:
    """Error of domain models on what was held out, beside that of the best published or recomputed peer."""
    values = []
    for row in rows("domain_models"):
        if found := re.match(r"MAPE (.*?)(?:,|$)", row["name"]):
            for who, error in (("Steward", row["value"]), ("best peer", row["peer_value"])):
                values.append({"data": found[1], "who": who, "error": error})
    return (
        alt.Chart(alt.InlineData(values=values))
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=alt.X("error:Q", title="mean absolute error, % (logarithmic)", scale=alt.Scale(type="log")),
            y=alt.Y("data:N", title=None, sort=None),
            color=_who(["Steward", "best peer"]),
        )
        .properties(width=480, height=alt.Step(15))
    )


def gaps() -> Layered:
    """What the best network leaves of the exact optimum, by itself: each of five seeds, and their mean."""
    means, seeds = [], []
    for row in rows("agent_quality"):
        if found := re.match(r"(.*?): gap of the ppo alone, mean of 5 seeds \((.*)\)", row["name"]):
            means.append({"workload": found[1], "gap": 100 * row["value"]})
            seeds += [{"workload": found[1], "gap": float(one.strip(" %"))} for one in found[2].split(",")]
    y = alt.Y("workload:N", title=None, sort=[one["workload"] for one in sorted(means, key=lambda one: one["gap"])])
    x = alt.X("gap:Q", title="return left to the exact optimum, %")
    return alt.layer(
        alt.Chart(alt.InlineData(values=means)).mark_bar(color=LINE, opacity=0.45, height=12).encode(x=x, y=y),
        alt.Chart(alt.InlineData(values=seeds)).mark_point(color=OTHER, filled=True, size=24).encode(x=x, y=y),
    ).properties(width=480, height=alt.Step(20))


def judged() -> alt.Chart:
    """Returns on data that nobody has seen: Steward with a model alone, and whoever was best of the others."""
    values = []
    for row in rows("held_out"):
        found = re.match(r"([\w-]+): Steward: .*; return$", row["name"])
        if found and row["peer"]:
            for who, value in (("Steward", row["value"]), ("best of the others", row["peer_value"])):
                values.append({"world": found[1], "who": who, "return": value, "peer": row["peer"]})
    return (
        alt.Chart(alt.InlineData(values=values))
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=alt.X("return:Q", title="return (right is better)"),
            y=alt.Y("world:N", title=None, sort=None),
            color=_who(["Steward", "best of the others"]),
        )
        .properties(width=480, height=alt.Step(22))
    )


def _who(names: list[str]) -> alt.Color:
    return alt.Color("who:N", title=None, scale=alt.Scale(domain=names, range=[LINE, OTHER]))


FIGURES = {
    "errors": lambda: lined(errors()),
    "gaps": lambda: lined(gaps()),
    "judged": lambda: lined(judged()),
}
"""By the name of its file: what draws it."""

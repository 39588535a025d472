"""Figures of what benchmarks have measured and recorded in `benchmarks/results.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from look import LINE, OTHER, lined, marks, names, whose

from app.charts.figures import Json, quantity

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks/results.json"
Row = dict[str, Any]
DOT = {"filled": True, "size": 60, "opacity": 0.9}


def rows(benchmark: str) -> list[Row]:
    """What a benchmark has recorded."""
    return [row for row in json.loads(RESULTS.read_text())["results"] if row["benchmark"] == benchmark]


def errors() -> Json:
    """Error of domain models on what was held out, beside that of the best published or recomputed peer."""
    values = []
    for row in rows("domain_models"):
        if match := re.match(r"MAPE (.*?)(?:,|$)", row["name"]):
            for who, error in (("Steward", row["value"]), ("best peer", row["peer_value"])):
                values.append({"data": match[1], "who": who, "error": error})
    x = quantity("error", "mean absolute error, % (logarithmic)", scale={"type": "log", "zero": False})
    encoding = {"x": x, "y": names("data"), "color": whose(["Steward", "best peer"])}
    return {**marks("point", values, encoding, **DOT), "width": 480, "height": {"step": 15}}


def gaps() -> Json:
    """What the best network leaves of the exact optimum, by itself: each of five seeds, and their mean."""
    means, seeds = [], []
    for row in rows("agent_quality"):
        if match := re.match(r"(.*?): gap of the ppo alone, mean of 5 seeds \((.*)\)", row["name"]):
            means.append({"workload": match[1], "gap": 100 * row["value"]})
            seeds += [{"workload": match[1], "gap": float(one.strip(" %"))} for one in match[2].split(",")]
    y = names("workload", [one["workload"] for one in sorted(means, key=lambda one: one["gap"])])
    x = quantity("gap", "return left to the exact optimum, %")
    bars = marks("bar", means, {"x": x, "y": y}, color=LINE, opacity=0.45, height=12)
    points = marks("point", seeds, {"x": x, "y": y}, color=OTHER, filled=True, size=24)
    return {"layer": [bars, points], "width": 480, "height": {"step": 20}}


def judged() -> Json:
    """Returns on data that nobody has seen: Steward with a model alone, and whoever was best of the others."""
    values = []
    for row in rows("held_out"):
        match = re.match(r"([\w-]+): Steward: .*; return$", row["name"])
        if match and row["peer"]:
            for who, value in (("Steward", row["value"]), ("best of the others", row["peer_value"])):
                values.append({"world": match[1], "who": who, "return": value, "peer": row["peer"]})
    x, of = quantity("return", "return (right is better)"), whose(["Steward", "best of the others"])
    encoding = {"x": x, "y": names("world"), "color": of}
    return {**marks("point", values, encoding, **DOT), "width": 480, "height": {"step": 22}}


FIGURES = {
    "errors": lambda: lined(errors()),
    "gaps": lambda: lined(gaps()),
    "judged": lambda: lined(judged()),
}
"""By the name of its file: what draws it."""

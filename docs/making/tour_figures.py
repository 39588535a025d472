"""Figures of the tour's workload: what its samples say, and one run of it under the service's own engine."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from look import BAND, LINE, OTHER, TARGET, lined, marks

from app.charts.figures import Json, quantity
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.prediction import predict
from app.kinds.iterative.spec import Spec
from benchmarks.held_out.engine import Engine, fitted_model
from benchmarks.held_out.play import Report
from benchmarks.held_out.world import Profile
from workers.kinds.iterative.grid import Executions

TOUR = Path(__file__).resolve().parents[1] / "tour"
SLOWER = 1.1  # than the samples: the played training
NO_FEATURES = np.empty((1, 0))


@cache
def tour() -> Profile:
    """The workload and samples of the tour."""
    spec = Spec.model_validate(json.loads((TOUR / "workload.json").read_text()))
    rows: dict[str, list[list[float]]] = {}
    with (TOUR / "samples.csv").open() as file:
        for execution, *row in list(csv.reader(file))[1:]:
            rows.setdefault(execution, []).append([float(value) for value in row])
    return Profile(spec, Executions(tuple((name, np.array(one)) for name, one in rows.items())))


@cache
def predictions() -> list[dict[str, Any]]:
    """What the model fitted to the samples expects of an iteration, by GPUs."""
    layout, model = Layout(tour().spec), ModelTable.from_bytes(fitted_model(tour()))
    requests = [predict(layout, model, {"allocation": [f"gpus:{gpus}"]}) for gpus in range(1, 9)]
    bands = [one["predicted"]["iteration_seconds"] for one in requests]
    return [{"gpus": gpus, **band.model_dump()} for gpus, band in zip(range(1, 9), bands, strict=True)]


def belief() -> Json:
    """Samples, and the curve with its band that is fitted to them."""
    flat = tour().flat
    measured = [
        {"gpus": float(gpus), "seconds": float(seconds)}
        for gpus, seconds in zip(flat.allocations[:, 0], flat.metrics[:, 0], strict=True)
    ]
    x = quantity("gpus", "GPUs", zero=False, axis={"tickMinStep": 1, "format": "d"})
    rows = predictions()
    band = marks(
        "area", rows, {"x": x, "y": quantity("low", "seconds"), "y2": {"field": "high"}}, color=LINE, opacity=BAND
    )
    line = marks("line", rows, {"x": x, "y": quantity("mean", "seconds")}, color=LINE)
    points = marks("point", measured, {"x": x, "y": quantity("seconds", "seconds")}, color=OTHER, size=18, opacity=0.6)
    return {"layer": [band, line, points], "width": 620, "height": 240}


def played(seed: int = 0) -> list[dict[str, float]]:
    """One run that is a tenth slower than its samples: allocation, seconds and band of each iteration."""
    engine, generator = Engine(tour()), np.random.default_rng(seed)
    advice, elapsed, rows = engine.begin(NO_FEATURES, NO_FEATURES[:, None]), 0.0, []
    for iteration in range(tour().spec.iterations):
        gpus = float(advice.allocation[0, 0])
        seconds = SLOWER * (2 + 56 / gpus) * float(np.exp(generator.normal(0, 0.03)))
        elapsed += seconds
        low, high = (float(end[0, 0]) for end in (advice.low, advice.high) if end is not None)
        rows.append(
            {"iteration": iteration, "gpus": gpus, "seconds": seconds, "elapsed": elapsed, "low": low, "high": high}
        )
        report = Report(iteration, advice.allocation, np.array([[seconds]]), NO_FEATURES, np.empty((1, 0, 0)))
        if iteration + 1 < tour().spec.iterations:
            advice = engine.next(report)
    return rows


def planning() -> Json:
    """The same run from above: how long iterations took, what was allocated, and the way to the deadline."""
    rows = played()
    x = quantity("iteration", "iteration", scale={"nice": False})
    band = {"x": x, "y": quantity("low", "seconds"), "y2": {"field": "high"}}
    deadline = [{"at": tour().spec.metrics[0].target}]
    seconds = [
        marks("area", rows, band, color=LINE, opacity=BAND),
        marks("line", rows, {"x": x, "y": quantity("seconds", "seconds")}, color=LINE),
    ]
    elapsed = [
        marks("line", rows, {"x": x, "y": quantity("elapsed", "seconds")}, color=LINE),
        marks("rule", deadline, {"y": quantity("at", "seconds")}, color=TARGET, strokeDash=[6, 4]),
    ]
    gpus = marks("line", rows, {"x": x, "y": quantity("gpus", "GPUs")}, color=LINE, interpolate="step-after")
    panels = {
        "Seconds of each iteration, and the 90 % band that was predicted": (120, seconds),
        "Allocated": (80, [gpus]),
        "Elapsed, and the deadline": (120, elapsed),
    }
    return {
        "vconcat": [
            {"layer": layers, "width": 620, "height": height, "title": title}
            for title, (height, layers) in panels.items()
        ]
    }


FIGURES = {"belief": lambda: lined(belief()), "planning": lambda: lined(planning())}
"""By the name of its file: what draws it."""

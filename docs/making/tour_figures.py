"""Figures of the tour's workload: what its samples say, and one run of it under the service's own engine."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from look import BAND, LINE, OTHER, TARGET, lined

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.prediction import predict
from app.kinds.iterative.spec import Spec
from benchmarks.held_out.engine import Engine, fitted_model
from benchmarks.held_out.play import Report
from benchmarks.held_out.world import Profile
from workers.kinds.iterative.estimation.executions import Executions

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
    asked = [predict(layout, model, {"allocation": [f"gpus:{gpus}"]}) for gpus in range(1, 9)]
    bands = [one["predicted"]["iteration_seconds"] for one in asked]
    return [{"gpus": gpus, **band.model_dump()} for gpus, band in zip(range(1, 9), bands, strict=True)]


def belief() -> alt.LayerChart | alt.FacetChart:
    """Samples, and the curve with its band that is fitted to them."""
    flat = tour().flat
    measured = [
        {"gpus": float(gpus), "seconds": float(seconds)}
        for gpus, seconds in zip(flat.allocations[:, 0], flat.metrics[:, 0], strict=True)
    ]
    expected = alt.Chart(alt.InlineData(values=predictions())).encode(
        x=alt.X("gpus:Q", title="GPUs", axis=alt.Axis(tickMinStep=1, format="d"))
    )
    points = alt.Chart(alt.InlineData(values=measured)).mark_point(color=OTHER, size=18, opacity=0.6)
    return alt.layer(
        expected.mark_area(color=LINE, opacity=BAND).encode(y=alt.Y("low:Q", title="seconds"), y2="high:Q"),
        expected.mark_line(color=LINE).encode(y="mean:Q"),
        points.encode(x="gpus:Q", y="seconds:Q"),
    ).properties(width=620, height=240)


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


def planning() -> alt.VConcatChart:
    """The same run from above: how long iterations took, what was allocated, and the way to the deadline."""
    rows = played()
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("iteration:Q", scale=alt.Scale(nice=False)))
    deadline = alt.Chart(alt.InlineData(values=[{"at": tour().spec.metrics[0].target}]))
    return alt.vconcat(
        alt.layer(
            base.mark_area(color=LINE, opacity=BAND).encode(y=alt.Y("low:Q", title="seconds"), y2="high:Q"),
            base.mark_line(color=LINE).encode(y="seconds:Q"),
        ).properties(width=620, height=120, title="Seconds of each iteration, and the 90 % band that was predicted"),
        base.mark_line(color=LINE, interpolate="step-after")
        .encode(y=alt.Y("gpus:Q", title="GPUs"))
        .properties(width=620, height=80, title="Allocated"),
        alt.layer(
            base.mark_line(color=LINE).encode(y=alt.Y("elapsed:Q", title="seconds")),
            deadline.mark_rule(color=TARGET, strokeDash=[6, 4]).encode(y="at:Q"),
        ).properties(width=620, height=120, title="Elapsed, and the deadline"),
    )


FIGURES = {"belief": lambda: lined(belief()), "planning": lambda: lined(planning())}
"""By the name of its file: what draws it."""

"""The demo's picture: PNG and HTML from one definition, made without a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt

from app.demo.sharing.play import Played
from app.demo.sharing.workload import JOBS

WIDTH = 760
COLOURS = ["#1971c2", "#74c0fc", "#e8590c", "#ffc078"]
RUN_COLOURS = ["#0b7285", "#862e9c", "#adb5bd"]


def save(played: Sequence[Played], folder: Path) -> list[Path]:
    """Write ``cluster.png`` and ``cluster.html`` (all it needs inside it); the first run is Steward's."""
    chart = picture(played)
    folder.mkdir(parents=True, exist_ok=True)
    png, html = folder / "cluster.png", folder / "cluster.html"
    chart.save(str(png), scale_factor=1.5)
    chart.save(str(html), inline=True)
    return [png, html]


def picture(played: Sequence[Played]) -> alt.VConcatChart:
    """Who had what in each run, what Steward's jobs learnt meanwhile, and how long each job took."""
    last = max(one.seconds for one in played)
    panels = [*(_given(one, last) for one in played), _learnt(played[0], last), _completion(played)]
    return (
        alt.vconcat(*panels)
        .resolve_scale(color="independent")
        .configure_title(anchor="start", fontSize=13)
        .configure_view(stroke=None)
    )


def _given(one: Played, last: float) -> alt.Chart:
    bars = (
        alt.Chart(alt.InlineData(values=list(_spans(one))))
        .mark_rect()
        .encode(x=_second("from", last), x2="to:Q", y=alt.Y("low:Q", title="slices"), y2="high:Q", color=_job())
    )
    return bars.properties(width=WIDTH, height=110, title=f"Who had what, {one.name}")


def _spans(one: Played) -> Iterator[dict[str, Any]]:
    """What each job had from one change to the next, one on top of the other."""
    moments = [*one.given, (one.seconds, {})]
    for (at, slices), (following, _) in pairwise(moments):
        low = 0
        for job in JOBS:
            high = low + slices.get(job.name, 0)
            if high > low:
                yield {"from": at, "to": following, "low": low, "high": high, "job": job.name}
            low = high


def _learnt(one: Played, last: float) -> alt.Chart:
    values = [{"second": at, "job": job.name, "accuracy": accuracy} for at, job, accuracy in one.learnt]
    lines = (
        alt.Chart(alt.InlineData(values=values))
        .mark_line(interpolate="step-after")
        .encode(x=_second("second", last), y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False)), color=_job())
    )
    return lines.properties(width=WIDTH, height=110, title=f"Accuracy on digits that were not trained on, {one.name}")


def _completion(played: Sequence[Played]) -> alt.Chart:
    names = [one.name for one in played]
    values = [
        {"run": one.name, "job": job.name, "seconds": seconds}
        for one in played
        for job, seconds in one.completion.items()
    ]
    colour = alt.Color("run:N", title=None, scale=alt.Scale(domain=names, range=RUN_COLOURS[: len(names)]))
    bars = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar()
        .encode(
            y=alt.Y("job:N", title=None, sort=[job.name for job in JOBS]),
            yOffset=alt.YOffset("run:N", sort=names),
            x=alt.X("seconds:Q", title="seconds from arrival to end"),
            color=colour,
        )
    )
    return bars.properties(width=WIDTH, height=150, title="How long each job took")


def _second(field: str, last: float) -> alt.X:
    return alt.X(f"{field}:Q", title="second", scale=alt.Scale(domain=[0, last], nice=False))


def _job() -> alt.Color:
    names = [job.name for job in JOBS]
    return alt.Color("job:N", title=None, scale=alt.Scale(domain=names, range=COLOURS), legend=alt.Legend(orient="top"))

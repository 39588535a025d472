"""The demo's picture: PNG and HTML from one definition, made without a network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from app.demo.drive import Row, Run

WIDTH = 760
COLOURS = ["#0b7285", "#868e96", "#e8590c"]


def save(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write ``demo.png`` and ``demo.html`` (all it needs inside it); the first run is Steward's."""
    chart = picture(runs)
    folder.mkdir(parents=True, exist_ok=True)
    png, html = folder / "demo.png", folder / "demo.html"
    chart.save(str(png), scale_factor=1.5)
    chart.save(str(html), inline=True)
    return [png, html]


def picture(runs: Sequence[Run]) -> alt.VConcatChart:
    """Seconds per iteration with the predicted band, then the allocation, then the way to the deadline."""
    colour = alt.Color(
        "run:N", title=None, sort=[run.name for run in runs], legend=alt.Legend(orient="top", labelLimit=400)
    )
    colour = colour.scale(domain=[run.name for run in runs], range=COLOURS[: len(runs)])
    data = alt.InlineData(values=[_point(run, row) for run in runs for row in run.rows])
    base = alt.Chart(data).encode(x=_iteration(), color=colour)
    panels = [
        alt.layer(_shade(runs[0]), _band(runs[0]), base.mark_line(point=True).encode(y=_axis("seconds", "seconds"))),
        alt.layer(_shade(runs[0]), base.mark_line(interpolate="step").encode(y=_axis("percent", "CPU, % of a core"))),
        alt.layer(_shade(runs[0]), base.mark_line().encode(y=_axis("elapsed", "seconds gone by")), _deadline(runs[0])),
    ]
    titles = [
        "How long each iteration took; the band is what Steward predicted for its own run (90 %)",
        "What was allocated",
        "The way to the deadline (dashed); shaded: a neighbour takes CPU under the same limit",
    ]
    sized = [
        panel.properties(width=WIDTH, height=170, title=title) for panel, title in zip(panels, titles, strict=True)
    ]
    return alt.vconcat(*sized).configure_title(anchor="start", fontSize=13).configure_view(stroke=None)


def _axis(field: str, title: str) -> alt.Y:
    return alt.Y(f"{field}:Q", title=title)


def _point(run: Run, row: Row) -> dict[str, Any]:
    return {
        "run": run.name,
        "iteration": row.measured.iteration,
        "seconds": round(row.measured.seconds, 4),
        "percent": row.measured.percent,
        "elapsed": round(row.elapsed, 4),
    }


def _band(run: Run) -> alt.Chart:
    known = [row for row in run.rows if row.advice.low is not None]
    values = [{"iteration": r.measured.iteration, "low": r.advice.low, "high": r.advice.high} for r in known]
    marked = alt.Chart(alt.InlineData(values=values)).mark_area(opacity=0.2, color=COLOURS[0])
    return marked.encode(x=_iteration(), y=_axis("low", "seconds"), y2="high:Q")


def _shade(run: Run) -> alt.Chart:
    disturbed = [row.measured.iteration for row in run.rows if row.disturbed]
    values = [{"from": disturbed[0] - 0.5, "to": disturbed[-1] + 0.5}] if disturbed else []
    marked = alt.Chart(alt.InlineData(values=values)).mark_rect(opacity=0.15, color="#fab005")
    return marked.encode(x=_iteration("from"), x2="to:Q")


def _deadline(run: Run) -> alt.Chart:
    data = alt.InlineData(values=[{"deadline": run.deadline}])
    return alt.Chart(data).mark_rule(strokeDash=[6, 4], color="#c92a2a").encode(y=_axis("deadline", "seconds gone by"))


def _iteration(field: str = "iteration") -> alt.X:
    return alt.X(f"{field}:Q", title="iteration", scale=alt.Scale(nice=False), axis=alt.Axis(tickMinStep=1))

"""The demo's picture: PNG and HTML from one definition, made without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from app.demo.serving.load import BURST
from app.demo.serving.networks import SIZES
from app.demo.serving.play import Played, Response

WIDTH = 760
BAR = 18  # pixels
COLOURS = ["#0b7285", "#e8590c", "#862e9c", "#2b8a3e", "#adb5bd"]
SIZE_COLOURS = ["#ffd43b", "#ff922b", "#c2255c", "#212529"]
GIVEN_UP = "given up"


def save(played: Sequence[Played], seconds: float, folder: Path) -> list[Path]:
    """Write ``inference.png`` and ``inference.html`` (all it needs inside it); the first run is Steward's."""
    chart = picture(played, seconds)
    folder.mkdir(parents=True, exist_ok=True)
    png, html = folder / "inference.png", folder / "inference.html"
    chart.save(str(png), scale_factor=1.5)
    chart.save(str(html), inline=True)
    return [png, html]


def picture(played: Sequence[Played], seconds: float) -> alt.VConcatChart:
    """Arrivals, then queues, then what Steward chose, then quality per user."""
    panels = [
        alt.layer(_shade(seconds), marked).properties(width=WIDTH, height=140, title=title)
        for marked, title in (_arrivals(played[0]), _queues(played), _chosen(played[0]), _quality(played))
    ]
    return (
        alt.vconcat(*panels)
        .resolve_scale(color="independent")
        .configure_title(anchor="start", fontSize=13)
        .configure_view(stroke=None)
    )


def _arrivals(one: Played) -> tuple[alt.Chart, str]:
    values = [{"second": _middle(r), "user": r.request.user} for r in one.responses]
    bars = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(size=BAR)
        .encode(
            x=_second(), y=alt.Y("count():Q", title="requests"), color=_colour("user", None, ["#1971c2", "#a5d8ff"])
        )
    )
    return bars, "Requests that came in each second; shaded: the burst"


def _queues(played: Sequence[Played]) -> tuple[alt.Chart, str]:
    values = [{"second": at, "run": one.name, "waiting": n} for one in played for at, n in one.waiting]
    lines = (
        alt.Chart(alt.InlineData(values=values))
        .mark_line(interpolate="step-after")
        .encode(x=_second(), y=alt.Y("waiting:Q", title="requests"), color=_run_colour(played))
    )
    return lines, "How many waited"


def _chosen(one: Played) -> tuple[alt.Chart, str]:
    values = [{"second": _middle(r), "network": r.variant or GIVEN_UP} for r in one.responses]
    order = [*SIZES, GIVEN_UP]
    bars = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(size=BAR)
        .encode(
            x=_second(),
            y=alt.Y("count():Q", title="requests"),
            color=_colour("network", order, SIZE_COLOURS),
        )
    )
    return bars, f"Which network answered them, under {one.name}"


def _quality(played: Sequence[Played]) -> tuple[alt.Chart, str]:
    values = [
        {"second": _middle(r), "run": one.name, "user": r.request.user, "quality": r.quality}
        for one in played
        for r in one.responses
    ]
    lines = (
        alt.Chart(alt.InlineData(values=values))
        .mark_line()
        .encode(
            x=_second(),
            y=alt.Y("mean(quality):Q", title="quality", scale=alt.Scale(domain=[0, 1])),
            color=_run_colour(played),
            strokeDash=alt.StrokeDash("user:N", title=None, legend=alt.Legend(orient="top")),
        )
    )
    return lines, "Mean response quality of the requests that came in each second, by user"


def _middle(response: Response) -> float:
    """Of the second in which it came."""
    return int(response.request.at) + 0.5


def _second(field: str = "second") -> alt.X:
    return alt.X(f"{field}:Q", title="second", scale=alt.Scale(nice=False))


def _colour(field: str, order: list[str] | None, colours: list[str]) -> alt.Color:
    scale: dict[str, Any] = {"range": colours} if order is None else {"domain": order, "range": colours}
    return alt.Color(f"{field}:N", title=None, scale=alt.Scale(**scale), legend=alt.Legend(orient="top"))


def _run_colour(played: Sequence[Played]) -> alt.Color:
    return _colour("run", [one.name for one in played], COLOURS[: len(played)])


def _shade(seconds: float) -> alt.Chart:
    values = [{"from": BURST[0] * seconds, "to": BURST[1] * seconds}]
    marked = alt.Chart(alt.InlineData(values=values)).mark_rect(opacity=0.15, color="#fab005")
    return marked.encode(x=_second("from"), x2="to:Q")

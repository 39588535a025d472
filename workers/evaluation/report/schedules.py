"""Plots of schedules, from their pictures: what a problem's ``pictures`` gives where tasks are scheduled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt

from workers.evaluation.report.charts import ROW, WIDTH, data

Json = dict[str, Any]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Told apart by those who see no red or green, too (Okabe and Ito 2008)."""
MOST_LINES = len(COLOURS)  # of one plot; the bars show all
SCALES = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (300.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
LARGEST_HEIGHT = 420
SLOWED = (1.1, 2.0, 5.0, 20.0)  # where colours of slowdowns change: few tasks have most of what a scale would span
SLOWED_COLOURS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")  # of viridis
GROUPS = 12  # workflows that colours can tell apart
BINS = 80  # of lines; pictures have more of them than can be told apart


class Clock:
    """Seconds in a unit that suits a span."""

    def __init__(self, first: float, last: float) -> None:
        self.first = first
        _, self.seconds, self.unit = next(scale for scale in SCALES if last - first >= scale[0])

    def elapsed(self, seconds: float) -> float:
        """How long after the first second."""
        return round((seconds - self.first) / self.seconds, 5)

    def axis(self, domain: tuple[float, float] | None = None) -> alt.X:
        """The axis of time, from what is shown or of a ``domain``."""
        scale = alt.Scale(nice=False, zero=False) if domain is None else alt.Scale(nice=False, domain=list(domain))
        return alt.X("time:Q", title=f"time ({self.unit})", scale=scale)


class Frame(NamedTuple):
    """What Gantt charts of one trace have in common: time.

    Attributes:
        clock: of all of them.
        domain: the first and the last moment shown, on the clock.
    """

    clock: Clock
    domain: tuple[float, float]


def frames(pictures: Sequence[Json]) -> list[Frame]:
    """One frame for all whose stretches overlap; where they don't, each has its own time."""
    if not pictures:
        return []
    stretches = [(picture["gantt"]["from"], picture["gantt"]["to"]) for picture in pictures]
    together = max(first for first, _ in stretches) < min(last for _, last in stretches)
    found = []
    for picture, stretch in zip(pictures, stretches, strict=True):
        alike = pictures if together else [picture]
        times = [one["over_time"]["time"] for one in alike]
        clock = Clock(min(time[0] for time in times), max(time[-1] for time in times))
        first = min(one["gantt"]["from"] for one in alike)
        last = max(one["gantt"]["to"] for one in alike)
        found.append(Frame(clock, (clock.elapsed(first), clock.elapsed(max(last, stretch[1])))))
    return found


def gantt(picture: Json, frame: Frame) -> Any | None:
    """When each task ran and on which processors; its colour is its slowdown, or its workflow where there are some."""
    found = picture["gantt"]
    if not found["bars"]:
        return None
    clock = frame.clock
    rows = [
        {
            "time": clock.elapsed(bar["start"]),
            "until": clock.elapsed(bar["end"]),
            "low": bar["lane"],
            "high": bar["lane"] + bar["lanes"],
            "slowdown": bar["slowdown"],
            "group": f"workflow {bar['group']}",
        }
        for bar in found["bars"]
    ]
    lanes = sum(node["lanes"] for node in found["nodes"])
    scale = alt.Scale(domain=[0, lanes], nice=False)
    bars = alt.Chart(data(rows)).mark_rect(stroke="white", strokeWidth=0.4 if lanes < 1000 else 0.1)
    bars = bars.encode(
        x=clock.axis(frame.domain),
        x2="until:Q",
        y=alt.Y("low:Q", title=None if len(found["nodes"]) > 1 else "processor", scale=scale, axis=_lanes(found)),
        y2="high:Q",
        color=_bar_colour(found["bars"]),
    )
    return alt.layer(bars, *_borders(found, clock, lanes)).properties(width=WIDTH, height=_height(lanes))


def _height(lanes: int) -> float:
    return float(min(max(lanes * 14, 120), LARGEST_HEIGHT))


def _lanes(found: Json) -> alt.Axis:
    """Processors of one node have numbers; several nodes have names instead."""
    return alt.Axis(grid=False) if len(found["nodes"]) == 1 else alt.Axis(labels=False, ticks=False, grid=False)


def _borders(found: Json, clock: Clock, lanes: int) -> list[Any]:
    """Lines between nodes, and their names."""
    nodes = found["nodes"]
    if len(nodes) == 1:
        return []
    from_second = clock.elapsed(found["from"])
    rows = [{"low": node["first"], "middle": node["first"] + node["lanes"] / 2, "node": node["name"]} for node in nodes]
    scale = alt.Scale(domain=[0, lanes], nice=False)
    lines = alt.Chart(data(rows)).mark_rule(color="#ced4da").encode(y=alt.Y("low:Q", scale=scale))
    step = -(-len(rows) * 11 // int(_height(lanes)))  # names that stand on each other can't be read
    named = [{**row, "time": from_second} for row in rows[::step]]
    texts = alt.Chart(data(named)).mark_text(align="right", dx=-4, fontSize=9, color="#495057")
    return [lines, texts.encode(x="time:Q", y=alt.Y("middle:Q", scale=scale), text="node:N")]


def _bar_colour(bars: Sequence[Json]) -> alt.Color:
    groups = sorted({bar["group"] for bar in bars if bar["group"] >= 0})
    if 1 < len(groups) <= GROUPS:
        scale = alt.Scale(domain=[f"workflow {group}" for group in groups], scheme="tableau20")
        return alt.Color("group:N", title=None, scale=scale)
    scale = alt.Scale(type="threshold", domain=list(SLOWED), range=list(SLOWED_COLOURS))
    return alt.Color("slowdown:Q", title="slowdown", scale=scale, legend=alt.Legend(orient="right"))


def ranked(pictures: Sequence[Json]) -> list[Json]:
    """By mean slowdown, then by makespan: the best first."""
    return sorted(pictures, key=lambda one: (one["figures"]["slowdown"], one["figures"]["makespan"], one["name"]))


def chosen(pictures: Sequence[Json]) -> list[Json]:
    """The few that lines and Gantt charts show: the first one named, and the best of the others, in their ranks."""
    others = ranked(pictures[1:])[: MOST_LINES - 1]
    return ranked([*pictures[:1], *others])


def bars(pictures: Sequence[Json], field: str, title: str) -> Any | None:
    """One figure of every strategy, the smallest first; none where they don't differ."""
    values = {str(picture["name"]): float(picture["figures"][field]) for picture in pictures}
    if len(values) < 2 or max(values.values()) - min(values.values()) <= 1e-9 * max(map(abs, values.values())):
        return None
    names = sorted(values, key=lambda name: values[name])
    rows = [{"strategy": name, "value": values[name]} for name in names]
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("strategy:N", title=None, sort=names, axis=alt.Axis(labelLimit=200)),
        x=alt.X("value:Q", title=title, scale=alt.Scale(zero=True)),
    )
    figures = base.mark_text(align="left", dx=4, fontSize=10).encode(text=alt.Text("value:Q", format=",.4~r"))
    return alt.layer(base.mark_bar(color=COLOURS[0], height={"band": 0.7}), figures).properties(
        width=WIDTH, height=ROW * len(rows)
    )


def utilisation(pictures: Sequence[Json]) -> Any | None:
    """Busy share of the processors over time, by strategy."""
    return _lines(pictures, "utilisation", "busy processors", alt.Axis(format="%"), alt.Scale(domain=[0, 1]))


def queue(pictures: Sequence[Json]) -> Any | None:
    """Tasks that are ready and wait, over time, by strategy."""
    return _lines(pictures, "queue", "tasks that wait", alt.Axis(), alt.Scale(zero=True))


def _lines(pictures: Sequence[Json], field: str, title: str, axis: alt.Axis, scale: alt.Scale) -> Any | None:
    if not pictures:
        return None
    times = [picture["over_time"]["time"] for picture in pictures]
    clock = Clock(min(time[0] for time in times), max(time[-1] for time in times))
    rows = [
        {"strategy": picture["name"], "time": clock.elapsed(time), "value": value}
        for picture in pictures
        for time, value in _coarser(picture["over_time"]["time"], picture["over_time"][field])
    ]
    chart = alt.Chart(data(rows)).mark_line(interpolate="step-after", strokeWidth=1.5)
    return chart.encode(
        x=clock.axis(), y=alt.Y("value:Q", title=title, axis=axis, scale=scale), color=colour(pictures)
    ).properties(width=WIDTH, height=150)


def _coarser(edges: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Means over at most ``BINS`` equal bins, each with its left edge; the last one goes on to the last edge."""
    wide = -(-len(values) // BINS)
    means = [sum(part) / len(part) for at in range(0, len(values), wide) for part in [values[at : at + wide]]]
    return list(zip([*edges[:-1:wide], edges[-1]], [*means, *means[-1:]], strict=True))


def slowdowns(found: Mapping[str, Json]) -> Any | None:
    """Share of the tasks that are slowed down at least so much, by strategy; both axes logarithmic."""
    rows = [
        {"strategy": name, "slowdown": max(value, 1.0), "share": 1 - share}
        for name, drawn in found.items()
        for share, value in zip(drawn["share"], drawn["value"], strict=True)
        if share < 1
    ]
    if not rows:
        return None
    most = max(10.0, *(row["slowdown"] for row in rows))
    least = min(row["share"] for row in rows)
    chart = alt.Chart(data(rows)).mark_line()
    return chart.encode(
        x=alt.X("slowdown:Q", title="bounded slowdown", scale=alt.Scale(type="log", domain=[1, most])),
        y=alt.Y(
            "share:Q",
            title="share of tasks slowed down more",
            axis=alt.Axis(format="~%"),
            scale=alt.Scale(type="log", domain=[min(least, 0.1), 1]),
        ),
        color=colour([{"name": name} for name in found]),
    ).properties(width=WIDTH, height=220)


def front(points: Sequence[Json]) -> Any | None:
    """Cost against makespan: on the line are those that nothing beats in both. Points: name, cost, makespan."""
    if not points:
        return None
    clock = Clock(0.0, max(point["makespan"] for point in points))
    rows = [{"strategy": p["name"], "time": clock.elapsed(p["makespan"]), "cost": p["cost"]} for p in points]
    best = undominated(rows)
    scale = alt.Scale(zero=False, padding=20)
    base = alt.Chart(data(rows))
    line = alt.Chart(data(best)).mark_line(interpolate="step-after", color="#adb5bd", strokeDash=[4, 3])
    x = alt.X("time:Q", title=f"makespan ({clock.unit})", scale=scale)
    y = alt.Y("cost:Q", title="cost", scale=scale)
    dots = base.mark_point(filled=True, size=80, opacity=1, color=COLOURS[0]).encode(x=x, y=y)
    names = base.mark_text(align="left", dx=8, fontSize=10).encode(x=x, y=y, text="strategy:N")
    return alt.layer(line.encode(x=x, y=y), dots, names).properties(width=WIDTH - 120, height=260)


def undominated(rows: Sequence[Json]) -> list[Json]:
    """Those that no other is at least as good as in ``time`` and ``cost`` and better in one, by time."""
    best: list[Json] = []
    for row in sorted(rows, key=lambda row: (row["time"], row["cost"])):
        if not best or row["cost"] < best[-1]["cost"]:
            best.append(row)
    return best


def colour(pictures: Sequence[Json]) -> alt.Color:
    """One colour per strategy, in the order in which they are named."""
    names = list(dict.fromkeys(str(picture["name"]) for picture in pictures))
    scale = alt.Scale(domain=names, range=COLOURS[: len(names)])
    legend = alt.Legend(orient="right", labelLimit=200) if len(names) > 1 else None
    return alt.Color("strategy:N", title=None, scale=scale, legend=legend)

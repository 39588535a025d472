"""Vega-Lite charts of schedules, and heat maps of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.figures import Json, layer, quantity
from app.kinds.contract.policy import Situation
from workers.evaluation.problem import Axis, Problem
from workers.evaluation.report.charts import ROW, WIDTH, layers

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours distinguishable without red-green vision (Okabe and Ito 2008)."""
MOST_LINES = len(COLOURS)  # strategies in one line chart; bar charts show all
SCALES = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (300.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
LARGEST_HEIGHT = 420
SLOWED = (1.1, 2.0, 5.0, 20.0)  # slowdowns at which the colour changes, as most are small
SLOWED_COLOURS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")  # of viridis
GROUPS = 12  # most workflows with distinguishable colours
BINS = 80  # most bins of a line


class Clock:
    """Conversion of seconds to the unit (days, hours, minutes or seconds) that suits a time span.

    Args:
        first, last: ends of the span, in seconds.
    """

    def __init__(self, first: float, last: float) -> None:
        self.first = first
        _, self.seconds, self.unit = next(scale for scale in SCALES if last - first >= scale[0])

    def elapsed(self, seconds: float) -> float:
        """Return the time from the span's start to ``seconds`` (same origin as ``first``), in the clock's unit."""
        return round((seconds - self.first) / self.seconds, 5)

    def axis(self, domain: tuple[float, float] | None = None) -> Json:
        """Return the Vega-Lite channel of the field ``time``, limited to ``domain`` (in the clock's unit) if given."""
        within = {} if domain is None else {"domain": list(domain)}
        return quantity("time", f"time ({self.unit})", zero=False, scale={"nice": False, **within})


class Frame(NamedTuple):
    """Common time axis of the Gantt charts of one trace.

    Attributes:
        clock: time unit of all charts.
        domain: first and last time shown, in the clock's unit.
    """

    clock: Clock
    domain: tuple[float, float]


def frames(pictures: Sequence[Json]) -> list[Frame]:
    """Return the time frame of each picture: a common one if all their time spans overlap, else one each."""
    if not pictures:
        return []
    stretches = [(picture["gantt"]["from"], picture["gantt"]["to"]) for picture in pictures]
    together = max(first for first, _ in stretches) < min(last for _, last in stretches)
    frames = []
    for picture, stretch in zip(pictures, stretches, strict=True):
        alike = pictures if together else [picture]
        times = [one["over_time"]["time"] for one in alike]
        clock = Clock(min(time[0] for time in times), max(time[-1] for time in times))
        first = min(one["gantt"]["from"] for one in alike)
        last = max(one["gantt"]["to"] for one in alike)
        frames.append(Frame(clock, (clock.elapsed(first), clock.elapsed(max(last, stretch[1])))))
    return frames


def gantt(picture: Json, frame: Frame) -> Json | None:
    """Return a Gantt chart of tasks over processors, coloured by workflow or else by slowdown; None without tasks."""
    gantt = picture["gantt"]
    if not gantt["bars"]:
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
        for bar in gantt["bars"]
    ]
    lanes = sum(node["lanes"] for node in gantt["nodes"])
    title = None if len(gantt["nodes"]) > 1 else "processor"
    encoding = {
        "x": clock.axis(frame.domain),
        "x2": {"field": "until"},
        "y": quantity(
            "low",
            title,
            scale={"domain": [0, lanes], "nice": False},
            axis={"grid": False} if len(gantt["nodes"]) == 1 else {"labels": False, "ticks": False, "grid": False},
        ),
        "y2": {"field": "high"},
        "color": _bar_colour(gantt["bars"]),
    }
    bars = layer("rect", "block", rows, encoding, stroke="white", strokeWidth=0.4 if lanes < 1000 else 0.1)
    return layers(bars, *_borders(gantt, clock, lanes), width=WIDTH, height=_height(lanes))


def _height(lanes: int) -> float:
    return float(min(max(lanes * 14, 120), LARGEST_HEIGHT))


def _borders(result: Json, clock: Clock, lanes: int) -> list[Json]:
    nodes = result["nodes"]
    if len(nodes) == 1:
        return []
    from_second = clock.elapsed(result["from"])
    rows = [{"low": node["first"], "middle": node["first"] + node["lanes"] / 2, "node": node["name"]} for node in nodes]
    scale = {"domain": [0, lanes], "nice": False}
    lines = layer("rule", "series", rows, {"y": quantity("low", None, scale=scale)}, color="#ced4da", strokeWidth=1)
    step = -(-len(rows) * 11 // int(_height(lanes)))  # avoid overlapping names
    named = [{**row, "time": from_second} for row in rows[::step]]
    place = {"x": clock.axis(), "y": quantity("middle", None, scale=scale)}
    text = {"text": {"field": "node", "type": "nominal"}}
    texts = layer("text", "note", named, place | text, align="right", dx=-4, fontSize=9)
    return [lines, texts]


def _bar_colour(bars: Sequence[Json]) -> Json:
    groups = sorted({bar["group"] for bar in bars if bar["group"] >= 0})
    if 1 < len(groups) <= GROUPS:
        colours = {"domain": [f"workflow {group}" for group in groups], "scheme": "tableau20"}
        return {"field": "group", "type": "nominal", "title": None, "scale": colours}
    scale = {"type": "threshold", "domain": list(SLOWED), "range": list(SLOWED_COLOURS)}
    named = {"field": "slowdown", "type": "quantitative", "title": "slowdown"}
    return {**named, "scale": scale, "legend": {"orient": "right"}}


def rank_pictures(pictures: Sequence[Json]) -> list[Json]:
    """Return the pictures in ascending order of mean slowdown, then of makespan, then of name."""
    return sorted(pictures, key=lambda one: (one["figures"]["slowdown"], one["figures"]["makespan"], one["name"]))


def choose_pictures(pictures: Sequence[Json]) -> list[Json]:
    """Return at most 6 pictures (`MOST_LINES`) for line and Gantt charts: the first, and those of least slowdown."""
    others = rank_pictures(pictures[1:])[: MOST_LINES - 1]
    return rank_pictures([*pictures[:1], *others])


def bars(pictures: Sequence[Json], field: str, title: str) -> Json | None:
    """Return a bar chart of the figure ``field`` by strategy, ascending; None for one strategy or equal values."""
    values = {str(picture["name"]): float(picture["figures"][field]) for picture in pictures}
    if len(values) < 2 or max(values.values()) - min(values.values()) <= 1e-9 * max(map(abs, values.values())):
        return None
    names = sorted(values, key=lambda name: values[name])
    rows = [{"strategy": name, "value": values[name]} for name in names]
    y = {"field": "strategy", "type": "nominal", "title": None, "sort": names, "axis": {"labelLimit": 200}}
    x = quantity("value", title)
    text = {"field": "value", "type": "quantitative", "format": ",.4~r"}
    return layers(
        layer("bar", "bar", rows, {"x": x, "y": y}, color=COLOURS[0], height={"band": 0.7}),
        layer("text", "cell", rows, {"x": x, "y": y, "text": text}, align="left", dx=4, fontSize=10),
        width=WIDTH,
        height=ROW * len(rows),
    )


def utilisation(pictures: Sequence[Json]) -> Json | None:
    """Return a chart of the share of busy processors over time, by strategy; None without pictures."""
    return _lines(pictures, "utilisation", "busy processors", {"axis": {"format": "%"}, "scale": {"domain": [0, 1]}})


def queue(pictures: Sequence[Json]) -> Json | None:
    """Return a chart of the number of waiting tasks over time, by strategy; None without pictures."""
    return _lines(pictures, "queue", "pending tasks", {})


def _lines(pictures: Sequence[Json], field: str, title: str, more: Json) -> Json | None:
    if not pictures:
        return None
    times = [picture["over_time"]["time"] for picture in pictures]
    clock = Clock(min(time[0] for time in times), max(time[-1] for time in times))
    rows = [
        {"strategy": picture["name"], "time": clock.elapsed(time), "value": value}
        for picture in pictures
        for time, value in _coarser(picture["over_time"]["time"], picture["over_time"][field])
    ]
    encoding = {"x": clock.axis(), "y": quantity("value", title, **more), "color": colour(pictures)}
    line = layer("line", "series", rows, encoding, interpolate="step-after", strokeWidth=1.5)
    return {**line, "width": WIDTH, "height": 150}


def _coarser(edges: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Average ``values`` over at most 80 bins (`BINS`); return pairs of left edge and mean, the last mean twice."""
    wide = -(-len(values) // BINS)
    means = [sum(part) / len(part) for at in range(0, len(values), wide) for part in [values[at : at + wide]]]
    return list(zip([*edges[:-1:wide], edges[-1]], [*means, *means[-1:]], strict=True))


def slowdowns(items: Mapping[str, Json]) -> Json | None:
    """Return a chart, on logarithmic axes, of the share of tasks whose bounded slowdown exceeds x, by strategy.

    ``items`` has each strategy's quantiles: lists ``value`` and ``share`` (0 to 1). None without data.
    """
    rows = [
        {"strategy": name, "slowdown": max(value, 1.0), "share": 1 - share}
        for name, drawn in items.items()
        for share, value in zip(drawn["share"], drawn["value"], strict=True)
        if share < 1
    ]
    if not rows:
        return None
    most = max(10.0, *(row["slowdown"] for row in rows))
    least = min(row["share"] for row in rows)
    across, up = {"type": "log", "domain": [1, most]}, {"type": "log", "domain": [min(least, 0.1), 1]}
    share = {"title": "share of tasks slowed down more", "axis": {"format": "~%"}}
    encoding = {
        "x": {"field": "slowdown", "type": "quantitative", "title": "bounded slowdown", "scale": across},
        "y": {"field": "share", "type": "quantitative", **share, "scale": up},
        "color": colour([{"name": name} for name in items]),
    }
    return {**layer("line", "series", rows, encoding), "width": WIDTH, "height": 220}


def front(points: Sequence[Json]) -> Json | None:
    """Return a chart of ``cost`` (currency) against ``makespan`` (seconds) with the Pareto front; None if empty."""
    if not points:
        return None
    clock = Clock(0.0, max(point["makespan"] for point in points))
    rows = [{"strategy": p["name"], "time": clock.elapsed(p["makespan"]), "cost": p["cost"]} for p in points]
    best = pareto_front(rows)
    x, y = (
        quantity(field, title, zero=False, scale={"padding": 20})
        for field, title in (("time", f"makespan ({clock.unit})"), ("cost", "cost"))
    )
    name = {"field": "strategy", "type": "nominal"}
    return layers(
        layer("line", "series", best, {"x": x, "y": y}, interpolate="step-after", color="#adb5bd", strokeDash=[4, 3]),
        layer("point", "cell", rows, {"x": x, "y": y}, filled=True, size=80, opacity=1, color=COLOURS[0]),
        layer("text", "cell", rows, {"x": x, "y": y, "text": name}, align="left", dx=8, fontSize=10),
        width=WIDTH - 120,
        height=260,
    )


def pareto_front(rows: Sequence[Json]) -> list[Json]:
    """Return the rows on the Pareto front of minimal ``time`` and ``cost``, in ascending order of time."""
    best: list[Json] = []
    for row in sorted(rows, key=lambda row: (row["time"], row["cost"])):
        if not best or row["cost"] < best[-1]["cost"]:
            best.append(row)
    return best


def colour(pictures: Sequence[Json]) -> Json:
    """Return the Vega-Lite colour channel of the field ``strategy``, in the order of the pictures' names."""
    names = list(dict.fromkeys(str(picture["name"]) for picture in pictures))
    scale = {"domain": names, "range": list(COLOURS[: len(names)])}
    legend = {"orient": "right", "labelLimit": 200} if len(names) > 1 else None
    return {"field": "strategy", "type": "nominal", "title": None, "scale": scale, "legend": legend}


# Heat map of a policy's mean action over two quantities of the situation.


class HeatMap:
    """Sums and counts, [2, Y, X], of a policy's values in Y × X bins of a problem's axes; outer bins take outliers."""

    def __init__(self, problem: Problem) -> None:
        self.problem, axes = problem, problem.heat_map_axes
        self.sums: NDArray[np.float64] = np.zeros((2, len(axes.y.edges) - 1, len(axes.x.edges) - 1))

    def watch(self, situation: Situation, action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:
        """Add the values of actions [B] to the bins, except NaN and those of ended episodes (not ``going`` [B])."""
        x, y, value = self.problem.heat_map_points(situation, action)
        shown = going & ~np.isnan(value)
        x, y, value = x[shown], y[shown], value[shown]
        place = _bin(self.problem.heat_map_axes.y, y), _bin(self.problem.heat_map_axes.x, x)
        np.add.at(self.sums[0], place, value)
        np.add.at(self.sums[1], place, 1)


def _bin(axis: Axis, values: NDArray[np.floating]) -> NDArray[np.intp]:
    return np.searchsorted(axis.edges[1:-1], values, side="right")


def heat_map_json(problem: Problem, sums: NDArray[np.float64]) -> dict[str, Any]:
    """Return the heat map of ``sums`` [2, Y, X] as JSON values: axes, means (None for an empty bin) and counts."""
    axes, (total, count) = problem.heat_map_axes, sums
    mean = [[float(t / c) if c else None for t, c in zip(*row, strict=True)] for row in zip(total, count, strict=True)]
    return {
        "x": {"name": axes.x.name, "edges": list(axes.x.edges)},
        "y": {"name": axes.y.name, "edges": list(axes.y.edges)},
        "value": {"name": axes.value, "mean": mean},
        "count": [[int(c) for c in row] for row in count],
    }

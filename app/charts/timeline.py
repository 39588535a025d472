"""Charts over time or iterations: curves, counts, shares, Gantt charts, forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from app.charts import text
from app.charts.figures import (
    LIGHT_COLOURS,
    Figure,
    Json,
    amount_axis,
    colour_channel,
    count_axis,
    layer,
    layer_charts,
    quantity,
    span,
    tips,
)

# Charts over time in seconds: curves, counts, shares, and Gantt charts.


Course = Sequence[tuple[float, float]]
LANE = 14  # pixels
MOST_NAMES = len(LIGHT_COLOURS)
"""Number of names with a colour of their own; further names share one."""
OTHERS = "Other"
WIDEST, LETTER = 1_300, 5.5
"""Largest width of a Gantt chart, and width of a letter of its labels, in pixels."""
FITS = f"scale('x', datum.end) - scale('x', datum.start) > {LETTER} * (length(datum.name) + 1)"
"""Whether a bar is as wide as its label, in the chart as it is drawn or zoomed."""


class Bar(NamedTuple):
    """A task that ran in a lane from ``start`` to ``end`` (seconds); ``open``: it is still running."""

    name: str
    lane: str
    start: float
    end: float
    open: bool = False


STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 172_800)
WEEK = 604_800
MOST_TICKS = 8
UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))


def time(ends: Sequence[float], field: str = "at") -> Json:
    """Horizontal axis over values in seconds, labelled in minutes, hours or days, depending on its step.

    Args:
        ends: values of which the smallest and the largest limit the axis.
        field: name of the field with seconds.
    """
    first, last = min(ends, default=0.0), max(ends, default=0.0)
    weeks = int(-(-(last - first) // (WEEK * MOST_TICKS)))  # as many as it takes, however far apart moments are
    step = next((one for one in STEPS if (last - first) / one <= MOST_TICKS), WEEK * weeks)
    axis: Json = {"grid": False, "labelOverlap": "greedy"}
    if last - first >= MOST_TICKS / 2:
        begin = int(-(-first // step))
        axis["values"] = [step * tick for tick in range(begin, int(last // step) + 1)]
    size, unit = next(((size, unit) for size, unit in UNITS if step >= size and "values" in axis), (1, "seconds"))
    if size > 1:
        axis["labelExpr"] = f"format(datum.value / {size}, ',~r')"
    return quantity(field, unit, zero=False, scale={"nice": False}, axis=axis)


def courses(title: str, axis: str, series: Mapping[str, Course], caption: str, *, steps: bool = False) -> Figure:
    """Line chart of one curve per name; points are (seconds, value).

    ``axis`` labels the values; ``caption`` explains the marks; ``steps``: values hold until the next point."""
    rows = [{"name": name, "at": at, "value": value} for name, course in series.items() for at, value in course]
    ends = [at for course in series.values() for at, _ in course]
    values = [float(value) for course in series.values() for _, value in course]
    y = quantity("value", axis, axis=amount_axis(values))
    encoding = {"x": time(ends), "y": y, "tooltip": tips(name="of", value=axis)}
    if len(series) > 1:
        encoding["color"] = colour_channel("name", list(series))
    mark: Json = {"interpolate": "step-after"} if steps else {}
    if any(len(course) == 1 for course in series.values()):  # of which there is no line
        mark["point"] = True
    spec = layer_charts(layer("line", "series" if len(series) > 1 else "measured", rows, encoding, **mark))
    return Figure(title, caption, spec, ["of", "seconds", axis], [[r["name"], r["at"], r["value"]] for r in rows])


def counts(title: str, axis: str, courses: Mapping[str, Course], width: float, caption: str) -> Figure:
    """Stacked bars of counts, ``width`` seconds each, one colour per name; points are (seconds, count).

    ``axis`` labels the counts; ``caption``: sentences that explain the marks."""
    tops: dict[float, float] = {}
    rows: list[Json] = []
    for name, course in courses.items():
        for at, count in course:
            low = tops.get(at, 0.0)
            tops[at] = low + count
            if count:
                rows.append(
                    {"name": name, "at": at, "until": at + width, "low": low, "high": low + count} | {"count": count}
                )
    encoding = {
        "x": time([row["at"] for row in rows]),
        "x2": {"field": "until"},
        "y": quantity("low", axis, axis=count_axis(row["high"] for row in rows)),
        "y2": {"field": "high"},
        "color": colour_channel("name", list(courses)),
        "tooltip": tips(name="of", count=axis),
    }
    spec = layer_charts(layer("rect", "block", rows, encoding))
    return Figure(title, caption, spec, ["of", "seconds", axis], [[r["name"], r["at"], r["count"]] for r in rows])


def shares(
    title: str, axis: str, moments: Sequence[tuple[float, Mapping[str, float]]], whole: float | None, caption: str
) -> Figure:
    """Stacked areas of amounts by name; each moment is (seconds, amount by name), and its amounts hold until the next.

    ``axis`` labels the amounts; ``whole``: amount marked by a rule, None: no rule; ``caption`` explains the marks."""
    names = list(dict.fromkeys(name for _, had in moments for name in had))
    shown = names if len(names) <= MOST_NAMES else names[: MOST_NAMES - 1]
    legend = shown if len(names) <= MOST_NAMES else [*shown, OTHERS]
    rows: list[Json] = []
    # The moments at which any amount changes, and the last one
    results = [*moments[:1]]
    results += [after for before, after in pairwise(moments) if after[1] != before[1]]
    for (at, had), (until, _) in pairwise(results if results[-1:] == [*moments[-1:]] else [*results, moments[-1]]):
        low = 0.0
        for name in names:
            high = low + had.get(name, 0.0)
            if high > low and until > at:
                group = name if name in shown else OTHERS
                times = {"at": at, "until": until, "for": text.duration(until - at)}
                rows.append({"name": name, "group": group, **times, "low": low, "high": high, "amount": high - low})
            low = high
    encoding = {
        "x": time([at for at, _ in moments]),
        "x2": {"field": "until"},
        "y": quantity("low", axis),
        "y2": {"field": "high"},
        "color": colour_channel("group", legend),
        "tooltip": [*tips(name="job", amount=axis), {"field": "for", "type": "nominal", "title": "unchanged for"}],
    }
    limit = {} if whole is None else layer("rule", "target", [{"whole": whole}], {"y": quantity("whole", axis)})
    spec = layer_charts(layer("rect", "block", rows, encoding), limit)
    table = [[r["name"], r["at"], r["until"], r["high"] - r["low"]] for r in rows]
    return Figure(title, caption, spec, ["of", "from", "to", axis], table)


def shade_interval(figure: Figure, start: float, end: float) -> Figure:
    """The chart with the interval from ``start`` to ``end`` (seconds) shaded, to mark a disturbance."""
    spans, *over = figure.spec["layer"]
    x = {**spans["encoding"]["x"], "field": "start"}
    shade = layer("rect", "stress", [{"start": start, "end": end}], {"x": x, "x2": {"field": "end"}})
    return figure._replace(spec={**figure.spec, "layer": [shade, spans, *over]})


def lasting(figure: Figure, until: float) -> Figure:
    """The chart with a time axis from 0 to ``until`` seconds, for comparison with others."""
    (spans, *over) = figure.spec["layer"]
    x = {**spans["encoding"]["x"], "scale": {"domain": [0, until], "nice": False}}
    moved = {**spans, "encoding": {**spans["encoding"], "x": x}}
    return figure._replace(spec={**figure.spec, "layer": [moved, *over]})


def gantt(title: str, bars: Sequence[Bar], caption: str) -> Figure:
    """Gantt chart of tasks, lane by lane; a lane has as many rows as it runs tasks at a time.

    ``caption``: sentences that explain the marks."""
    rows: list[Json] = []
    whole = max((bar.end for bar in bars), default=0.0) - min((bar.start for bar in bars), default=0.0)
    for row, bar in _rows(bars):
        lasted = text.duration(bar.end - bar.start) + (" so far" if bar.open else "")
        told_of = {"began": text.clock(bar.start), "lasted": lasted}
        rows.append(bar._asdict() | {"row": row, "below": row + 1, "middle": row + 0.5, **told_of})
    height = LANE * (max((row["row"] for row in rows), default=0) + 1)
    room = WIDEST / LETTER / (whole or 1.0)
    named = [row for row in rows if (row["end"] - row["start"]) * room > len(row["name"]) + 1]
    y = quantity("row", None, scale={"nice": False, "reverse": True}, axis=None)
    lanes = list(dict.fromkeys(bar.lane for bar in bars))
    encoding = {
        "x": time([end for bar in bars for end in (bar.start, bar.end)], "start"),
        "x2": {"field": "end"},
        "y": y,
        "y2": {"field": "below"},
        "color": colour_channel("lane", lanes),
        "opacity": {"condition": {"test": "datum.open", "value": 0.75}, "value": 1},
        "tooltip": tips(name="task", lane="on", began="start", lasted="run time"),
    }
    label = {"x": encoding["x"], "y": {**y, "field": "middle"}, "text": {"field": "name"}}
    caption += f" All ran on {lanes[0]}." if len(lanes) == 1 else ""
    spec = layer_charts(
        layer("rect", "block", rows, encoding),
        layer("text", "label", named, label, align="left", dx=3, opacity={"expr": f"{FITS} ? 1 : 0"}, tooltip=None),
        height=max(80, min(height, 420)),
    )
    table = [[bar.name, bar.lane, bar.start, None if bar.open else bar.end] for bar in bars]
    return Figure(title, caption, spec, ["task", "on", "start", "end"], table)


def _rows(bars: Sequence[Bar]) -> list[tuple[int, Bar]]:
    """The row of each bar, from 0: the first free one of its lane; lanes are placed below one another."""
    rows: list[tuple[int, Bar]] = []
    first = 0
    for lane in sorted({bar.lane for bar in bars}):
        free: list[float] = []
        for bar in sorted((bar for bar in bars if bar.lane == lane), key=lambda bar: bar.start):
            at = next((row for row, until in enumerate(free) if until <= bar.start), len(free))
            free[at : at + 1] = [bar.end]
            rows.append((first + at, bar))
        first += len(free)
    return rows


DASHES = [6, 4]

# Charts over iterations: measured and predicted values, allocations, projections to a target.


FAR, ROOM = 2.0, 1.5
"""Multiples of the largest value: a band above the first is too high, and the chart then ends at the second."""


class Expected(NamedTuple):
    """Prediction interval of an iteration's value, made before the iteration."""

    iteration: int
    low: float
    high: float


class Point(NamedTuple):
    """The value of a quantity, in the unit of its chart's axis, at an iteration."""

    iteration: int
    value: float


class Series(NamedTuple):
    """A named series of points."""

    name: str
    points: Sequence[Point]


def measured(
    name: str, points: Sequence[Point], band: Sequence[Expected], target: float | None, caption: str
) -> Figure:
    """Chart of the metric ``name`` by iteration, with prediction intervals as a band and its target (None: no target).

    ``caption``: sentences that explain the marks."""
    expected = {one.iteration: one for one in band}
    marks = [{**point._asdict(), "expected": _range(expected.get(point.iteration))} for point in points]
    # Upper limit of the chart if the band is more than twice as high as all measurements, else None
    most = max([*(one.value for one in points), *([] if target is None else [target])], default=0.0)
    top = ROOM * most if most > 0 and max((one.high for one in band), default=0.0) > FAR * most else None
    x, y = span("iteration"), quantity("value", name, scale={} if top is None else {"domainMax": top})
    spec = layer_charts(
        layer(
            "area",
            "expected",
            [one._asdict() for one in band],
            {"x": x, "y": quantity("low", name), "y2": {"field": "high"}},
            clip=top is not None,
        ),
        layer(
            "line",
            "measured",
            marks,
            {"x": x, "y": y, "tooltip": tips(iteration="iteration", value=name, expected="expected")},
            point={"size": 18},
        ),
        rule(target, name),
    )
    caption += "" if top is None else " Where the band leaves the picture, the table tells how far."
    return Figure(
        name, caption, spec, ["iteration", "measured", "expected from", "to"], [_row(one, expected) for one in points]
    )


def _row(point: Point, expected: dict[int, Expected]) -> list[object]:
    band = expected.get(point.iteration)
    return [*point, None if band is None else band.low, None if band is None else band.high]


def _range(band: Expected | None) -> str:
    return text.NOTHING if band is None else f"{text.number(band.low)} to {text.number(band.high)}"


def rule(value: float | None, title: str | None) -> Json:
    """Vega-Lite layer with a horizontal line at a target; empty for None."""
    return {} if value is None else layer("rule", "target", [{"target": value}], {"y": quantity("target", title)})


class Ahead(NamedTuple):
    """Projected cumulative value after an iteration: its median, and the bounds of its interval."""

    iteration: int
    median: float
    low: float
    high: float


class Change(NamedTuple):
    """A change of the allocation before an iteration: the cumulative value then, the change and its reason in words."""

    iteration: int
    value: float
    change: str
    reason: str


def projected(
    title: str,
    axis: tuple[str, float],
    points: Sequence[Point],
    ahead: Sequence[Ahead],
    changes: Sequence[Change],
    target: float | None,
    caption: str,
) -> Figure:
    """Chart of a cumulative value by iteration: measured, then projected with a band, with its target and the changes
    of the allocation.

    Args:
        axis: label of the values, and the size of its unit in that of the values.
        points: measured values.
        ahead: projection from the last measured value on; empty: none.
        changes: changes of the allocation to mark.
        target: target of the value at the end; None: none.
        caption: sentences that explain the marks.
    """
    label, size = axis
    past = [{"iteration": one.iteration, "value": one.value / size} for one in points]
    future = [{"iteration": one.iteration, **{k: v / size for k, v in one._asdict().items() if k != "iteration"}}
              for one in ahead]  # fmt: skip
    for row in future:
        row["range"] = f"{text.number(row['low'])} to {text.number(row['high'])}"
    marks = [{**one._asdict(), "value": one.value / size} for one in changes]
    x, y = span("iteration"), quantity("value", label)
    spec = layer_charts(
        layer("area", "awaited", future, {"x": x, "y": quantity("low", label), "y2": {"field": "high"}}),
        layer("line", "measured", past, {"x": x, "y": y, "tooltip": tips(iteration="iteration", value=label)}),
        layer(
            "line",
            "decided",
            future,
            {"x": x, "y": quantity("median", label)}
            | {"tooltip": tips(iteration="iteration", median=f"projected {label}", range="interval")},
            strokeDash=DASHES,
        ),
        rule(None if target is None else target / size, label),
        layer(
            "point",
            "change",
            marks,
            {"x": x, "y": y, "tooltip": tips(iteration="iteration", change="allocation", reason="reason")},
        ),
        height=260,
    )
    rows: list[Sequence[Any]] = [["measured", row["iteration"], row["value"], None, None, ""] for row in past]
    rows += [["projected", row["iteration"], row["median"], row["low"], row["high"], ""] for row in future]
    rows += [["change", one["iteration"], one["value"], None, None, one["change"]] for one in marks]
    return Figure(title, caption, spec, ["what", "iteration", label, "from", "to", "allocation"], rows)


def scaled(unit: str, most: float) -> tuple[str, float]:
    """Unit in which values of up to ``most`` are drawn, and its size: seconds become minutes or hours if many."""
    sizes = (("h", 3_600.0), ("min", 60.0)) if unit == "s" else ()
    return next(((name, size) for name, size in sizes if most >= 5 * size), (unit, 1.0))


def allocated(title: str, axis: str, series: Sequence[Series], caption: str) -> Figure:
    """Step chart of allocations by iteration; ``axis`` labels the amounts, ``caption`` explains the marks."""
    return _lines(title, axis, series, caption, {}, interpolate="step-after")


class Beside(NamedTuple):
    """Additions to a comparison: prediction intervals (``band``), a target (None: none), and first and last iteration
    of a disturbance (``stress``, None: none)."""

    band: Sequence[Expected] = ()
    target: float | None = None
    stress: tuple[float, float] | None = None


def comparison_chart(
    title: str, axis: str, series: Sequence[Series], caption: str, beside: Beside, *, steps: bool = False
) -> Figure:
    """Line chart of several runs by iteration; the band belongs to the first run.

    ``axis`` labels the values; ``caption``: sentences that explain the marks; ``steps``: draw steps instead of lines.
    """
    drawn = _lines(
        title, axis, series, caption, rule(beside.target, axis), **({"interpolate": "step"} if steps else {})
    )
    shade = [] if beside.stress is None else [dict(zip(("start", "end"), beside.stress, strict=True))]
    under = [
        layer("rect", "stress", shade, {"x": span("start"), "x2": {"field": "end"}}),
        layer(
            "area",
            "expected",
            [one._asdict() for one in beside.band],
            {"x": span("iteration"), "y": quantity("low", axis), "y2": {"field": "high"}},
        ),
    ]
    return drawn._replace(spec=layer_charts(*under, *drawn.spec["layer"]))


def _lines(title: str, axis: str, series: Sequence[Series], caption: str, over: Json, **mark: str) -> Figure:
    names = [one.name for one in series]
    rows = [{"name": one.name, "iteration": at, "value": value} for one in series for at, value in one.points]
    y = quantity("value", axis, axis=amount_axis(value for one in series for _, value in one.points) if mark else {})
    encoding = {"x": span("iteration"), "y": y, "tooltip": tips(name="of", value=axis)}
    if len(names) > 1:
        encoding["color"] = colour_channel("name", names)
    role = "series" if len(names) > 1 else "decided" if mark else "measured"
    spec = layer_charts(layer("line", role, rows, encoding, **mark), over)
    table = [[row["name"], row["iteration"], row["value"]] for row in rows]
    return Figure(title, caption, spec, ["of", "iteration", axis], table)


# Forecasts: past counts over time, and expected ones with their prediction interval.


class Came(NamedTuple):
    """Count in a past interval that begins at ``at`` (POSIX seconds)."""

    at: float
    number: float


class Coming(NamedTuple):
    """The forecast of an interval that begins at ``at`` (POSIX seconds): mean and bounds of the prediction interval."""

    at: float
    mean: float
    low: float
    high: float


def forecast(title: str, axis: str, came: Sequence[Came], coming: Sequence[Coming], caption: str) -> Figure:
    """Chart of past counts, followed by the forecast with its prediction interval.

    ``axis`` labels the counts; ``caption``: sentences that explain the marks."""
    before = [{"at": _moment(one.at), "count": one.number} for one in came]
    after = [
        {**one._asdict(), "at": _moment(one.at), "range": f"{text.number(one.low)} to {text.number(one.high)}"}
        for one in coming
    ]
    x = {"field": "at", "type": "temporal", "title": "UTC", "axis": AXIS, "scale": {"type": "utc"}}
    counts = [*(one.number for one in came), *(one.high for one in coming)]
    ticks, scale = count_axis(counts), {} if any(counts) else {"domain": [0, 1]}
    spec = layer_charts(
        layer(
            "line",
            "measured",
            before,
            {
                "x": x,
                "y": quantity("count", axis, axis=ticks, scale=scale),
                "tooltip": tips(at="from", count=f"{axis} observed"),
            },
        ),
        layer("area", "awaited", after, {"x": x, "y": quantity("low", axis, axis=ticks), "y2": {"field": "high"}}),
        layer(
            "line",
            "decided",
            after,
            {
                "x": x,
                "y": quantity("mean", axis, axis=ticks),
                "tooltip": tips(at="from", mean=f"{axis} expected", range="interval"),
            },
            point={"size": 18},
        ),
    )
    rows = [["observed", row["at"], row["count"], None, None] for row in before[-TABLE:]]
    rows += [["expected", row["at"], row["mean"], row["low"], row["high"]] for row in after]
    return Figure(title, caption, spec, ["what", "from (UTC)", axis, "from", "to"], rows)


CLOCK = dict.fromkeys(("seconds", "minutes", "hours"), "%H:%M") | dict.fromkeys(("date", "week", "day"), "%b %d")
AXIS: Json = {"grid": False, "labelOverlap": True, "format": CLOCK | {"month": "%b %Y", "year": "%b %d"}}
TABLE = 24
"""Number of past intervals in the table."""


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}Z"

"""What went on from iteration to iteration: measured beside expected, what was allocated, the way to a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.charts.figure import Figure, Json, coloured, layer, layered, quantity, span

FAR, ROOM = 2.0, 1.5
"""Of the largest value: how far a band may go before it is cut, and what is shown of it then."""


class Expected(NamedTuple):
    """What was expected of an iteration before it: bounds that hold with some probability."""

    iteration: int
    low: float
    high: float


class Point(NamedTuple):
    """A value of an iteration."""

    iteration: int
    value: float


class Series(NamedTuple):
    """Values of one name."""

    name: str
    points: Sequence[Point]


def measured(name: str, points: Sequence[Point], band: Sequence[Expected], target: float | None, told: str) -> Figure:
    """A metric, with the band in which each iteration was expected and its target, if it has one."""
    marks = [point._asdict() for point in points]
    top = _top(points, band, target)
    x, y = span("iteration"), quantity("value", name, scale={} if top is None else {"domainMax": top})
    spec = layered(
        layer(
            "area",
            "expected",
            [one._asdict() for one in band],
            {"x": x, "y": quantity("low", name), "y2": {"field": "high"}},
            clip=top is not None,
        ),
        layer("line", "measured", marks, {"x": x, "y": y, "tooltip": _tips("value", name)}, point={"size": 18}),
        rule(target, name),
    )
    expected = {one.iteration: one for one in band}
    told += "" if top is None else " Where the band leaves the picture, the table tells how far."
    return Figure(
        name, told, spec, ["iteration", "measured", "expected from", "to"], [_row(one, expected) for one in points]
    )


def _top(points: Sequence[Point], band: Sequence[Expected], target: float | None) -> float | None:
    """Where the picture ends, if the band goes so far beyond what was measured that nothing else is told apart."""
    most = max([*(one.value for one in points), *([] if target is None else [target])], default=0.0)
    return ROOM * most if most > 0 and max((one.high for one in band), default=0.0) > FAR * most else None


def _row(point: Point, expected: dict[int, Expected]) -> list[object]:
    band = expected.get(point.iteration)
    return [*point, None if band is None else band.low, None if band is None else band.high]


def _tips(field: str, title: str) -> list[Json]:
    return [
        {"field": "iteration", "type": "quantitative", "title": "iteration"},
        {"field": field, "type": "quantitative", "title": title, "format": ".4~g"},
    ]


def rule(value: float | None, title: str | None) -> Json:
    """A line at a target; nothing where there is none."""
    return {} if value is None else layer("rule", "target", [{"target": value}], {"y": quantity("target", title)})


def progress(title: str, axis: str, series: Sequence[Series], target: float | None, told: str) -> Figure:
    """Sums on their way to a target."""
    return _lines(title, axis, series, told, rule(target, axis))


def allocated(title: str, axis: str, series: Sequence[Series], told: str) -> Figure:
    """What was allocated, step by step."""
    return _lines(title, axis, series, told, {}, interpolate="step-after")


class Beside(NamedTuple):
    """What stands behind and over lines that are compared: a band, a target, and where something disturbed."""

    band: Sequence[Expected] = ()
    target: float | None = None
    stress: tuple[float, float] | None = None


def compared(
    title: str, axis: str, series: Sequence[Series], told: str, beside: Beside, *, steps: bool = False
) -> Figure:
    """The courses of several runs; the band is of the first."""
    drawn = _lines(title, axis, series, told, rule(beside.target, axis), **({"interpolate": "step"} if steps else {}))
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
    return drawn._replace(spec=layered(*under, *drawn.spec["layer"]))


def _lines(title: str, axis: str, series: Sequence[Series], told: str, over: Json, **mark: str) -> Figure:
    names = [one.name for one in series]
    rows = [{"name": one.name, "iteration": at, "value": value} for one in series for at, value in one.points]
    encoding = {"x": span("iteration"), "y": quantity("value", axis), "tooltip": _tips("value", axis)}
    if len(names) > 1:
        encoding["color"] = coloured("name", names)
    role = "series" if len(names) > 1 else "decided" if mark else "measured"
    spec = layered(layer("line", role, rows, encoding, **mark), over)
    table = [[row["name"], row["iteration"], row["value"]] for row in rows]
    return Figure(title, told, spec, ["of", "iteration", axis], table)

"""How a metric responds to a resource: what was measured, and what a model makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.charts.figure import Figure, coloured, layer, layered, quantity


class Fitted(NamedTuple):
    """What a model expects at an amount of the resource: median, and bounds that hold with some probability."""

    amount: float
    median: float
    low: float
    high: float


class Sample(NamedTuple):
    """What was measured at an amount of the resource."""

    amount: float
    value: float


def response(
    title: str, resource: str, metric: str, fitted: Sequence[Fitted], samples: Sequence[Sample], told: str
) -> Figure:
    """A curve with its band over a resource, and the points it was made of."""
    x = quantity("amount", resource, zero=False, axis={"grid": False})
    curve = [one._asdict() for one in fitted]
    band = {"x": x, "y": quantity("low", metric), "y2": {"field": "high"}}
    tips = [
        {"field": "amount", "type": "quantitative", "title": resource, "format": ".4~g"},
        {"field": "median", "type": "quantitative", "title": metric, "format": ".4~g"},
    ]
    spec = layered(
        layer("area", "expected", curve, band),
        layer("point", "sample", [one._asdict() for one in samples], {"x": x, "y": quantity("value", metric)}),
        layer("line", "fitted", curve, {"x": x, "y": quantity("median", metric), "tooltip": tips}),
        height=240,
    )
    rows = [["expected", *one] for one in fitted] or [["measured", *one, None, None] for one in samples]
    return Figure(title, told, spec, ["what", resource, metric, "from", "to"], rows)


def responses(title: str, resource: str, metric: str, fitted: Mapping[str, Sequence[Fitted]], told: str) -> Figure:
    """A curve with its band for each name."""
    curves = [{"name": name, **one._asdict()} for name, curve in fitted.items() for one in curve]
    x = quantity("amount", resource, zero=False, axis={"grid": False, "tickMinStep": 1})
    colour = {"color": coloured("name", list(fitted))}
    tips = [
        {"field": "name", "type": "nominal", "title": "of"},
        {"field": "amount", "type": "quantitative", "title": resource, "format": ".4~g"},
        {"field": "median", "type": "quantitative", "title": metric, "format": ".4~g"},
    ]
    spec = layered(
        layer("area", "bands", curves, {"x": x, "y": quantity("low", metric), "y2": {"field": "high"}, **colour}),
        layer(
            "line", "series", curves, {"x": x, "y": quantity("median", metric), **colour, "tooltip": tips}, point=True
        ),
        height=240,
    )
    rows = [list(row.values()) for row in curves]
    return Figure(title, told, spec, ["of", resource, metric, "from", "to"], rows)


def doubt(title: str, resource: str, points: Sequence[Sample], best: float | None, told: str) -> Figure:
    """How unsure a model is over a resource, and where a sample would teach it most."""
    x = quantity("amount", resource, zero=False, axis={"grid": False})
    rows = [one._asdict() for one in points]
    spec = layered(
        layer("area", "expected", rows, {"x": x, "y": quantity("value", "spread", axis={"format": "%"})}),
        {} if best is None else layer("rule", "reference", [{"amount": best}], {"x": x}),
        height=110,
    )
    return Figure(title, told, spec, [resource, "spread"], [list(one) for one in points])

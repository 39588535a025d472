"""How figures look: readable on white and on black, for they are drawn without a ground of their own."""

from __future__ import annotations

from typing import Any

import vl_convert

from app.charts.figures import SCHEMA, Json

LINE = "#0e9384"
OTHER = "#8a93a0"
TARGET = "#d9480f"
BAND = 0.25
GREY = "#7d8590"


def marks(kind: str, rows: list[Json], encoding: Json, **mark: Any) -> Json:
    """Marks of one kind over rows."""
    return {"data": {"values": rows}, "mark": {"type": kind, **mark}, "encoding": encoding}


def names(field: str, order: list[str] | None = None) -> Json:
    """A channel of names, one below the other, in an order or as they come."""
    return {"field": field, "type": "nominal", "title": None, "sort": order}


def whose(of: list[str]) -> Json:
    """A colour for the project, and another for whom it is compared with."""
    scale = {"domain": of, "range": [LINE, OTHER]}
    return {"field": "who", "type": "nominal", "title": None, "scale": scale}


def lined(chart: Json) -> Json:
    """A chart with labels in a grey that both grounds carry."""
    text = {"labelColor": GREY, "titleColor": GREY, "domainColor": GREY, "tickColor": GREY, "gridOpacity": 0.25}
    title = {"color": GREY, "anchor": "start", "fontSize": 13}
    legend = {"labelColor": GREY, "titleColor": GREY, "orient": "top", "labelLimit": 400}
    config = {"background": "transparent", "axis": text, "title": title, "legend": legend, "view": {"stroke": None}}
    return {"$schema": SCHEMA, **chart, "config": config}


def svg(chart: Json) -> str:
    """As an image, drawn without a network."""
    drawn: str = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
    return drawn

"""What a chart is: a Vega-Lite definition with the same told in words and numbers.

Definitions are plain dictionaries. They name no colours but roles (``style``), and no width: pages and pictures add
both. Names given by people are data in them, never field names or expressions, so that nothing they hold is obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]
Row = Mapping[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
HEIGHT = 200
FEW = 4
"""Counts up to which each has its tick."""


class Figure(NamedTuple):
    """A chart.

    Attributes:
        title: what it is of.
        told: what its marks mean, in a sentence or two.
        spec: its Vega-Lite definition, without width or colours.
        columns, rows: the same as a table, for those who don't see it.
    """

    title: str
    told: str
    spec: Json
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def layered(*layers: Json, height: int = HEIGHT, **more: Any) -> Json:
    """Layers on one another, as a definition; empty ones are left out."""
    return {"$schema": SCHEMA, "height": height, "layer": [layer for layer in layers if layer], **more}


def layer(kind: str, role: str, rows: Sequence[Row], encoding: Json, **mark: Any) -> Json:
    """Marks of one kind and role over rows; nothing where there are none."""
    if not rows:
        return {}
    values = [dict(row) for row in rows]
    return {"data": {"values": values}, "mark": {"type": kind, "style": role, **mark}, "encoding": encoding}


def quantity(field: str, title: str | None, *, zero: bool = True, **more: Any) -> Json:
    """A channel of numbers."""
    scale = {"zero": zero, **more.pop("scale", {})}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def counted(values: Iterable[float]) -> Json:
    """The axis of whole numbers: a few are ticked one by one, for Vega's least step leaves halves between 0 and 1."""
    most = max(values, default=0.0)
    return {"values": [*range(int(most) + 1)], "format": "d"} if 0 < most <= FEW else {"tickMinStep": 1}


def category(field: str, title: str | None, order: Sequence[str] | None = None, **more: Any) -> Json:
    """A channel of names, in an order."""
    return {"field": field, "type": "nominal", "title": title, "sort": None if order is None else list(order), **more}


def coloured(field: str, order: Sequence[str], title: str | None = None) -> Json:
    """A colour for each name; a legend where there are several."""
    legend = {"orient": "top", "direction": "horizontal"} if len(order) > 1 else None
    return category(field, title, order, scale={"domain": list(order)}, legend=legend)


def span(field: str, title: str | None = "iteration", **more: Any) -> Json:
    """The axis along which things go on: whole numbers, without rounding its ends."""
    axis = {"tickMinStep": 1, "grid": False, **more.pop("axis", {})}
    return quantity(field, title, zero=False, scale={"nice": False, **more.pop("scale", {})}, axis=axis, **more)

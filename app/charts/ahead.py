"""What is expected to come after what came: counts over time, with the band that holds most of what may come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from app.charts.figure import Figure, Json, counted, layer, layered, quantity


class Came(NamedTuple):
    """What came in an interval that begins at a moment, seconds since 1970."""

    at: float
    number: float


class Coming(NamedTuple):
    """What is expected of an interval; ``low`` and ``high`` hold with some probability."""

    at: float
    mean: float
    low: float
    high: float


def forecast(title: str, axis: str, came: Sequence[Came], coming: Sequence[Coming], told: str) -> Figure:
    """A line of what came, then one of what is expected within its band."""
    before = [{"at": _moment(one.at), "count": one.number} for one in came]
    after = [{**one._asdict(), "at": _moment(one.at)} for one in coming]
    x = {"field": "at", "type": "temporal", "title": "UTC", "axis": AXIS, "scale": {"type": "utc"}}
    ticks = counted([*(one.number for one in came), *(one.high for one in coming)])
    spec = layered(
        layer(
            "line",
            "measured",
            before,
            {"x": x, "y": quantity("count", axis, axis=ticks), "tooltip": _tips("count", "came")},
        ),
        layer("area", "awaited", after, {"x": x, "y": quantity("low", axis, axis=ticks), "y2": {"field": "high"}}),
        layer(
            "line",
            "decided",
            after,
            {"x": x, "y": quantity("mean", axis, axis=ticks), "tooltip": _tips("mean", "expected")},
            point={"size": 18},
        ),
    )
    rows = [["came", row["at"], row["count"], None, None] for row in before[-TABLE:]]
    rows += [["expected", row["at"], row["mean"], row["low"], row["high"]] for row in after]
    return Figure(title, told, spec, ["what", "from (UTC)", axis, "from", "to"], rows)


CLOCK = dict.fromkeys(("seconds", "minutes", "hours"), "%H:%M") | dict.fromkeys(("date", "week", "day"), "%b %d")
AXIS: Json = {"grid": False, "labelOverlap": True, "format": CLOCK | {"month": "%b %Y", "year": "%b %d"}}
TABLE = 24
"""Of what came, in the table."""


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}Z"


def _tips(field: str, title: str) -> list[Json]:
    return [
        {"field": "at", "type": "nominal", "title": "from"},
        {"field": field, "type": "quantitative", "title": title, "format": ".4~g"},
    ]

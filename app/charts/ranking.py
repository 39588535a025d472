"""Things side by side by one number: errors of models, returns of policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from app.charts.figure import Figure, Json, category, layer, layered, quantity

ROW = 24
ROOM = 0.22
"""Of what the bars take, for a number beyond the longest."""
DECIDED = "decided"


class Ranked(NamedTuple):
    """One of those that are compared; ``low`` and ``high`` are the ends of its interval, if it has one."""

    name: str
    value: float
    chosen: bool = False
    low: float | None = None
    high: float | None = None


def beside_decided(title: str, axis: str, values: Mapping[str, float], told: str) -> Figure:
    """Bars from the largest down, by name; what was decided stands out, where it is among them."""
    largest_first = sorted(values.items(), key=lambda item: -item[1])
    ranked = [Ranked(name, value, chosen=name == DECIDED) for name, value in largest_first]
    return ranking(title, axis, ranked, f"{told} Coloured: {DECIDED}." if DECIDED in values else told)


def ranking(title: str, axis: str, ranked: Sequence[Ranked], told: str, number: str = ".3~g") -> Figure:
    """Bars in the given order, with intervals and numbers; the chosen one stands out."""
    names = [one.name for one in ranked]
    rows = [one._asdict() for one in ranked]
    y = category("name", None, names, axis={"labelLimit": 200})
    x = quantity("value", axis, axis={"format": number, "tickCount": 5}, scale=_scale(ranked))
    spec = layered(
        layer("bar", "bar", [row for row in rows if row["chosen"]], {"x": x, "y": y}, height={"band": 0.6}),
        layer("bar", "other", [row for row in rows if not row["chosen"]], {"x": x, "y": y}, height={"band": 0.6}),
        layer(
            "rule",
            "interval",
            [row for row in rows if row["low"] is not None],
            {"x": quantity("low", axis), "x2": {"field": "high"}, "y": y},
        ),
        *_numbers(rows, y, axis, number),
        height=ROW * max(len(rows), 1),
    )
    table = [[one.name, one.value, one.low, one.high] for one in ranked]
    return Figure(title, told, spec, ["name", axis, "from", "to"], table)


def _scale(ranked: Sequence[Ranked]) -> Json:
    """From 0 on, with room for the numbers beyond the bars."""
    ends = [0.0, *(end for one in ranked for end in (one.value, one.low, one.high) if end is not None)]
    low, high = min(ends), max(ends)
    room = ROOM * (high - low) or 1.0
    return {"domain": [low - room if low < 0 else 0.0, high + room if high > 0 else 0.0], "nice": False}


def _numbers(rows: Sequence[Json], y: Json, axis: str, number: str) -> Iterator[Json]:
    """Each bar's number beyond its end, or its interval's."""
    for positive, field, align, away in ((True, "high", "left", 4), (False, "low", "right", -4)):
        beyond = [
            {**row, "end": row["value"] if row[field] is None else row[field]}
            for row in rows
            if (row["value"] >= 0) == positive
        ]
        text = {"field": "value", "type": "quantitative", "format": number}
        yield layer("text", "note", beyond, {"x": quantity("end", axis), "y": y, "text": text}, align=align, dx=away)

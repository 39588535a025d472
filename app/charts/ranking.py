"""Things side by side by one number: errors of models, returns of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.charts import text
from app.charts.figure import Figure, category, layer, layered, quantity

ROW = 24
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
    rows = [{**one._asdict(), "label": f"{one.name}\u2002{_told(one.value, number)}"} for one in ranked]
    y = category("label", None, [row["label"] for row in rows], axis={"labelLimit": 240})
    x = quantity("value", axis, axis={"format": number, "tickCount": 5})
    spec = layered(
        layer("bar", "bar", [row for row in rows if row["chosen"]], {"x": x, "y": y}, height={"band": 0.6}),
        layer("bar", "other", [row for row in rows if not row["chosen"]], {"x": x, "y": y}, height={"band": 0.6}),
        layer(
            "rule",
            "interval",
            [row for row in rows if row["low"] is not None],
            {"x": quantity("low", axis), "x2": {"field": "high"}, "y": y},
        ),
        height=ROW * max(len(rows), 1),
    )
    table = [[one.name, one.value, one.low, one.high] for one in ranked]
    return Figure(title, told, spec, ["name", axis, "from", "to"], table)


def _told(value: float, number: str) -> str:
    """A bar's number, which stands with its name: wherever it stood in the picture, some bar would reach it."""
    if number.endswith("%"):
        return f"{text.number(100 * value)} %"
    return text.number(value)

"""Situations as a plane, with what is done in each as its colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.charts.figure import Figure, layer, layered


class Cell(NamedTuple):
    """What is changed at an iteration, from an amount."""

    iteration: int
    amount: float
    change: float


def steps_map(title: str, resource: str, cells: Sequence[Cell], told: str) -> Figure:
    """Iterations across, amounts up; warm colours add, cool ones give back."""
    moving = [cell._asdict() for cell in cells if cell.change]
    every = [cell._asdict() for cell in cells]
    most = max((abs(cell.change) for cell in cells), default=1.0) or 1.0
    x = {"field": "iteration", "type": "ordinal", "title": "iteration", "axis": {"labelOverlap": True, "labelAngle": 0}}
    y = {"field": "amount", "type": "ordinal", "title": resource, "sort": "descending", "axis": {"labelOverlap": True}}
    colour = {
        "field": "change",
        "type": "quantitative",
        "title": "change",
        "scale": {"domain": [-most, most], "domainMid": 0},
    }
    tips = [
        {"field": name, "type": "quantitative", "title": title, "format": ".4~g"}
        for name, title in (("iteration", "iteration"), ("amount", resource), ("change", "change"))
    ]
    spec = layered(
        layer("rect", "ground", every, {"x": x, "y": y}),
        layer("rect", "cell", moving, {"x": x, "y": y, "color": colour, "tooltip": tips}),
        height=220,
    )
    return Figure(title, told, spec, ["iteration", resource, "change"], [list(cell) for cell in cells if cell.change])

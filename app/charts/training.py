"""How a training gets on: training returns over its steps, beside what others reach in the same terms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from app.charts.figure import Figure, coloured, layer, layered, quantity, span

WIDE = 20
DASHES = [6, 4]


class Learnt(NamedTuple):
    """A training's mean training return at some number of environment steps."""

    name: str
    steps: int
    value: float


def learning(learnt: Sequence[Learnt], marks: Mapping[str, float], told: str, plans: Collection[str] = ()) -> Figure:
    """A line for each training, and rules at what is known of others; ``plans``: those that are planned."""
    names = list(dict.fromkeys(one.name for one in learnt))
    x = span("steps", "environment steps", axis={"format": "~s"})
    scale = _scale([*(one.value for one in learnt), *marks.values()])
    y = quantity("value", "training return", zero=False, scale=scale)
    rules = [{"name": name, "value": value} for name, value in marks.items()]
    colour = {"color": coloured("name", names)} if len(names) > 1 else {}
    role = "series" if len(names) > 1 else "measured"
    rows = [one._asdict() for one in learnt]
    text = {"y": y, "x": {"value": 4}, "text": {"field": "name"}}
    spec = layered(
        layer("line", role, rows, {"x": x, "y": y, **colour}, point={"size": 20}),
        layer("rule", "other", [rule for rule in rules if rule["name"] not in plans], {"y": y}, strokeDash=DASHES),
        layer("rule", "reference", [rule for rule in rules if rule["name"] in plans], {"y": y}),
        layer("text", "note", rules, text, align="left", dy=-6),
        height=240,
    )
    table = [[one.name, one.steps, one.value] for one in learnt] + [[name, None, v] for name, v in marks.items()]
    return Figure("Training return", told, spec, ["of", "steps", "training return"], table)


def _scale(values: Sequence[float]) -> dict[str, Any]:
    """Logarithmic away from 0 where the first returns are many times the last ones, as they often are."""
    sizes = [abs(value) for value in values if value]
    if not sizes or max(sizes) < WIDE * min(sizes):
        return {}
    return {"type": "symlog", "constant": min(sizes)}

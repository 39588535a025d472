"""Terms: the targets, weights and prices that an agent was trained for, and between which bounds its verdict holds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.charts.text import number

RATIOS = (0.9, 1.1)
"""Lowest and highest price or weight, as a ratio to what it was in the training."""


class Term(NamedTuple):
    """A number that agents are trained for, and the lowest and the highest that they are judged on.

    Attributes:
        untrainable: what answers while a workload has this term, for which no agent can be trained, and what to do to
            have agents again; empty where agents can be trained for it.
    """

    value: float
    low: float
    high: float
    untrainable: str = ""


Terms = Mapping[str, Term]
"""By name, in words: "price of gpus"."""


def around(value: float, ratios: tuple[float, float] = RATIOS) -> Term:
    """A term whose bounds are ratios to its value."""
    return Term(value, ratios[0] * value, ratios[1] * value)


def priced(prices: Mapping[str, float], weights: Mapping[str, float]) -> Terms:
    """The terms of a spec that has prices and weights, by name."""
    priced = {f"price of {name}": around(value) for name, value in prices.items()}
    return priced | {f"weight of {name}": around(value) for name, value in weights.items()}


def left(trained: Mapping[str, Sequence[Any]], present: Terms) -> list[str]:
    """What has left the bounds of a training, in words.

    Args:
        trained: terms as they were in the training, or value, low and high of each, by name.
        present: as they are now.
    """
    gone = [f"it was trained for a {name}, which is gone" for name in trained if name not in present]
    return [*gone, *(text for name, term in present.items() if (text := _left(name, trained.get(name), term)))]


def _left(name: str, known: Sequence[Any] | None, term: Term) -> str:
    if known is None:
        return f"the {name} is {number(term.value, 4)}, and it was trained for none"
    value, low, high = known[:3]
    if low <= term.value <= high:
        return ""
    return f"the {name} is {number(term.value, 4)}, and it was trained for {number(value, 4)}"

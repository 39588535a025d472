"""Who is ahead on quality at equal cost, and on cost at equal quality: what weights on price make of each player.

A player's points are what it does under each weight, on the same windows. Between two of its points it could play the
one in a share of the windows and the other in the rest: that is its frontier, and another player's point is compared
with what it has at the same cost, or at the same quality. Differences are paired over windows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.evaluation.statistics import mean_interval

Floats = NDArray[np.float64]
Row = dict[str, Any]
PRICES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Weights of cost that players are chosen, or behave, under; that of quality is 1."""


class Point(NamedTuple):
    """What a player had in E windows under one weight: response quality, and cost, [E] each."""

    name: str
    quality: Floats
    cost: Floats


def undominated(points: Sequence[Point]) -> list[Point]:
    """Those that no other has more quality than at no more cost, the cheapest first."""
    result: list[Point] = []
    for point in sorted(points, key=lambda one: (one.cost.mean(), -one.quality.mean())):
        if not result or point.quality.mean() > result[-1].quality.mean():
            result.append(point)
    return result


def mixed(points: Sequence[Point], value: float, along: str) -> Point | None:
    """The mixture of two neighbours whose mean ``along`` is ``value``; None beyond all of them.

    Args:
        points: undominated.
        value: a mean cost or quality.
        along: ``cost`` or ``quality``.
    """
    means = [float(getattr(one, along).mean()) for one in points]
    for low, high, at, other in zip(points, points[1:], means, means[1:], strict=False):
        if at <= value <= other:
            share = (value - at) / (other - at)
            quality, cost = (
                (1 - share) * getattr(low, part) + share * getattr(high, part) for part in Point._fields[1:]
            )
            return Point(f"{low.name} and {high.name}", quality, cost)
    return None


def compared(name: str, own: Sequence[Point], others: Mapping[str, Sequence[Point]]) -> list[Row]:
    """For each other player: at how many of its points it is behind, and by how much in the mean.

    Args:
        name: of whose points are ``own``.
        own: the player's that is compared.
        others: by player.
    """
    rows, frontier = [], undominated(own)
    for player, points in others.items():
        for along, gained in (("cost", "quality"), ("quality", "cost")):
            rows += _row(name, player, frontier, undominated(points), along, gained)
    return rows


def _row(
    name: str, player: str, frontier: Sequence[Point], points: Sequence[Point], along: str, gained: str
) -> list[Row]:
    sign, results = (1.0 if gained == "quality" else -1.0), []
    for point in points:
        equal = mixed(frontier, float(getattr(point, along).mean()), along)
        if equal is not None:
            results.append(sign * (getattr(equal, gained) - getattr(point, gained)))
    if not results:
        return []
    ahead = mean_interval(np.mean(results, axis=0))
    each = [mean_interval(one) for one in results]
    sure, behind = sum(one["low"] > 0 for one in each), sum(one["high"] < 0 for one in each)
    text = f"{len(results)} of its {len(points)} points are within reach: ahead at {sure}, behind at {behind}"
    reported = f"{name}, {gained} better than {player}'s at equal {along} ({text})"
    interval = f"[{ahead['low']:+.4f}, {ahead['high']:+.4f}]"
    goal = f"> 0: {'met' if ahead['low'] > 0 else 'missed' if ahead['mean'] <= 0 else 'undecided'} {interval}"
    row = {"name": reported, "value": ahead["mean"], "unit": "", "peer": None, "peer_value": None}
    return [{**row, "ratio": None, "goal": goal}]

"""Deadlines met, and cost against fixed allocations: ``python -m benchmarks savings`` (some 4 minutes on one core).

The commands of ``without_learning`` on worlds of other seeds, which were chosen and read for this table alone. Two
situations: a first run of which nothing is known (``steward run --deadline``), and a run with a model of measured
iterations (after ``--learn``). Both are compared, on the same episodes, with the largest allocation, and with the best
fixed one in hindsight: the cheapest among those that meet the most deadlines of the world's episodes, which nobody
knows before. Played by the service's engine in this process; intervals are over worlds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.held_out.play import Played, play
from benchmarks.held_out.rules import Static
from benchmarks.held_out.world import Floats
from benchmarks.without_learning import CPU, EPISODES, PARTS, commands, world
from workers.evaluation.statistics import mean_interval, share_interval

SEEDS = range(9_500, 9_550)
MET, CHEAPER = 0.95, 0.0
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Three rows for each situation and kind of iterations among ``parts``."""
    return [row for part in parts for row in _rows(part)]


def fixed(name: str, seed: int, draw: int) -> tuple[Played, Played]:
    """The largest allocation and the best fixed one in hindsight, on the episodes of ``draw`` in the world ``seed``."""
    planted = world(name, seed)

    def always(level: float) -> Played:
        return play(planted, lambda _: Static(np.array([level])), EPISODES, draw)

    played = [always(level) for level in CPU.levels]
    largest = max(played, key=lambda one: float(one.allocations[0, 0, 0]))
    best = max(played, key=lambda one: (met(one).mean(), -one.money.mean()))
    return largest, best


def met(played: Played) -> Floats:
    """Which runs met their deadline, [E]."""
    return (played.terms[:, 0] <= 0).astype(float)


def _rows(name: str) -> list[Row]:
    first, _, _, learned = commands(name, SEEDS)
    situations = {"a first run, nothing known": (first, 0), "a run with a model": (learned, 1)}
    return [
        row for what, (ours, later) in situations.items() for row in _compared(f"{name}: {what}", name, ours, later)
    ]


def _compared(what: str, name: str, ours: Sequence[Played], later: int) -> list[Row]:
    """Rows of one situation; ``later``: by how much the seed of the episodes is above the world's."""
    others = [fixed(name, seed, seed + later) for seed in SEEDS]
    mask = np.concatenate([met(one) for one in ours])
    share = share_interval(mask, np.repeat(np.arange(len(ours)), EPISODES))
    counted = f"{int(mask.sum())} of {len(mask)} runs"
    rows: list[Row] = [
        {
            "name": f"{what}: deadlines met, {counted}, 95 % {share.low:.0%} to {share.high:.0%}",
            "value": round(share.mean, 4),
            "unit": "share",
            "peer": "best fixed in hindsight",
            "peer_value": round(float(np.mean([met(best).mean() for _, best in others])), 4),
            "ratio": None,
            "goal": f">= {MET:.0%}: {'met' if share.mean >= MET else 'missed'}",
        }
    ]
    for peer, which in (("largest", 0), ("best fixed in hindsight", 1)):
        money = np.array([one.money.mean() for one in ours]), np.array([pair[which].money.mean() for pair in others])
        cheaper = mean_interval(1 - money[0] / money[1])
        rows.append(
            {
                "name": f"{what}: cheaper than the {peer}, 95 % {100 * cheaper['low']:+.1f} to "
                f"{100 * cheaper['high']:+.1f} % over {len(SEEDS)} worlds",
                "value": round(100 * cheaper["mean"], 1),
                "unit": "%",
                "peer": peer,
                "peer_value": round(float(money[1].mean()), 3),
                "ratio": round(float((money[0] / money[1]).mean()), 3),
                "goal": f"> 0: {'met' if cheaper['low'] > CHEAPER else 'missed'}",
            }
        )
    return rows


if __name__ == "__main__":
    for row in results():
        print(row)

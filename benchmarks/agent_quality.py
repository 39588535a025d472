"""How good a trained agent is: its return beside the exact optimum and every heuristic, on the same fresh episodes.

``STEWARD_DATA=… python -m benchmarks.agent_quality [PROBLEM …]``. Every figure is of the exported policy behind the
guard, as the service would serve it; the training is the service's default (a dueling double DQN, 15 s, two threads).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.problems import PROBLEMS, problem
from workers.learning.train import Training

GAP = 0.02
SECONDS = 30.0


@dataclass(frozen=True)
class Request:
    """What a client would ask for."""

    algorithm: str = "dueling_double_dqn"
    budget: int | None = None
    seed: int = 1


def train(name: str, request: Request) -> dict[str, Any]:
    """The agent report of one training, and the seconds it took from start to verdict."""
    chosen = problem(name)
    start = time.perf_counter()
    training = Training(chosen.spec, chosen.table, request)
    while not training.done:
        training.advance()
    return training.result().report | {"whole_seconds": time.perf_counter() - start}


def results(names: list[str] | None = None) -> list[dict[str, Any]]:
    """Per problem: gap to the optimum where it can be had, advantage over the best heuristic, seconds."""
    rows: list[dict[str, Any]] = []
    for name in names or PROBLEMS:
        report = train(name, Request())
        rows += [*_gap(name, report), _advantage(name, report), _seconds(name, report)]
    return rows


def _gap(name: str, report: dict[str, Any]) -> list[dict[str, Any]]:
    if report["gap_to_optimum"] is None:
        return []
    value, optimum = report["gap_to_optimum"], report["optimum"]["mean"]
    met = "met" if value <= GAP else "missed"
    return [_row(f"{name}: gap to the exact optimum", value, "fraction", "optimum", optimum, None, f"≤ {GAP}: {met}")]


def _advantage(name: str, report: dict[str, Any]) -> dict[str, Any]:
    best, ahead = report["best_heuristic"], report["advantage"]
    interval = f"difference {ahead['mean']:+.5f} [{ahead['low']:+.5f}, {ahead['high']:+.5f}]"
    goal = f"at least as good (paired, 95 %): {'met' if ahead['low'] >= 0 else 'missed'}"
    value, peer = report["return"]["mean"], report["heuristics"][best]["mean"]
    return _row(f"{name}: return, {interval}", value, "return", best, peer, value / peer if peer else None, goal)


def _seconds(name: str, report: dict[str, Any]) -> dict[str, Any]:
    seconds = report["whole_seconds"]
    goal = f"< {SECONDS:g} s: {'met' if seconds < SECONDS else 'missed'}"
    return _row(f"{name}: training to verdict", seconds, "s", None, None, None, goal)


def _row(
    name: str, value: float, unit: str, peer: str | None, peer_value: float | None, ratio: float | None, goal: str
) -> dict[str, Any]:
    names = ("name", "value", "unit", "peer", "peer_value", "ratio", "goal")
    return dict(zip(names, (name, value, unit, peer, peer_value, ratio, goal), strict=True))


if __name__ == "__main__":
    from benchmarks.__main__ import show

    for chosen in sys.argv[1:] or PROBLEMS:
        show(chosen, results([chosen]))

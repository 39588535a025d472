"""How good a trained agent is: its return beside the exact optimum and every heuristic, on the same fresh episodes.

``STEWARD_DATA=… python -m benchmarks.agent_quality [PROBLEM …]``. Every figure is of the exported policy behind the
guard, as the service would serve it. The training is what ``POST …/agents`` asks for by default: several algorithms
share 15 s of learning, losers are stopped early, and the planner competes; the best on validation episodes is
published. What one of them reaches by itself, in as many seconds, is told beside it.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
from typing import Any

from benchmarks.problems import PROBLEMS, problem
from workers.kinds.iterative.training.train import training
from workers.learning.training.request import Request

GAP = 0.02
SECONDS = 30.0
LEARNED = "dueling_double_dqn"
SEED = 1


def train(name: str, request: Request) -> dict[str, Any]:
    """The agent report of one training, and the seconds it took from start to verdict."""
    chosen = problem(name)
    start = time.perf_counter()
    learning = training(chosen.spec, chosen.table, request)
    while not learning.done:
        learning.advance()
    return learning.result().report | {"whole_seconds": time.perf_counter() - start}


def results(names: list[str] | None = None) -> list[dict[str, Any]]:
    """Per problem: gap to the optimum where it can be had, advantage over the best heuristic, seconds."""
    rows: list[dict[str, Any]] = []
    for name in names or PROBLEMS:
        report, alone = train(name, Request(seed=SEED)), train(name, Request(LEARNED, seed=SEED))
        rows += [*_gap(name, report), *_learned(name, alone), _advantage(name, report), _seconds(name, report)]
        rows.append(_advantage(f"{name}, {LEARNED} alone", alone))
    return rows


def _learned(name: str, report: dict[str, Any]) -> list[dict[str, Any]]:
    """What a learner by itself leaves to the exact optimum, where that can be had."""
    value = report["gap_to_optimum"]
    if value is None:
        return []
    title = f"{name}: gap of the {LEARNED} alone"
    goal = f"≤ {GAP}: {'met' if value <= GAP else 'missed'}"
    return [_row(title, value, "fraction", "exact optimum", report["optimum"]["mean"], None, goal)]


def _gap(name: str, report: dict[str, Any]) -> list[dict[str, Any]]:
    if report["gap_to_optimum"] is None:
        return []
    value, optimum = report["gap_to_optimum"], report["optimum"]["mean"]
    met = "met" if value <= GAP else "missed"
    return [
        _row(
            f"{name}: gap of the {report['algorithm']}",
            value,
            "fraction",
            "exact optimum",
            optimum,
            None,
            f"≤ {GAP}: {met}",
        )
    ]


def _advantage(name: str, report: dict[str, Any]) -> dict[str, Any]:
    best, ahead = report["best_heuristic"], report["advantage"]
    interval = f"difference {ahead['mean']:+.5f} [{ahead['low']:+.5f}, {ahead['high']:+.5f}]"
    goal = f"at least as good (paired, 95 %): {'met' if ahead['low'] >= 0 else 'missed'}"
    value, peer = report["return"]["mean"], report["heuristics"][best]["mean"]
    return _row(
        f"{name}: return of the {report['algorithm']}, {interval}",
        value,
        "return",
        best,
        peer,
        value / peer if peer else None,
        goal,
    )


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

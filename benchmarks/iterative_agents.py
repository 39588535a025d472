"""What trainings by default come to where workloads hide something, beside the tuned rule and the rule that is served.

``STEWARD_DATA=… python -m benchmarks iterative_agents`` (an hour and a half on a core; ``iterative_agents:PROBLEM``
runs and records one problem). Each training is that of ``POST …/agents`` with ``{}``: 2,000,000 environment steps;
three seeds of PPO and three with memory, the plan, the tuned and the improved rule compete, and the verdict decides
about promotion.
Five trainings a problem, each judged on 4,096 fresh episodes of the belief behind the guard as served, in this process,
without HTTP; intervals are over the five.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from app.kinds.iterative.heuristics import default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import load
from app.kinds.iterative.projector import Projector
from benchmarks.problems import problem
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.training import training
from workers.kinds.iterative.tuning import tune
from workers.learning.training.request import Request

PARTS = ("kinds", "regimes", "stages", "features", "pace-shifts", "lost-capacity")
SEEDS, EPISODES, FRESH = range(1, 6), 4_096, 9_500
LEAST = 0.01  # gain over the tuned rule
Row = dict[str, Any]


class Trained(NamedTuple):
    """One training: what it published, and returns on the same fresh episodes.

    Attributes:
        algorithm, promoted: of what was published.
        published, tuned, served: mean returns of it, of the tuned rule, and of the rule that is served.
        seconds: CPU seconds from request to verdict.
    """

    algorithm: str
    promoted: bool
    published: float
    tuned: float
    served: float
    seconds: float


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A row for each problem of ``parts``."""
    return [row(name, [trained(name, seed) for seed in SEEDS]) for name in parts]


def trained(name: str, seed: int) -> Trained:
    """Train by default, and judge what is published on fresh episodes."""
    chosen, begun = problem(name), process_time()
    learning = training(chosen.spec, chosen.table, Request(seed=seed))
    while not learning.done:
        learning.advance()
    result, spent = learning.result(), process_time() - begun
    evaluator = Evaluator(chosen.spec, chosen.table, FRESH + seed, EPISODES)
    tuned = tune(chosen.spec, chosen.table.thinned(4), seed, 1 << 40)
    assert tuned is not None  # noqa: S101 - the budget is not small
    rule = default_heuristic(Projector(Layout(chosen.spec), chosen.table))
    published, best = (
        float(evaluator.score_artifact(load(artifact)).returns.mean()) for artifact in (result.artifact, tuned.artifact)
    )
    served = float(evaluator.score(rule).returns.mean())
    return Trained(result.report["algorithm"], result.report["promoted"], published, best, served, spent)


def row(name: str, trainings: Sequence[Trained]) -> Row:
    """What was published over the tuned rule and over what is served, in per cent of either's return."""
    published, tuned, served = (
        np.array([getattr(t, part) for t in trainings]) for part in ("published", "tuned", "served")
    )
    over = {key: 100 * value for key, value in mean_interval((published - tuned) / np.abs(tuned)).items()}
    gain = {key: 100 * value for key, value in mean_interval((published - served) / np.abs(served)).items()}
    names = [one.algorithm for one in trainings]
    who = ", ".join(f"{names.count(each)} {each}" for each in sorted(set(names)))
    promoted, seconds = sum(one.promoted for one in trainings), max(one.seconds for one in trainings)
    won = over["low"] > 0 and over["mean"] >= 100 * LEAST and promoted == len(trainings)
    return {
        "name": f"{name}: published {who}, {promoted} of {len(trainings)} promoted; over the tuned rule "
        f"[{over['low']:+.2f}, {over['high']:+.2f}] %, over what is served {gain['mean']:+.2f} "
        f"[{gain['low']:+.2f}, {gain['high']:+.2f}] %; at most {seconds:.0f} CPU-s",
        "value": round(over["mean"], 2),
        "unit": "% over tuned",
        "peer": "tuned rule, return",
        "peer_value": round(float(tuned.mean()), 5),
        "ratio": None,
        "goal": f">= {LEAST:.0%}, above 0 with 95 %, promoted: {'met' if won else 'missed'}",
    }


if __name__ == "__main__":
    for found in results():
        print(found)

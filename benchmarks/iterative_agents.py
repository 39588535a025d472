"""What trainings by default come to where workloads hide something, beside the tuned rule and the rule that is served.

``STEWARD_DATA=… python -m benchmarks iterative_agents`` (an hour and a half on a core; ``iterative_agents:PROBLEM``
runs and records one problem). Each training is that of ``POST …/agents`` with ``{}``: 2,000,000 environment steps;
three seeds of PPO and three with memory, the plan, the tuned and the improved rule compete, and the verdict decides
about promotion.
Five trainings a problem, each judged on 4,096 fresh episodes of the belief behind the guard as served, in this process,
without HTTP; intervals are over the five. Late are runs after their deadline, or iterations that miss their target;
cost is money, or the hours of the only resource. What hindsight allows is as each training measured it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.heuristics import default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import load
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from benchmarks.problems import problem
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.judge import Evaluator, Scores
from workers.kinds.iterative.off_policy import outcomes_of
from workers.kinds.iterative.training import training
from workers.kinds.iterative.tuning import tune
from workers.learning.training.request import Request

PARTS = ("kinds", "regimes", "stages", "features", "pace-shifts", "lost-capacity")
SEEDS, EPISODES, FRESH = range(1, 6), 4_096, 9_500
LEAST = 0.01  # gain over the tuned rule
Row = dict[str, Any]
Floats = NDArray[np.float64]


class Trained(NamedTuple):
    """One training: what it published, and how policies do on the same fresh episodes.

    Attributes:
        algorithm, promoted: of what was published.
        published, tuned, served, knowable: mean return, share of late runs and cost of it, of the tuned rule, of the
            rule that is served, and of the tuned rule that knows each run's law, [3].
        beyond: gain of all noise known, as a share of the tuned rule's return; NaN where there is no bound.
        seconds: CPU seconds from request to verdict.
    """

    algorithm: str
    promoted: bool
    published: Floats
    tuned: Floats
    served: Floats
    knowable: Floats
    beyond: float
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
    numbers = load(tuned.artifact)
    report, room = result.report, result.report["headroom"]
    beyond = room["beyond"]["mean"] / abs(room["tuned"]["mean"]) if room["beyond"] else np.nan
    return Trained(
        report["algorithm"],
        report["promoted"],
        published=_summary(chosen.spec, evaluator.score_artifact(load(result.artifact))),
        tuned=_summary(chosen.spec, evaluator.score_artifact(numbers)),
        served=_summary(chosen.spec, evaluator.score(rule)),
        knowable=_summary(chosen.spec, evaluator.score_artifact(numbers, informed=True)),
        beyond=beyond,
        seconds=spent,
    )


def _summary(spec: Spec, scores: Scores) -> Floats:
    """Mean return, share of what is late, and cost, [3]."""
    names = [outcome.name for outcome in outcomes_of(spec)]
    late = next(name for name in names if name == "missed deadlines" or " that miss " in name)
    cost = "cost" if "cost" in names else next(name for name in names if name.endswith("-hours"))
    outcomes = scores.outcomes.mean(axis=0)
    return np.array([scores.returns.mean(), outcomes[names.index(late)], outcomes[names.index(cost)]])


def row(name: str, trainings: Sequence[Trained]) -> Row:
    """What was published over the tuned rule and over what is served, in per cent of either's return."""
    parts = ("served", "tuned", "published", "knowable")
    every = {part: np.array([getattr(one, part) for one in trainings]) for part in parts}
    served, tuned, published, known = (every[part][:, 0] for part in parts)
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
        "table": {"problem": name}
        | {f"{part}: return, late, cost": _cell(every[part]) for part in parts}
        | {
            "published by default": f"{who}, {promoted} of {len(trainings)}",
            "all noise known, over tuned": _per_cent([one.beyond for one in trainings]),
            "share won": _share(published - tuned, known - tuned),
            "CPU-s, at most": f"{seconds:.0f}",
        },
    }


def _cell(values: Floats) -> str:
    """The means of ``values`` [5, 3], in words."""
    score, late, cost = values.mean(axis=0)
    return f"{score:.5f}, {100 * late:.1f} %, {cost:.3g}"


def _per_cent(shares: Sequence[float]) -> str:
    mean = 100 * float(np.mean(shares))
    return f"{mean:.1f} %" if np.isfinite(mean) else "no bound"


def _share(won: Floats, most: Floats) -> str:
    """The share of what knowing gives, over five trainings; where that is not above 0 for certain there is none."""
    if mean_interval(most)["low"] <= 0:
        return "knowing gives nothing"
    values = mean_interval(won / most)
    return f"{values['mean']:.2f} [{values['low']:.2f}, {values['high']:.2f}]"


if __name__ == "__main__":
    for entry in results():
        print(entry)

"""What networks reach alone: beside the exact optimum, and where there is none, beside all that needs no learning.

``STEWARD_DATA=… python -m benchmarks agent_quality`` (an hour and a half on a core; ``agent_quality:PROBLEM`` runs and
records one problem, two to eight minutes). Every training is that of ``POST …/agents`` with
``{"algorithm": "ppo"}``: 2,000,000 environment steps, the same ones for the same seed on any machine. No plan competes,
nothing is imitated, and no projection of a model is part of a network's values. Networks and heuristics decide
as the service would let them, behind the guard; all on the same 4,096 fresh episodes (1,024 under a belief).

*Exact*: the problems of ``EXACT`` under one model, against the exact optimum. *Without a table*: those of
``WITHOUT_TABLE``, against every heuristic (model-predictive control is one) and, where one can be had, the coarse plan;
ahead where the lower end of the interval is above 0, over seeds and episodes. PPO's settings were chosen with seed 11
on two of the first, pollux-bert and planted-1.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import load
from benchmarks.problems import EXACT, WITHOUT_TABLE, Problem, alone, problem
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.optimum import NoOptimum, plan, solve
from workers.kinds.iterative.training import training
from workers.learning.training.request import Request

GAP, SECONDS = 0.02, 60.0
SEEDS = range(1, 6)
LEARNED = "ppo"
EPISODE_SEED = 9_000  # what is reported on is drawn from this, trainings and their choices are not
PARTS = (*EXACT, *WITHOUT_TABLE)
Row = dict[str, Any]
Returns = NDArray[np.float64]


def results(names: list[str] | None = None) -> list[Row]:
    """Per problem: the gap to the exact optimum, or the lead over the best that needs no learning; and the seconds."""
    rows: list[Row] = []
    for name in names or PARTS:
        rows += exact(alone(name)) if name in EXACT else untabled(problem(name))
    return rows


def trained(chosen: Problem, seed: int) -> tuple[bytes, float]:
    """The artifact of one training, and the seconds of processor time that it took from start to verdict."""
    start = time.process_time()
    learning = training(chosen.spec, chosen.table, Request(LEARNED, seed=seed, force=True))
    while not learning.done:
        learning.advance()
    return learning.result().artifact, time.process_time() - start


def exact(chosen: Problem) -> list[Row]:
    """What networks leave to the exact optimum."""
    evaluator = Evaluator(chosen.spec, chosen.table, EPISODE_SEED)
    optimum = float(evaluator.score(solve(evaluator.layout, evaluator.table).policy).returns.mean())
    gaps, spent = [], []
    for seed in SEEDS:
        artifact, seconds = trained(chosen, seed)
        value = float(evaluator.score_artifact(load(artifact)).returns.mean())
        gaps.append((optimum - value) / abs(optimum))
        spent.append(seconds)
    each = ", ".join(f"{gap:.2%}" for gap in gaps)
    title = f"{chosen.name}: gap of the {LEARNED} alone, mean of {len(gaps)} seeds ({each})"
    return [
        _row(title, statistics.mean(gaps), "fraction", "exact optimum", optimum, max(gaps) <= GAP, f"≤ {GAP} each"),
        _seconds(chosen, spent),
    ]


def untabled(chosen: Problem) -> list[Row]:
    """How far networks are ahead of all that needs no learning, on the same episodes."""
    evaluator, spent = Evaluator(chosen.spec, chosen.table, EPISODE_SEED), []
    peers = {name: evaluator.score(rule).returns for name, rule in HEURISTICS.items()}
    peers |= _planned(chosen, evaluator)
    learned = []
    for seed in SEEDS:
        artifact, seconds = trained(chosen, seed)
        learned.append(evaluator.score_artifact(load(artifact)).returns)
        spent.append(seconds)
    best = max(peers, key=lambda name: float(peers[name].mean()))
    return [_ahead(chosen, learned, best, peers[best]), _seconds(chosen, spent)]


def _planned(chosen: Problem, evaluator: Evaluator) -> dict[str, Returns]:
    try:
        return {"coarse plan": evaluator.score(plan(Layout(chosen.spec), chosen.table).policy).returns}
    except NoOptimum:
        return {}


def _ahead(chosen: Problem, learned: list[Returns], best: str, peer: Returns) -> Row:
    """By the mean over seeds, episode by episode; and by how many of the seeds each for itself."""
    lead = mean_interval(np.mean(learned, axis=0) - peer)
    each = [mean_interval(returns - peer) for returns in learned]
    over_seeds = [float(interval["mean"]) for interval in each]
    spread = statistics.stdev(over_seeds) / len(over_seeds) ** 0.5 if len(over_seeds) > 1 else float("nan")
    low = lead["mean"] - ((lead["mean"] - lead["low"]) ** 2 + (T_95 * spread) ** 2) ** 0.5
    ahead = sum(interval["low"] > 0 for interval in each)
    text = f"lower end {low:+.5f}; {ahead} of {len(each)} seeds are ahead each by itself"
    title = f"{chosen.name}: lead of the {LEARNED} alone, {text}"
    return _row(title, lead["mean"], "return", best, float(peer.mean()), low > 0, "lower end above 0")


T_95 = 2.776  # Student's t of four degrees of freedom, two-sided


def _seconds(chosen: Problem, spent: list[float]) -> Row:
    met = max(spent) <= SECONDS
    return _row(
        f"{chosen.name}: training to verdict, the longest", max(spent), "s", None, None, met, f"≤ {SECONDS:g} s"
    )


def _row(name: str, value: float, unit: str, peer: str | None, peer_value: float | None, met: bool, goal: str) -> Row:
    verdict = f"{goal}: {'met' if met else 'missed'}"
    names = ("name", "value", "unit", "peer", "peer_value", "ratio", "goal")
    return dict(zip(names, (name, value, unit, peer, peer_value, None, verdict), strict=True))


if __name__ == "__main__":
    from benchmarks.__main__ import show

    for chosen in sys.argv[1:] or PARTS:
        show(chosen, results([chosen]))

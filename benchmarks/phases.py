"""What the rule gains by choosing the next iteration's allocation apart from those after it, where iterations differ.

``STEWARD_DATA=… python -m benchmarks phases`` (half a minute). Model-predictive control as it is, against the same rule
if it holds one allocation for all that is left, on the problems of ``problems`` whose iterations differ. Both decide as
the service would let them, behind the guard, in the simulator of the domain model. Return on the same episodes, 4,096
of each seed (1,024 under a belief); the interval is over seeds that nothing was chosen on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np

from app.kinds.iterative.heuristics import HEURISTICS, Heuristic, best_held
from benchmarks.problems import EXACT, alone, problem
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.judge import Evaluator

PROBLEMS = ("ellis-kmeans", "ellis-logisticregression", "stages", "kinds")
SEEDS = range(9_200, 9_210)
HELD = Heuristic("held", best_held)
MARGIN = 0.01  # of the held rule's return, below which a difference counts as none
Row = dict[str, Any]


def results() -> list[Row]:
    """A row for each problem."""
    return [compared(name) for name in PROBLEMS]


def compared(name: str) -> Row:
    """The mean gain over seeds, with its interval."""
    chosen = alone(name) if name in EXACT else problem(name)
    gains, before = [], []
    for seed in SEEDS:
        evaluator = Evaluator(chosen.spec, chosen.table, seed)
        one = evaluator.score(HELD).returns
        gains.append(float((evaluator.score(HEURISTICS["model_predictive"]).returns - one).mean()))
        before.append(float(one.mean()))
    gain, peer = mean_interval(np.array(gains)), float(np.mean(before))
    lost = gain["low"] < -MARGIN * abs(peer)
    text = f"{name}: gain, 95 % interval {gain['low']:+.5f} to {gain['high']:+.5f} over {len(gains)} seeds"
    goal = f"no loss beyond {MARGIN:.0%}: {'missed' if lost else 'met'}"
    return {
        "name": text,
        "value": gain["mean"],
        "unit": "return",
        "peer": "held",
        "peer_value": peer,
        "ratio": None,
        "goal": goal,
    }


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("phases", results())

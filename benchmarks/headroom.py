"""What there is to gain on the shared problems: tuning, knowledge of each run's law, and of all noise.

``STEWARD_DATA=… python -m benchmarks headroom`` (about a quarter of an hour on one core). The rule's numbers are tuned
to convergence on one set of episodes and compared with the rule as served, behind the guard, on others that nothing
was chosen on: 1,024 of each of five seeds; intervals are over seeds. ``headroom:NAME`` measures one problem.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np

from app.kinds.iterative.heuristics import default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import load
from app.kinds.iterative.projector import Projector
from benchmarks.problems import PROBLEMS, problem
from workers.evaluation.headroom import MOST
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative import tuning
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.training import TRAINING_MEMBERS

SEEDS, EPISODES = range(9_300, 9_305), 1_024
MARGIN = 0.01
PARTS = tuple(PROBLEMS)
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A row for each problem of ``parts``."""
    return [measured(name) for name in parts]


def measured(name: str) -> Row:
    """The gain of tuning over what is served, in per cent of its return, with what else there is to gain."""
    chosen, begun = problem(name), process_time()
    table = chosen.table.thinned(TRAINING_MEMBERS)
    tuned = tuning.tune(chosen.spec, table, 1, tuning.steps(Layout(chosen.spec), MOST))
    if tuned is None:
        raise ValueError(f"{name}: the budget of {MOST} generations was refused")
    spent = process_time() - begun
    room = tuning.headroom(chosen.spec, table, tuned.artifact, 1)
    rule, artifact = default_heuristic(Projector(Layout(chosen.spec), table)), load(tuned.artifact)
    gains, before = [], []
    for seed in SEEDS:
        evaluator = Evaluator(chosen.spec, table, seed, EPISODES)
        served = evaluator.score(rule).returns
        gains.append(float((evaluator.score_artifact(artifact).returns - served).mean()))
        before.append(float(served.mean()))
    peer = float(np.mean(before))
    gain = {part: 100 * value / abs(peer) for part, value in mean_interval(np.array(gains)).items()}
    known = f"{100 * room.left['mean'] / abs(peer):.1f} %"
    beyond = room.why if room.beyond is None else f"{100 * room.beyond['mean'] / abs(peer):.1f} %"
    state = f"{tuned.generations} generations, {'converged' if tuned.converged else 'not converged'}, {spent:.0f} CPU-s"
    return {
        "name": f"{name}: tuned over {rule.name}, 95 % {gain['low']:+.2f} to {gain['high']:+.2f} % over {len(gains)} "
        f"seeds; each run's law known: {known} more; all noise known: {beyond} ({state})",
        "value": round(gain["mean"], 2),
        "unit": "% of the return",
        "peer": rule.name,
        "peer_value": round(peer, 5),
        "ratio": None,
        "goal": f"no loss beyond {MARGIN:.0%}: {'missed' if gain['low'] < -100 * MARGIN else 'met'}",
    }


if __name__ == "__main__":
    for row in results():
        print(row)

"""A table, a value-based network and two actor-critics on every shared problem: return beside the best heuristic's.

``STEWARD_DATA=… python -m benchmarks algorithms`` (25 minutes on a core; ``algorithms:PROBLEM`` runs and records one
problem). Each algorithm learns by itself (nothing else competes) for 250,000 environment steps, with five seeds; the
exported policy is judged behind the guard on fresh episodes, of each seed its own, beside heuristics and, where one
can be had, the exact optimum. PPO, which agents are trained with, has a benchmark of its own: ``agent_quality``.
The interval is that of the mean over seeds of the paired difference to the best heuristic (95 %, by Student's t over
the seeds, whose episodes differ too): *at least as good* while it ends above 1 % of the heuristic's return below it.
More seeds make it narrower, and none passes by having fewer. Parts
``variants-PROBLEM`` measure each switch of DQN alone.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import sys
from typing import Any

import numpy as np

from benchmarks.problems import PROBLEMS, problem
from workers.evaluation.statistics import MARGIN, Equivalence, mean_interval
from workers.kinds.iterative.training import training
from workers.learning.training.request import Request

ALGORITHMS = ("tabular_q", "dueling_double_dqn", "a2c", "vtrace")
VARIANTS = ("dqn", "double_dqn", "dueling_dqn", "n_step_dqn", "prioritised_dqn", "quantile_dqn", "apex_dqn")
"""Switches of DQN, each of which is measured alone."""
VARIANTS_ON = ("ellis-kmeans",)
SEEDS, BUDGET = 5, 250_000
PARTS = (*PROBLEMS, *(f"variants-{name}" for name in VARIANTS_ON))
Row = dict[str, Any]


def results(names: list[str] | None = None, algorithms: tuple[str, ...] = ALGORITHMS) -> list[Row]:
    """One row for each algorithm on each problem; for parts ``variants-PROBLEM``, one for each variant of DQN."""
    rows = []
    for part in names or PARTS:
        name = part.removeprefix("variants-")
        rows += [row(name, algorithm) for algorithm in (algorithms if name == part else VARIANTS)]
    return rows


def trained(name: str, algorithm: str, seed: int) -> dict[str, Any]:
    """The report of one training."""
    chosen = problem(name)
    learning = training(chosen.spec, chosen.table, Request(algorithm, BUDGET, seed, force=True))
    while not learning.done:
        learning.advance()
    return learning.result().report


def row(name: str, algorithm: str) -> Row:
    """An algorithm's return on a problem beside the best heuristic's."""
    reports = [trained(name, algorithm, seed) for seed in range(1, SEEDS + 1)]
    best = reports[0]["best_heuristic"]
    value = statistics.fmean(report["return"]["mean"] for report in reports)
    theirs = statistics.fmean(report["heuristics"][best]["mean"] for report in reports)
    gaps = [report["gap_to_optimum"] for report in reports]
    reported = "no exact optimum" if None in gaps else f"gap to the optimum {spread([100 * gap for gap in gaps], '%')}"
    ahead = difference(reports)
    as_good = Equivalence(MARGIN, theirs).as_good(ahead)
    interval = f"ahead {ahead['mean']:+.5f} [{ahead['low']:+.5f}, {ahead['high']:+.5f}]"
    return {
        "name": f"{name}: {algorithm}, {interval}, {reported}",
        "value": value,
        "unit": "return",
        "peer": best,
        "peer_value": theirs,
        "ratio": None,
        "goal": f"at least as good within {MARGIN:.0%} (paired, 95 %): {'met' if as_good else 'missed'}",
    }


def difference(reports: list[dict[str, Any]]) -> dict[str, float]:
    """Mean over seeds of the paired difference to the best heuristic, with its 95 % interval."""
    return mean_interval(np.array([report["advantage"]["mean"] for report in reports]))


def spread(values: list[float], unit: str) -> str:
    """Mean and range."""
    return f"{statistics.fmean(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    from benchmarks.__main__ import show

    for chosen in sys.argv[1:] or PARTS:
        show(f"algorithms on {chosen}", results([chosen]))

"""Policies of known worth before the judge of a training: is the worse refused, and the better promoted?

``python -m benchmarks planted_judgings`` (``planted_judgings:iterative`` and so on runs one kind). Nothing is trained.
Each judging is of executions of its own, drawn from a known law, to which a domain model is fitted as the service does.
A policy that is worse than what answers by half a margin of practical equivalence must be refused in 95 of 100
judgings, and one that is better by two margins must be promoted in 90. What a policy is worth is measured beside what
answers in the world of the law itself, on episodes that no judging sees.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies.artifact import save
from app.kinds.iterative.projector import Projector
from benchmarks.problems import PROBLEMS, Problem
from workers.evaluation.arena import play
from workers.evaluation.equivalence import MARGIN
from workers.evaluation.levels import Level
from workers.evaluation.statistics import mean_interval
from workers.evaluation.wrappers.held_out import HeldOut
from workers.inputs import Samples
from workers.kinds.iterative.estimation.executions import Executions
from workers.kinds.iterative.estimation.fit import fit_domain_model
from workers.kinds.iterative.evaluation.optimum import solve
from workers.kinds.iterative.evaluation.problem import IterativeProblem
from workers.kinds.iterative.evaluation.world import IterativeWorld
from workers.kinds.iterative.training.problem import IterativeTraining
from workers.learning.training.problem import Planned

PARTS = ("iterative",)
JUDGINGS, EXECUTIONS, TRUE_EPISODES = 100, 24, 1_024
REFUSED, PROMOTED = 0.95, 0.90
WORSE, BETTER = -0.5 * MARGIN, 2 * MARGIN
NOTHING = Planned(why_not="no plan competes")
Row = dict[str, Any]


def results(parts: tuple[str, ...] | list[str] = PARTS) -> list[Row]:
    """Shares of judgings, and what each policy is worth, by kind."""
    return [row for part in parts for row in {"iterative": iterative}[part]()]


def iterative() -> list[Row]:
    """Plans for slower laws than the true one, which are worth the less the slower their law is."""
    problem = PROBLEMS["planted-1"]()
    best, spent = plan(problem, 0.0), []
    handicaps = {
        "worse": tuned(lambda slower: WORSE - worth(problem, plan(problem, slower), None)),
        "champion": tuned(lambda slower: worth(problem, best, plan(problem, slower)) - BETTER),
    }
    worse, champion = (plan(problem, handicaps[name]) for name in ("worse", "champion"))
    refused, promoted, fits = 0, 0, []
    for seed in range(JUDGINGS):
        samples = executions(problem, seed)
        begun = time.process_time()
        table = fit_domain_model(problem.spec, Executions(tuple(samples)), seed).table
        fits.append(time.process_time() - begun)
        training = IterativeTraining(problem.spec, table, 10 * seed, samples)
        begun = time.process_time()
        refused += not training.judge(worse, NOTHING, None, MARGIN)["promoted"]
        promoted += training.judge(best, NOTHING, champion, MARGIN)["promoted"]
        spent.append((time.process_time() - begun) / 2)
    return [
        _share("iterative: refused though worse", refused, worth(problem, worse, None), REFUSED),
        _share("iterative: promoted as it is better", promoted, worth(problem, best, champion), PROMOTED),
        _row("iterative: processor time of a judging", float(np.mean(spent)), "s", "fit", float(np.mean(fits)), None),
    ]


def tuned(excess: Callable[[float], float]) -> float:
    """The log of how much slower a law has to be for ``excess``, which grows with it, to pass 0; by bisection."""
    low, high = 0.0, 1.0
    for _ in range(7):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return (low + high) / 2


def plan(problem: Problem, slower: float) -> bytes:
    """The exact plan for a law of which the logs of seconds are larger by ``slower``."""
    table, layout = problem.table, Layout(problem.spec)
    believed = replace(table, log_mean=table.log_mean + np.float32(slower))
    return save(solve(layout, believed, with_error=False).policy, layout)


def worth(problem: Problem, artifact: bytes, champion: bytes | None) -> float:
    """What an artifact earns over the champion, or over the heuristic that answers, as a share of its return.

    Policies believe in models fitted to three sets of executions; runs follow the law itself.
    """
    layout, law = Layout(problem.spec), Projector(Layout(problem.spec), problem.table, np.float32)
    gains, returns = [], []
    for seed in range(1_000, 1_003):
        table = fit_domain_model(problem.spec, Executions(tuple(executions(problem, seed))), seed).table.thinned(4)
        evaluation = IterativeProblem(problem.spec, table)
        earned = []
        for contender in (artifact, champion or HEURISTICS["model_predictive"]):
            world = IterativeWorld(Projector(layout, table, np.float32), [law], TRUE_EPISODES, seed)
            HeldOut(world, seed)
            earned.append(play(world, Level.SEEDS, seed, evaluation.player(contender)).returns)
        gains.append(float((earned[0] - earned[1]).mean()))
        returns.append(abs(float(earned[1].mean())))
    return sum(gains) / sum(returns)


def executions(problem: Problem, seed: int) -> Samples:
    """Executions of the law, each at an allocation of its own."""
    rng, layout, found = np.random.default_rng(seed), Layout(problem.spec), []
    table, iterations = problem.table, problem.spec.iterations
    rows = np.linspace(0, len(layout.allocations) - 1, EXECUTIONS).round().astype(int)
    for number, row in enumerate(rng.permutation(rows)):
        drift = np.cumsum(table.drift_sd[0] * rng.standard_normal(iterations))
        logs = table.log_mean[0, row, 0, 0] + table.effect_sd[0] * rng.standard_normal() + drift
        seconds = np.exp(logs + table.noise_sd[0] * rng.standard_normal(iterations))
        amounts = np.tile(layout.allocations[row], (iterations, 1))
        found.append((f"run-{number}", np.column_stack([np.arange(iterations), amounts, seconds])))
    return tuple(found)


def _share(title: str, count: int, effect: float, goal: float) -> Row:
    share = count / JUDGINGS
    interval = mean_interval(np.repeat([1.0, 0.0], [count, JUDGINGS - count]))
    spread = f"95 % interval {interval['low']:.2f} to {interval['high']:.2f}"
    verdict = f"≥ {goal:.2f}: {'met' if share >= goal else 'missed'}"
    return _row(f"{title} by {abs(effect):.2%}, {spread}", share, "share", None, None, verdict)


def _row(name: str, value: float, unit: str, peer: str | None, peer_value: float | None, goal: str | None) -> Row:
    names = ("name", "value", "unit", "peer", "peer_value", "ratio", "goal")
    return dict(zip(names, (name, value, unit, peer, peer_value, None, goal), strict=True))


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("planted_judgings", results())

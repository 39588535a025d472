"""The Ellis applications: Spark jobs that were rescaled between their stages, judged on runs that nobody is shown.

Runs 1–10 are the profile. The judge is made of runs 11–60 without 41–50, and 61–65 are left out too (failures were
injected into both): per stage non-negative least squares of the duration on [1, 1/executors]; a run's effect is the
mean of measured over fitted, weighted by duration; its residuals are that ratio over the effect. An episode draws one
run's effect and one run's residuals.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from app.kinds.iterative.spec import Spec
from benchmarks.domain_data import ELLIS_TARGETS, ellis
from benchmarks.held_out.world import Episodes, Floats, Profile, World
from workers.kinds.iterative.grid import Executions

PROFILED, FAILED, LAST = 10, range(41, 51), 60
EXECUTORS = {"name": "executors", "minimum": 4, "maximum": 36, "max_steps": 8, "initial": 20, "price_per_hour": 1}


def spark(folder: Path, app: str, probability: float | None = None) -> World:
    """The world of one application, by the data folder and its name: ``logisticregression`` or ``kmeans``; its deadline
    may be asked to be met with a ``probability``.
    """
    runs = {int(name): data for name, data in ellis(folder, app)[1].items}
    shown = Executions(tuple((str(n), runs[n]) for n in range(1, PROFILED + 1)))
    later = [data for n, data in sorted(runs.items()) if PROFILED < n <= LAST and n not in FAILED]
    return judge(f"Spark {app}", _spec(app, len(later[0]), probability), shown, later)


def judge(name: str, spec: Spec, shown: Executions, later: list[Floats]) -> World:
    """A world that draws from the runs ``later``, each [I, 3]: stage, executors, seconds."""
    table = np.stack(later)  # [runs, I, 3]
    theta = np.stack([_stage(table[:, i, 1], table[:, i, 2]) for i in range(spec.iterations)])
    ratio = table[:, :, 2] / (theta[:, 0] + theta[:, 1] / table[:, :, 1])
    effects = np.average(ratio, axis=1, weights=table[:, :, 2])
    residuals = ratio / effects[:, None]

    def law(iteration: int, units: Floats, features: Floats) -> Floats:  # noqa: ARG001 - it has none
        seconds: Floats = theta[iteration, 0] + theta[iteration, 1] / units
        return seconds

    def draw(count: int, random: np.random.Generator) -> Episodes:
        effect, residual = random.integers(len(later), size=(2, count))
        factors = effects[effect, None] * residuals[residual]
        return Episodes(factors[:, :, None], np.zeros((count, spec.iterations, 0)))

    return World(name, Profile(spec, shown), law, draw)


def rehearsals(world: World, count: int, seed: int) -> list[World]:
    """Worlds to tune on, made of a profile alone: half of its executions are shown, the judge is made of the others."""
    random, executions = np.random.default_rng(seed), world.profile.executions.items
    halves = [np.array_split(random.permutation(len(executions)), 2) for _ in range(count)]
    return [
        judge(
            f"{world.name}, rehearsal {n}",
            world.spec,
            Executions(tuple(executions[i] for i in shown)),
            [executions[i][1] for i in other],
        )
        for n, (shown, other) in enumerate(halves)
    ]


def _stage(executors: Floats, seconds: Floats) -> Floats:
    return nnls(np.stack([np.ones_like(executors), 1 / executors], axis=1), seconds)[0]


def _spec(app: str, iterations: int, probability: float | None) -> Spec:
    deadline = {"name": "iteration_seconds", "unit": "s", "target": ELLIS_TARGETS[app], "scope": "run"}
    deadline |= {"probability": probability}
    return Spec.model_validate(
        {"name": f"spark-{app}", "resources": [EXECUTORS], "metrics": [deadline], "iterations": iterations}
    )

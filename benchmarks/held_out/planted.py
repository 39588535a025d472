"""Planted worlds: a known law, chance around it, and a profile of whole executions at allocations that never change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.kinds.iterative.spec import Spec
from benchmarks.held_out.world import Episodes, Floats, Law, Profile, World
from workers.kinds.iterative.grid import Executions

Course = Callable[[int, np.random.Generator], Floats]
"""Features of so many runs, [E, I, F]."""


@dataclass(frozen=True, eq=False)
class Plan:
    """How a world is.

    Attributes:
        sampled: allocations of the profile's executions, [n, R].
        effect_sd, noise_sd: of the logs of a run's effect and of an iteration's noise; the same in all stages, or by
            stage, [I]: what slows the stages that compute need not slow those that wait.
        tails: degrees of freedom of the noise (Student's t, scaled to ``noise_sd``); None for a normal one.
        announced: see ``World``.
        drift: by which the second half of a run is slower when it is judged, though no profile shows it.
    """

    spec: dict[str, Any]
    law: Law
    sampled: Floats
    effect_sd: float | Floats = 0.15
    noise_sd: float | Floats = 0.1
    tails: float | None = None
    drift: float = 1.0
    course: Course | None = None
    announced: bool = False


def planted(name: str, plan: Plan, seed: int) -> World:
    """The world of a plan; ``seed`` is of the profile's chance."""
    spec = Spec.model_validate({"name": name, **plan.spec})

    def draw(count: int, random: np.random.Generator) -> Episodes:
        return _chance(plan, spec, count, random, plan.drift)

    shown = _chance(plan, spec, len(plan.sampled), np.random.default_rng((seed, 1)), 1.0)
    return World(name, Profile(spec, _executions(plan, spec, shown)), plan.law, draw, plan.announced)


def _chance(plan: Plan, spec: Spec, count: int, random: np.random.Generator, drift: float) -> Episodes:
    """Slowness multiplies seconds and divides what a target wants at least: one run's metrics tell the same."""
    shape = (count, spec.iterations)
    noise = random.standard_normal(shape) if plan.tails is None else _heavy(plan.tails, shape, random)
    slowness = plan.effect_sd * random.standard_normal((count, 1)) + plan.noise_sd * noise
    slowness[:, spec.iterations // 2 :] += np.log(drift)
    signs = np.array([-1 if m.goal == "at_least" else 1 for m in spec.metrics])
    features = np.zeros((*shape, 0)) if plan.course is None else plan.course(count, random)
    return Episodes(np.exp(slowness[:, :, None] * signs), features)


def _heavy(freedom: float, shape: tuple[int, int], random: np.random.Generator) -> Floats:
    """Student's t with a standard deviation of 1."""
    drawn: Floats = random.standard_t(freedom, shape) * np.sqrt((freedom - 2) / freedom)
    return drawn


def _executions(plan: Plan, spec: Spec, chance: Episodes) -> Executions:
    stages = range(spec.iterations)
    means = np.stack([plan.law(i, plan.sampled, chance.features[:, i]) for i in stages], axis=1)
    measured = means * chance.factors
    numbers, units = np.arange(spec.iterations)[:, None], np.repeat(plan.sampled[:, None], spec.iterations, axis=1)
    rows = [np.hstack([numbers, *run]) for run in zip(units, measured, chance.features, strict=True)]
    return Executions(tuple((f"profiled-{n}", data) for n, data in enumerate(rows)))

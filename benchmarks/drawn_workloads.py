"""Broad workloads of kind ``iterative``, drawn at random: what is published, what is true, and what samples show of it.

Letters in shapes: A allocations, R resources, I iterations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, initial_table
from app.kinds.iterative.prior import LAWS
from app.kinds.iterative.spec import Disturbances, Spec
from workers.kinds.iterative.fit import fit_domain_model
from workers.kinds.iterative.grid import Executions

Floats = NDArray[np.float64]
Random = np.random.Generator
MEAN_SECONDS = 20.0  # of an iteration; everything else is relative to it
MEMBERS = 4  # of the belief that is fitted
LEVELS = ((5, 33), (4, 9), (3, 5))  # fewest and most of each resource, with one, two and three resources
STEPS = (4, 2, 1)  # most of each resource at once


class Generated(NamedTuple):
    """A workload that was drawn.

    Attributes:
        spec: what the service knows.
        truth: what runs follow.
        table: the domain model, fitted to a few executions of ``truth``.
    """

    spec: Spec
    truth: ModelTable
    table: ModelTable


def generate(seed: int) -> Generated:
    """Draw a workload without disturbances."""
    random = np.random.default_rng([seed, 11])
    spec = _spec(random, f"drawn-{seed}")
    seconds, even = _law(random, spec)
    spec = _aimed(random, spec, seconds, even=even)
    truth = _truth(random, spec, seconds)
    table = fit_domain_model(spec, _executions(random, spec, truth), seed, reported=False).table.thinned(MEMBERS)
    return Generated(spec, truth, table)


def _between(random: Random, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def draw_shift(seed: int) -> Disturbances:
    """Draw a shift of pace by a factor of 1.05 to 2.2, in 15 to 80 % of the runs."""
    random = np.random.default_rng([seed, 12])
    factor = np.exp(np.sort(random.uniform(np.log(1.05), np.log(2.2), 2)))
    shift = {"probability": random.uniform(0.15, 0.8), "factor": tuple(factor.tolist())}
    return Disturbances.model_validate({"pace_shift": shift})


def _spec(random: Random, name: str) -> Spec:
    """Draw resources, iterations and weights; there are no targets yet."""
    count = 1 + int(random.choice(3, p=(0.5, 0.35, 0.15)))
    fewest, most = LEVELS[count - 1]
    pauses = np.where(random.random(count) < 0.35, 0.0, [_between(random, 0.2, 30.0) for _ in range(count)])
    resources = []
    for index in range(count):
        levels, minimum = int(random.integers(fewest, most + 1)), int(random.integers(1, 5))
        resources.append(
            {
                "name": f"resource_{index}",
                "minimum": minimum,
                "maximum": minimum + levels - 1,
                "max_steps": int(random.integers(1, STEPS[count - 1] + 1)),
                "price_per_hour": _between(random, 0.2, 4.0),
                "change_seconds": float(pauses[index]),
            }
        )
    weights = {"cost": _between(random, 0.03, 0.4), "change": _between(random, 0.002, 0.1)}
    iterations = round(_between(random, 8, 48))
    return Spec.model_validate({"name": name, "resources": resources, "iterations": iterations, "weights": weights})


def _law(random: Random, spec: Spec) -> tuple[Floats, bool]:
    """Draw the true seconds of each allocation and iteration, [A, I], and whether iterations are alike."""
    layout = Layout(spec)
    grid, count = layout.allocations, len(layout.resources)
    law = LAWS[str(random.choice(list(LAWS)))]
    share = random.uniform(0.25, 1.0) * random.dirichlet(np.ones(count))
    centre = np.sqrt(grid.min(axis=0) * grid.max(axis=0))
    curve = np.exp(law(grid / centre, share[None])[:, 0])
    form, length = random.random(), np.ones(spec.iterations)
    scales = np.ones(spec.iterations)
    if form > 0.6:  # iterations are stages of any length
        length = np.exp(random.uniform(0.2, 0.7) * random.standard_normal(spec.iterations))
    if form > 0.85:  # most of which wait
        scales = np.where(random.random(spec.iterations) < random.uniform(0.3, 0.7), 1.0, random.uniform(0, 0.3))
    seconds: Floats = MEAN_SECONDS * length / length.mean() * (1 - scales + scales * curve[:, None])
    return seconds, bool(form <= 0.6)


def _aimed(random: Random, spec: Spec, seconds: Floats, *, even: bool) -> Spec:
    """Add a target that some allocation within the range meets, with a little to spare or to miss."""
    total = np.quantile(seconds.sum(axis=1), random.uniform(0.2, 0.8)) * random.uniform(1.0, 1.3)
    scope = "iteration" if even and random.random() < 0.25 else "run"
    target = total if scope == "run" else total / spec.iterations
    metric = {"name": "iteration_seconds", "unit": "s", "target": round(float(target), 2), "scope": scope}
    return Spec.model_validate(spec.model_dump() | {"metrics": [metric]})


def _truth(random: Random, spec: Spec, seconds: Floats) -> ModelTable:
    drift = 0.0 if random.random() < 0.6 else _between(random, 0.01, 0.12)
    return replace(
        initial_table(Layout(spec)),
        log_mean=np.log(seconds)[None, :, None, :].astype(np.float32),
        iteration_bin=np.arange(spec.iterations, dtype=np.int32),
        effect_sd=np.array([_between(random, 0.03, 0.3)]),
        noise_sd=np.array([_between(random, 0.03, 0.4)]),
        drift_sd=np.array([drift]),
        informed=True,
    )


def _executions(random: Random, spec: Spec, truth: ModelTable) -> Executions:
    """Draw 3 to 16 executions, each at one allocation, in the inner part of the range."""
    layout, count = Layout(spec), round(_between(random, 3, 16))
    effect_sd, noise_sd, drift_sd = (float(part[0]) for part in (truth.effect_sd, truth.noise_sd, truth.drift_sd))
    low, high = np.quantile(layout.allocations, (0.1, 0.9), axis=0)
    inner = np.flatnonzero(((layout.allocations >= low) & (layout.allocations <= high)).all(axis=1))
    rows = random.choice(inner, count)
    if len(np.unique(rows)) == 1:
        rows[0] = random.choice(len(layout.allocations))
    runs = []
    for number, row in enumerate(rows):
        slow = effect_sd * random.standard_normal() + drift_sd * random.standard_normal(spec.iterations).cumsum()
        logs = truth.log_mean[0, row, 0] + slow + noise_sd * random.standard_normal(spec.iterations)
        allocation = np.repeat(layout.allocations[row][None], spec.iterations, axis=0)
        runs.append((f"run-{number}", np.column_stack([np.arange(spec.iterations), allocation, np.exp(logs)])))
    return Executions(tuple(runs))

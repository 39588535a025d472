"""What workloads are like before any samples: laws of scaling, and a belief drawn from a population of workloads.

Letters in shapes: A allocations, R resources, M metrics, K members, J shares of the work that resources shorten.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import UNINFORMED_EFFECT_SD, ModelTable, initial_table, targets_per_iteration

Floats = NDArray[np.float64]

# Laws by which a metric falls as an allocation grows; samples may not tell them apart.


STEPS = (20, 10, 6)  # steps of a share, with one, two and three resources
COARSEST = 4
SMALLEST = 1e-9

Law = Callable[[Floats, Floats], Floats]
"""Maps relative allocations [n, R] and shares [J, R] to the log of the relative metric [n, J]; 0 at allocation 1."""


def shares(resources: int) -> Floats:
    """Make a lattice of the shares of the work that each resource shortens: at least 0, sum at most 1, [J, R]."""
    steps = STEPS[resources - 1] if resources <= len(STEPS) else COARSEST
    lattice = itertools.product(range(steps + 1), repeat=resources)
    return np.array([point for point in lattice if sum(point) <= steps], np.float64) / steps


def amdahl(overhead: float) -> Law:
    """Make a law of a serial part plus parts inversely proportional to each resource (Amdahl 1967), plus communication:
    ``overhead`` times the relative allocation (Venkataraman et al. 2016).
    """

    def law(relative: Floats, share: Floats) -> Floats:
        left = 1 - share.sum(axis=1) + (1 / np.maximum(relative, SMALLEST)) @ share.T
        grown = overhead * relative.mean(axis=1, keepdims=True)
        return np.asarray(np.log(np.maximum(left + grown, SMALLEST)) - np.log1p(overhead), np.float64)

    return law


def power(relative: Floats, share: Floats) -> Floats:
    """Return the log of a power law, [n, J], whose elasticities are minus the shares [J, R], for relative allocations
    [n, R].
    """
    return np.asarray(-np.log(np.maximum(relative, SMALLEST)) @ share.T, np.float64)


def retrograde(knee: float, loss: float) -> Law:
    """Make a law: Amdahl's up to relative allocation ``knee``, then rising by elasticity ``loss`` (Gunther 1993)."""

    def law(relative: Floats, share: Floats) -> Floats:
        beyond = np.log(np.maximum(relative / knee, 1)).mean(axis=1, keepdims=True)
        return np.asarray(amdahl(0.0)(np.minimum(relative, knee), share) + loss * beyond, np.float64)

    return law


LAWS: dict[str, Law] = {
    "amdahl": amdahl(0.0),
    "overhead_10": amdahl(0.1),
    "overhead_20": amdahl(0.2),
    "power": power,
    "knee_100": retrograde(1.0, 0.5),
    "knee_125": retrograde(1.25, 0.25),
    "knee_160": retrograde(1.6, 0.5),
}

# The prior: members with the laws of a population, each of which meets the targets at the middle of the allocations.


POPULATION = Path(__file__).with_name("population.json")
MIDDLE = 0.55  # of the range of each resource's amounts, in logarithms: where workloads meet their targets,
SPARE = 1.15  # by this factor
EFFECT_SD = 0.2  # of the log of that factor between workloads
NOISE_SD = {"run": 0.5, "iteration": 0.15}  # of log metrics between a run's iterations, by the scope of their target:
# those of a run with a deadline may be stages of any length, while a target of each makes sense only if they are alike
NOISE_WEIGHT = 2.0
REACH = 2.131846786326649  # quantile at 95 % of Student's t with 4 degrees of freedom


@cache
def population() -> list[tuple[str, float]]:
    """Return K equally likely pairs of a law's name and a share, as ``steward pretrain`` fitted them."""
    read: dict[str, Any] = json.loads(POPULATION.read_text())
    return [(str(name), float(share)) for name, share in read["members"]]


def prior_table(layout: Layout) -> ModelTable:
    """Return the domain model before any samples: K members that scale as a population of workloads does.

    Its scale comes from the targets; every metric is taken to fall as allocations grow, those with a target of at least
    so much to rise. Without a target for the duration, or with features, it is ``initial_table``, which predicts
    nothing.
    """
    metrics = layout.spec.metrics
    aimed_at = np.array([metric.target is not None for metric in metrics])
    if not aimed_at[layout.seconds] or layout.features:
        return initial_table(layout)
    members = population()
    low, high = np.where(layout.allocations > 0, layout.allocations, np.inf).min(axis=0), layout.allocations.max(axis=0)
    grid = np.maximum(layout.allocations, low / 2)  # nothing of a resource is taken for half of the least amount
    centre, meeting = np.sqrt(low * high), low ** (1 - MIDDLE) * high**MIDDLE
    parts = np.random.default_rng(0).dirichlet(np.ones(grid.shape[1]), len(members))  # of each resource in the share
    curves = np.empty((len(members), len(grid)))
    for k, (name, share) in enumerate(members):
        curve = LAWS[name](np.vstack([grid, meeting]) / centre, share * parts[None, k])[:, 0]
        curves[k] = curve[:-1] - curve[-1] - np.log(SPARE)
    rises = np.array([i != layout.seconds and metric.goal == "at_least" for i, metric in enumerate(metrics)])
    apart = np.where(rises, -1.0, 1.0)[None, :, None] * curves[:, None]  # [K, M, A]
    level = targets_per_iteration(layout)
    mean = (level[:, None] + apart.mean(axis=0)).astype(np.float32)
    effect_sd = np.where(aimed_at, EFFECT_SD, UNINFORMED_EFFECT_SD)
    noise_sd = np.array([NOISE_SD[metric.scope] for metric in metrics])
    marginal, residual = REACH * np.hypot(effect_sd, noise_sd), REACH * noise_sd
    return replace(
        initial_table(layout),
        log_mean=mean[:, :, None, None],
        members=(level[:, None] + apart - mean)[..., None, None].astype(np.float32),
        effect_sd=effect_sd,
        noise_sd=noise_sd,
        noise_weight=NOISE_WEIGHT,
        marginal_low=-marginal,
        marginal_high=marginal,
        residual_low=-residual,
        residual_high=residual,
        informed=True,
        prior=True,
    )

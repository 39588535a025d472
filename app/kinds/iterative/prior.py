"""What workloads are like before any samples: laws of scaling, and a belief drawn from a population of workloads.

Letters in shapes: A allocations, R resources, M metrics, K members, J shares of the work that resources shorten.
"""

from __future__ import annotations

import itertools
import json
import logging
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.contract.kind import MOST_EARLIER, Earlier, Prior
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import UNINFORMED_EFFECT_SD, ModelTable, initial_table, targets_per_iteration
from app.kinds.iterative.spec import Resource, Spec

Floats = NDArray[np.float64]

# Laws by which a metric falls as an allocation grows; samples may not tell them apart.


STEPS = (20, 10, 6)  # steps of a share, with one, two and three resources
COARSEST = 4
SMALLEST = 1e-9

Law = Callable[[Floats, Floats], Floats]
"""Maps relative allocations [n, R] and shares [J, R] to the log of the relative metric [n, J]; 0 at allocation 1."""


def shares(resources: int) -> Floats:
    """Return all combinations of the shares of the work that each resource shortens, on a lattice: at least 0, sum at
    most 1, [J, R]."""
    steps = STEPS[resources - 1] if resources <= len(STEPS) else COARSEST
    lattice = itertools.product(range(steps + 1), repeat=resources)
    return np.array([point for point in lattice if sum(point) <= steps], np.float64) / steps


def amdahl(overhead: float) -> Law:
    """Make a law, which maps relative allocations [n, R] and shares of the work [J, R] to logs of relative seconds [n,
    J]: a serial part, parts inversely proportional to each resource (Amdahl 1967), and communication, ``overhead``
    times the relative allocation (Venkataraman et al. 2016)."""

    def law(relative: Floats, share: Floats) -> Floats:
        left = 1 - share.sum(axis=1) + (1 / np.maximum(relative, SMALLEST)) @ share.T
        grown = overhead * relative.mean(axis=1, keepdims=True)
        return np.asarray(np.log(np.maximum(left + grown, SMALLEST)) - np.log1p(overhead), np.float64)

    return law


def power(relative: Floats, share: Floats) -> Floats:
    """Return the log of a power law, [n, J], whose elasticities are minus the shares [J, R], for relative allocations
    [n, R]."""
    return np.asarray(-np.log(np.maximum(relative, SMALLEST)) @ share.T, np.float64)


def retrograde(knee: float, loss: float) -> Law:
    """Make a law of relative allocations [n, R] and shares [J, R], log seconds [n, J]: Amdahl's up to allocation
    ``knee``, then rising by elasticity ``loss`` (Gunther 1993)."""

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
    """Return K equally likely pairs, scaling law's name and share of the work, as ``steward pretrain`` fitted them."""
    read: dict[str, Any] = json.loads(POPULATION.read_text())
    return [(str(name), float(share)) for name, share in read["members"]]


def is_supported(layout: Layout) -> bool:
    """Return whether the prior predicts anything: the duration has a target, and the workload has no features."""
    return layout.spec.metrics[layout.seconds].target is not None and not layout.features


class _Scale(NamedTuple):
    """Allocations of a workload with R resources, in units.

    Attributes:
        grid: all allocations, [A, R]; nothing of a resource is taken for half of its least amount.
        centre: middle of the range, to which laws are relative, [R].
        meeting: where workloads meet their targets, [R].
    """

    grid: Floats
    centre: Floats
    meeting: Floats

    def curve(self, name: str, share: Floats, units: Floats) -> Floats:
        """Return the log of seconds at ``units`` [n, R] over those at ``meeting``, [n], by the scaling law ``name`` and
        the share of the work that each resource shortens, [R]."""
        values = LAWS[name](np.vstack([units, self.meeting]) / self.centre, share[None])[:, 0]
        return np.asarray(values[:-1] - values[-1], np.float64)


def _scale(layout: Layout) -> _Scale:
    units = layout.allocations
    low, high = np.where(units > 0, units, np.inf).min(axis=0), units.max(axis=0)
    return _Scale(np.maximum(units, low / 2), np.sqrt(low * high), low ** (1 - MIDDLE) * high**MIDDLE)


def prior_table(layout: Layout, own: Prior | None = None) -> ModelTable:
    """Return the domain model before any samples: K members that scale as a population of workloads does, and as the
    members of ``own``, the prior of the tenant's workloads by ``own_prior`` (None: the population alone).

    Targets set its scale. Metrics are assumed to fall as allocations grow, but those with a lower bound as target to
    rise. Without support (``is_supported``) it is ``initial_table``, which predicts nothing."""
    if not is_supported(layout):
        return initial_table(layout)
    metrics = layout.spec.metrics
    aimed_at = np.array([metric.target is not None for metric in metrics])
    scale, noise_sd = _scale(layout), np.array([NOISE_SD[metric.scope] for metric in metrics])
    parts = np.random.default_rng(0).dirichlet(np.ones(len(layout.resources)), len(population()))
    members = [(name, share * part, -np.log(SPARE)) for (name, share), part in zip(population(), parts, strict=True)]
    if own:
        members = members[:: -(-len(members) // BESIDE)]
    for name, share, over in own["members"] if own else ():
        if name in LAWS:  # it is stored: laws may have changed
            members.append((name, np.array(share), over - noise_sd[layout.seconds] ** 2 / 2))
    over = np.full((len(members), len(metrics), 1), -np.log(SPARE))
    over[:, layout.seconds, 0] = [spare for _, _, spare in members]  # earlier workloads tell no other metric's
    curves = np.stack([scale.curve(name, share, scale.grid) for name, share, _ in members])[:, None] + over
    rises = np.array([i != layout.seconds and metric.goal == "at_least" for i, metric in enumerate(metrics)])
    apart = np.where(rises, -1.0, 1.0)[None, :, None] * curves  # [K, M, A]
    level = targets_per_iteration(layout)
    mean = (level[:, None] + apart.mean(axis=0)).astype(np.float32)
    effect_sd = np.where(aimed_at, EFFECT_SD, UNINFORMED_EFFECT_SD)
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


# The tenant's own earlier workloads: laws fitted to the members of their domain models, by how similar they are.
#
# Scaling and the time to spare are theirs; to take their noise, too, gained nothing.


MOST_OWN, BESIDE = 8, 8  # members: of earlier workloads, and of the population beside them
WORTH = 1.0  # sum of the weights of earlier workloads that have half of their most members
EACH = 8  # members of an earlier workload's domain model that are looked at
POINTS = 64  # allocations at which a law is fitted to one
LEAST_OVERLAP = 0.25  # of the ranges of allocations, in logarithms
UNUSABLE = (ArithmeticError, IncompatibleModel, LookupError, TypeError, ValueError)  # of one domain model

logger = logging.getLogger(__name__)


def own_prior(layout: Layout, earlier: Iterable[Earlier]) -> Prior | None:
    """Make a prior of the tenant's earlier workloads, weighted by similarity; None if none is similar.

    ``members`` of the prior are equally likely: each a law's name, the share of the work that each resource shortens,
    [R], and the natural log of mean seconds at the middle of the allocations over the target."""
    if not is_supported(layout):
        return None
    names, weights, members = list[str](), list[float](), list[list[Any]]()  # of each member of each workload
    similar = [(one, weight) for one in earlier if (weight := similarity(layout.spec, one.spec)) > 0]
    similar.sort(key=lambda pair: -pair[1])
    for one, weight in similar[:MOST_EARLIER]:
        try:
            laws = _fitted_laws(layout, Layout(one.spec), one.model())
        except UNUSABLE:
            logger.warning("workload %s: no prior can be made of its domain model", one.spec.name, exc_info=True)
            continue
        laws.sort(key=operator.itemgetter(2))  # so that few of them are spread over all
        names += [one.spec.name] * len(laws)
        weights += [weight / len(laws)] * len(laws)
        members += laws
    if not members:
        return None
    total = sum(weights)
    count = max(1, round(MOST_OWN * total / (total + WORTH)))
    chosen = np.searchsorted(np.cumsum(weights), (np.arange(count) + 0.5) / count * total).tolist()
    used = dict.fromkeys(names[place] for place in chosen)
    return {"workloads": list(used), "members": [members[place] for place in chosen]}


def similarity(spec: Spec, other: Spec) -> float:
    """Return the weight, 0 to 1, of workload ``other`` in the prior of ``spec``; 0: not similar, or one opts out.

    Similar ones have the same resources, all metrics with a target, and ranges of allocations that overlap; the least
    overlap counts, and the words that the names have in common."""
    resources = {(r.name, r.unit): r for r in other.resources}
    metrics = {(m.name, m.unit, m.goal, m.scope) for m in other.metrics if m.target is not None}
    wanted = {(m.name, m.unit, m.goal, m.scope) for m in spec.metrics if m.target is not None}
    same = {(r.name, r.unit) for r in spec.resources} == set(resources) and wanted <= metrics
    opted_out = not (spec.use_earlier_workloads and other.use_earlier_workloads)
    if not same or opted_out or spec.features or other.features:
        return 0.0
    overlap = min(_overlap(r, resources[r.name, r.unit]) for r in spec.resources)
    words, others = (set(re.split(r"[^a-z]+", one.name)) - {""} for one in (spec, other))
    common = len(words & others) / max(1, len(words | others))
    return overlap * (1 + common) / 2 if overlap >= LEAST_OVERLAP else 0.0


def _overlap(one: Resource, other: Resource) -> float:
    """Return the length of what two ranges have in common over that of both together, in logarithms; 0 if only the
    ``other`` one is a single amount, which tells nothing of scaling."""
    if other.minimum == other.maximum and one.minimum != one.maximum:
        return 0.0
    low, high = zip(*(np.log([max(r.minimum, r.step / 2), r.maximum + r.step / 2]) for r in (one, other)), strict=True)
    return max(0.0, float((min(high) - max(low)) / (max(high) - min(low))))


def _fitted_laws(layout: Layout, theirs: Layout, table: ModelTable) -> list[list[Any]]:
    """Return, for each member of an earlier workload's domain model, the closest scaling law: [name, share of the work
    that each resource shortens [R], natural log of mean seconds over the target at ``_Scale.meeting``]. They are fitted
    to allocations of ``theirs`` that have something of each resource, within the samples' ranges; members without
    finite seconds are left out. Raises ``IncompatibleModel`` if there are none."""
    scale, at, lattice = _scale(layout), theirs.seconds, shares(len(layout.resources))
    units, ranged = theirs.allocations, table.seen_low < table.seen_high
    observed = (units >= table.seen_low - SMALLEST) & (units <= table.seen_high + SMALLEST)
    informative = np.flatnonzero(((units > 0) & (observed | ~ranged)).all(axis=1))
    rows = np.sort(np.random.default_rng(0).permutation(informative)[:POINTS])
    logs = table.log_mean[None, at] if table.members is None else table.log_mean[at] + table.members[:EACH, at]
    by_bin = logs[:, rows, 0].astype(np.float64)  # [K, A, I]
    lengths = np.bincount(table.iteration_bin, minlength=by_bin.shape[2]) / theirs.iterations
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        curves = np.log(np.exp(by_bin) @ lengths) + table.noise_sd[at] ** 2 / 2 - targets_per_iteration(theirs)[at]
    curves = curves[np.isfinite(curves).all(axis=1)]
    if not (len(rows) and len(curves)):
        raise IncompatibleModel("it has no finite seconds where something of each resource is taken")
    units = units[rows][:, [theirs.resources.index(name) for name in layout.resources]]
    laws = np.stack([law(units / scale.centre, lattice) for law in LAWS.values()], axis=1)  # [A, laws, J]
    best = (curves[:, :, None, None] - laws).var(axis=1).reshape(len(curves), -1).argmin(axis=1)
    result = list[list[Any]]()
    for curve, place in zip(curves, best.tolist(), strict=True):  # [A]
        name, share = list(LAWS)[place // len(lattice)], lattice[place % len(lattice)]
        over = float((curve - scale.curve(name, share, units)).mean())
        result.append([name, share.round(4).tolist(), round(over, 4)])
    return result

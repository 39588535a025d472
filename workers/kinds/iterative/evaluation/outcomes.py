"""What users count of a run of an ``iterative`` workload: targets missed and by how much, hours, money, changes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.charts.text import MONEY, SHARE
from app.kinds.contract.outcome import Outcome
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reward import miss
from app.kinds.iterative.spec import SECONDS, Metric, Resource, Spec
from app.kinds.iterative.state import State

Floats = NDArray[np.float64]
PERCENT = ("%", "percent", "per cent")
CALLED = {"gpu": "GPU", "cpu": "core", "core": "core"}
"""By part of a resource's unit or name, in small letters."""


def outcomes_of(spec: Spec) -> tuple[Outcome, ...]:
    """The quantities, O of them: of every target two, of every resource one, money where it is not just that, changes.

    How much a target is missed by is a mean over all runs (or iterations), those that meet it counting 0.
    """
    missed = [outcome for metric in spec.metrics if metric.target is not None for outcome in _missed(metric)]
    reserved = [Outcome(name) for name, _ in hours_of(spec.resources)]
    money = [Outcome("cost", MONEY)] if _priced(spec) else []
    return (*missed, *reserved, *money, Outcome("changes"))


def _missed(metric: Metric) -> tuple[Outcome, Outcome]:
    if metric.scope == "run" and metric.name == SECONDS and metric.goal == "at_most":
        return Outcome("runs late", SHARE), Outcome("late by", metric.unit)
    where = "runs" if metric.scope == "run" else "iterations"
    return Outcome(f"{where} that miss {metric.name}", SHARE), Outcome(f"{metric.name} missed by", metric.unit)


def hours_of(resources: Sequence[Resource]) -> list[tuple[str, float]]:
    """What the hours of each resource are called, and how many of its units make one: “core-hours”, 100 per cent.

    Where two would be called the same, their own names stand in front.
    """
    found = []
    for resource in resources:
        noun, whole = resource.unit.strip() or resource.name, 1.0
        if noun.lower() in PERCENT:
            noun, whole = resource.name, 100.0
        known = next((called for part, called in CALLED.items() if part in noun.lower()), None)
        found.append((f"{known or noun.removesuffix('s')}-hours", whole))
    names = [name for name, _ in found]
    return [
        (name if names.count(name) == 1 else f"{resource.name} {name}", whole)
        for resource, (name, whole) in zip(resources, found, strict=True)
    ]


def _priced(spec: Spec) -> bool:
    """Whether what a run costs is more than the hours of one resource."""
    return len(spec.resources) > 1 or spec.resources[0].price_per_hour != 1


def counted(projector: Projector, before: State, after: State) -> Floats:
    """What an iteration adds to each outcome of its run, [B, O]."""
    spec, seconds = projector.layout.spec, projector.layout.seconds
    columns: list[NDArray[Any]] = []
    for i, metric in enumerate(spec.metrics):
        if metric.target is not None:
            columns += _misses(projector, i, after)
    hours = projector.units(after.levels) * after.measured[:, seconds, None] / 3600  # [B, R]
    columns += [own / whole for own, (_, whole) in zip(hours.T, hours_of(spec.resources), strict=True)]
    columns += [(hours * before.prices).sum(axis=1)] if _priced(spec) else []
    columns.append((after.levels != before.levels).any(axis=1).astype(np.float64))
    return np.stack(columns, axis=1, dtype=np.float64)


def _misses(projector: Projector, i: int, after: State) -> Sequence[NDArray[Any]]:
    """Whether a metric misses its target, and by how much: at the end of a run, or of each iteration its share."""
    metric, iterations, target = projector.layout.spec.metrics[i], projector.layout.iterations, after.targets[:, i]
    whole = metric.scope == "run"
    counts = after.iteration >= iterations if whole else np.full(len(target), 1 / iterations)
    value = (after.elapsed if whole else after.measured)[:, i]
    excess = miss(metric.goal, value / target)
    return (excess > 0) * counts, excess * target * counts

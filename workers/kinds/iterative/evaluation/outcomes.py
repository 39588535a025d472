"""What users count of a run of an ``iterative`` workload: targets missed and by how much, hours, money, changes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.outcome import SHARE, Outcome
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reward import miss
from app.kinds.iterative.spec import SECONDS, Metric, Spec
from app.kinds.iterative.state import State

Floats = NDArray[np.float64]


def outcomes_of(spec: Spec) -> tuple[Outcome, ...]:
    """The quantities, O of them: of every target two, of every resource one, money where it is not just that, changes.

    How much a target is missed by is a mean over all runs (or iterations), those that meet it counting 0.
    """
    missed = [outcome for metric in spec.metrics if metric.target is not None for outcome in _missed(metric)]
    held = [Outcome(f"{resource.name} × hours", "h") for resource in spec.resources]
    money = [Outcome("cost")] if _priced(spec) else []
    return (*missed, *held, *money, Outcome("changes"))


def _missed(metric: Metric) -> tuple[Outcome, Outcome]:
    if metric.scope == "run" and metric.name == SECONDS and metric.goal == "at_most":
        return Outcome("runs late", SHARE), Outcome("late by", metric.unit)
    where = "runs" if metric.scope == "run" else "iterations"
    return Outcome(f"{where} that miss {metric.name}", SHARE), Outcome(f"{metric.name} missed by", metric.unit)


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
    columns += list(hours.T)
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

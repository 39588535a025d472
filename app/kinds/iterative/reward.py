"""What a run is paid for: three terms, each of order 1 over a whole run, reported one by one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.observation import View
from app.kinds.iterative.preferences import Preferences, reference_cost
from app.kinds.iterative.projection_tables import over_columns
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State

Array = NDArray[Any]
TERMS = ("sla", "cost", "change")


def terms(projector: Projector, before: State, after: State, given: Preferences | None = None) -> Array:
    """The terms of one iteration, [B, 3]; summed over a run they are

    - sla: Σ over metrics of weight · relative miss; the mean over iterations, or once at the end for a run's target,
    - cost: money over what the model expects the run to cost at the largest allocation,
    - change: steps taken over the most that could be taken.

    ``given`` spares computing the runs' preferences again.
    """
    reference = reference_cost(projector, before) if given is None else given.reference
    out = np.empty_like(after.cost, projector.dtype, shape=(3, len(after.iteration)))
    _misses(projector, after, out[0])
    np.divide(after.cost - before.cost, reference, out=out[1])
    moved = over_columns(np.abs(after.levels - before.levels)) * (before.iteration > 0)
    out[2] = projector.share_moved(moved)
    return out.T


def reward(weights: Array, values: Array) -> Array:
    """−Σ weight · term, [B]."""
    paid: Array = weights[:, 0] * values[:, 0]
    paid += weights[:, 1] * values[:, 1]
    paid += weights[:, 2] * values[:, 2]
    return np.negative(paid, out=paid)


def potential(view: View) -> Array:
    """The best outlook, [B]: an estimate of the return-to-go.

    Paying its differences on top of the reward leaves the optimum as it is (Ng, Harada and Russell 1999) and takes
    most of the luck of the run out of what a learner sees.
    """
    best: Array = view.outlook.max(axis=1)
    return best


def miss(goal: str, ratio: Array) -> Array:
    """Relative miss of measured/target ``ratio``: 0 when the target is met."""
    excess = ratio - 1
    if goal == "track":
        return np.abs(excess)
    return np.maximum(excess if goal == "at_most" else -excess, 0)


def _misses(projector: Projector, after: State, total: Array) -> None:
    """Put the relative misses that are due, weighted, into ``total`` [B]."""
    iterations = projector.layout.iterations
    total[:] = 0
    ended = after.iteration >= iterations
    for i, metric in enumerate(projector.layout.spec.metrics):
        if metric.target is None:
            continue
        if metric.scope == "iteration":
            ratio = after.measured[:, i] / after.targets[:, i]
            total += miss(metric.goal, ratio) * (metric.weight / iterations)
        else:
            ratio = after.elapsed[:, i] / after.targets[:, i]
            total += miss(metric.goal, ratio) * (ended * projector.dtype.type(metric.weight))

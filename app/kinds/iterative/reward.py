"""What a run is paid for: three terms, each of order 1 over a whole run, reported one by one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.observation import View, reference_cost
from app.kinds.iterative.projector import Projector, over_columns
from app.kinds.iterative.state import State

Array = NDArray[Any]
TERMS = ("sla", "cost", "change")


def terms(projector: Projector, before: State, after: State) -> Array:
    """The terms of one iteration, [B, 3]; summed over a run they are

    - sla: Σ over metrics of weight · relative miss; the mean over iterations, or once at the end for a run's target,
    - cost: money over what the model expects the run to cost at the largest allocation,
    - change: steps taken over the most that could be taken.
    """
    layout = projector.layout
    out = np.empty((len(after.iteration), 3), projector.dtype)
    out[:, 0] = _misses(projector, after)
    out[:, 1] = (after.cost - before.cost) / reference_cost(projector, before)
    moved = over_columns(np.abs(after.levels - before.levels)) * (before.iteration > 0)
    out[:, 2] = moved / (layout.largest_action * layout.iterations)
    return out


def reward(weights: Array, values: Array) -> Array:
    """−Σ weight · term, [B]."""
    total: Array = -over_columns(weights * values)
    return total


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


def _misses(projector: Projector, after: State) -> Array:
    layout = projector.layout
    total = np.zeros(len(after.iteration), projector.dtype)
    ended = after.iteration >= layout.iterations
    for i, metric in enumerate(layout.spec.metrics):
        if metric.target is None:
            continue
        if metric.scope == "run":
            total += metric.weight * miss(metric.goal, after.elapsed[:, i] / after.targets[:, i]) * ended
        else:
            total += metric.weight * miss(metric.goal, after.measured[:, i] / after.targets[:, i]) / layout.iterations
    return total

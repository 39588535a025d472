"""What a run's targets, weights and prices come to: the numbers that last as long as those do."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.projection_tables import LOG_LIMIT
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State

Array = NDArray[Any]


class Preferences(NamedTuple):
    """Derived from a state's targets, weights and prices, and the features that last. T metrics have a target.

    Attributes:
        inverse_targets: 1/target, [M, B]; not a number where a metric has none.
        pace: what an iteration's metric is measured against, 1/target or iterations/target, [T, B].
        reference: see ``reference_cost``, [B].
        weights: of the terms sla, cost and change, [3, B]; the second is per unit of money.
        money: prices per unit and second, [R, B].
        entries: the observation's entries for targets, weights and prices, [·, B].
    """

    inverse_targets: Array
    pace: Array
    reference: Array
    weights: Array
    money: Array
    entries: Array


def preferences_of(projector: Projector, state: State) -> Preferences:
    """The preferences in ``state``."""
    reference = reference_cost(projector, state)
    weights = state.weights.T.copy()
    weights[1] /= reference
    inverse_targets = 1 / state.targets.T
    return Preferences(
        inverse_targets=inverse_targets,
        pace=inverse_targets[projector.targeted] * projector.per_iteration,
        reference=reference,
        weights=weights,
        money=state.prices.T * projector.hours_per_second,
        entries=_entries(projector, state),
    )


def reference_cost(projector: Projector, state: State) -> Array:
    """What the model expects the whole run to cost at the largest allocation, [B]; 1 where nothing costs anything."""
    money = state.prices @ projector.largest * projector.hours_per_second
    money = money * projector.ahead.whole_run(projector.ahead.point(state.features))
    return np.where(money > 0, money, projector.dtype.type(1))


def _entries(projector: Projector, state: State) -> Array:
    priced = (state.prices * projector.largest).T
    parts = [
        log_within(state.targets.T[projector.targeted] * projector.usual_worth),
        state.weights.T,
        priced / np.maximum(priced.sum(axis=0), 1e-12),
    ]
    return np.concatenate(parts)


def log_within(ratio: Array) -> Array:
    """Log of ``ratio`` within ± ``LOG_LIMIT``, in place."""
    limit = math.exp(LOG_LIMIT)
    np.minimum(np.maximum(ratio, 1 / limit, out=ratio), limit, out=ratio)
    return np.log(ratio, out=ratio)

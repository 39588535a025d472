"""How likely targets are to be met, and what is worth most of that which meets them likely enough.

A run's end is spread by what its reports leave open: which member of the belief is true, its run effect under each,
and the noise to come. Within a member the logarithm of what is to come follows Student's t distribution, for its
spreads are estimates from few executions and its noise has heavier tails than the normal distribution's.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.announced import Remaining, announced, remaining
from app.kinds.iterative.observation import Options, outlook
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, member_weights

Array = NDArray[Any]
Indices = NDArray[np.integer]
RESERVE = 0.25
BEYOND = {"at_most": 1e30, "at_least": 1e-30}  # targets that are always met


def asked(state: State) -> NDArray[np.bool_]:
    """Which targets are to be met with a probability, [B, M]."""
    missing: NDArray[np.bool_] = np.isnan(state.probabilities + state.targets)
    return ~missing


def chances(
    projector: Projector, state: State, allocation: Indices, pause: Array, then: Indices | None = None
) -> Array:
    """How likely each target is to be met, [M, K, B], if the run changes to a row of the allocation grid [K, B] now,
    which takes ``pause`` [K, B] (or [K, 1]) seconds; not a number where a metric has no target that can be met.

    A run's target is compared with its end, each allocation being held to it, or followed by row ``then`` [K, B] after
    the next iteration; an iteration's with the next one.
    """
    left, apart = remaining(projector, state, allocation, announced(projector, state), then)
    return chances_of(projector, state, left, apart, pause)


def chances_of(projector: Projector, state: State, left: Remaining, apart: State, pause: Array) -> Array:
    """``chances`` for what ``remaining`` gave, ``left`` and ``apart``."""
    if apart is state:
        return _chances(left, state, pause)
    count = projector.members
    each = _chances(left, apart, pause if pause.shape[1] == 1 else pause.repeat(count, axis=1))
    mixed: Array = np.einsum("mnbk,bk->mnb", each.reshape(*each.shape[:2], -1, count), member_weights(state))
    return mixed


def assured(projector: Projector, state: State, options: Options, present: int | None = None) -> NDArray[np.bool_]:
    """Whether an option meets each target as surely as is asked for, [K, B].

    Where a run stands at option ``present``, those that are less sure than it must be surer than is asked for by
    ``RESERVE`` of what that leaves to chance: else a run at the border would change with every report.
    """
    found = chances(projector, state, options.allocation, options.pause)
    required = state.probabilities.T[:, None]
    if present is not None:
        less = found < found[:, present, None]
        required = required + less * (RESERVE * (1 - required))
    enough: NDArray[np.bool_] = found >= required
    enough |= ~asked(state).T[:, None]
    return np.logical_and.reduce(enough, axis=0)


def assured_outlook(projector: Projector, state: State, options: Options, present: int | None = None) -> Array:
    """Expected return-to-go of each option if it is held, [K, B], but for targets with a probability, whose misses cost
    nothing here: −∞ where one isn't ``assured``.
    """
    expected = outlook(projector, _freed(projector, state), options)
    return np.where(assured(projector, state, options, present), expected, -np.inf)


def _freed(projector: Projector, state: State) -> State:
    """The runs with targets that are always met in place of those with a probability."""
    always = [BEYOND.get(metric.goal, np.nan) for metric in projector.layout.spec.metrics]
    return state._replace(targets=np.where(asked(state), projector.dtype.type(always), state.targets))


def _chances(left: Remaining, state: State, pause: Array) -> Array:
    projector, layout = left.ahead, left.ahead.layout
    out = np.full((len(layout.metrics), *left.allocation.shape), np.nan, projector.dtype)
    for index in projector.targeted:
        metric = layout.spec.metrics[index]
        if metric.goal == "track":
            continue
        expect = _at_the_end if metric.scope == "run" else _next
        below = expect(left, state, index, pause if index == layout.seconds else pause * 0)
        out[index] = below if metric.goal == "at_most" else 1 - below
    return out


def _at_the_end(left: Remaining, state: State, metric: int, pause: Array) -> Array:
    """Probability that a metric's sum over the run is at most its target, [K, B].

    The rest of the run has the mean and the variance of a sum of independent log-normal iterations, given the effect.
    """
    projector = left.ahead
    count = np.maximum(projector.layout.iterations - state.iteration, 1)
    room = state.targets[:, metric] - state.elapsed[:, metric] - pause
    rest = np.maximum(left.rest(metric), 1e-12)
    spread = left.variance(metric) / rest**2
    variance = spread + (state.variance[:, metric] + projector.drift_variance[metric] * (count / 3))
    median = np.log(rest) + state.effect[:, metric] - spread / 2
    below = student((np.log(np.maximum(room, 1e-12)) - median) / np.sqrt(variance))
    np.copyto(below, 1, where=state.iteration >= projector.layout.iterations)
    np.copyto(below, 0, where=room < 0)
    return below


def _next(left: Remaining, state: State, metric: int, pause: Array) -> Array:
    """Probability that a metric's next value is at most its target, [K, B]."""
    projector = left.ahead
    logs, noise = left.next(metric)
    room = np.maximum(state.targets[:, metric] - pause, 1e-12)
    variance = state.variance[:, metric] + projector.drift_variance[metric] + noise
    return student((np.log(room) - logs - state.effect[:, metric]) / np.sqrt(variance))


def student(value: Array) -> Array:
    """Cumulative distribution function of Student's t with four degrees of freedom (Abramowitz and Stegun, 26.7.4)."""
    squared = value * value
    share = 1 / (4 + squared)
    angle = value * np.sqrt(share)
    probability: Array = 0.5 + 0.5 * angle * (1 + 2 * share)
    return probability

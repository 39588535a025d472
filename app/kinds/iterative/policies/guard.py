"""The guard: replaces a policy's action whose gain is within the noise, or whose state is outside of its experience."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy, Situation
from app.kinds.iterative.chance import asked
from app.kinds.iterative.heuristics import default_heuristic
from app.kinds.iterative.policies.artifact import Experience
from app.policies.artifact import Artifact

UNEXPLAINED = 4.0  # standard deviations of the log run effect that the samples can't explain
MODEL_NOISE = 1e-3  # of return: a heuristic's predicted gain below it is within the noise of the model


class Verdict(IntEnum):
    """What became of the policy's choice."""

    FOLLOWED = 0
    WITHIN_NOISE = 1
    OUTSIDE_EXPERIENCE = 2
    FINISHED = 3


class Decided(NamedTuple):
    """The guarded decisions of B runs.

    Attributes:
        action: what is done, [B].
        chosen: what the policy had chosen, [B].
        verdict: ``Verdict``, [B].
        values: what the policy expects of each action in return, [B, N]; None when it does not say.
        outside: for each way of being outside of the experience, which runs are, [B].
        memory: what the policy remembers from now on, whoever is followed, [B, H]; None where it remembers nothing.
    """

    action: NDArray[np.integer]
    chosen: NDArray[np.integer]
    verdict: NDArray[np.int8]
    values: NDArray[np.floating] | None
    outside: dict[str, NDArray[np.bool_]]
    memory: NDArray[np.float32] | None = None


def decide(situation: Situation, artifact: Artifact | None) -> Decided:
    """Ask the artifact's policy (without one: the default heuristic), and guard what it says."""
    heuristic = default_heuristic(situation.projector)
    policy: Policy = artifact.policy if artifact else heuristic
    choice = policy.act(situation)
    action, values = choice.action, choice.values
    verdict = np.zeros(len(action), np.int8)
    outside: dict[str, NDArray[np.bool_]] = {}
    if artifact:
        outside = beyond(situation, artifact.experience)
        strange = np.logical_or.reduce(list(outside.values()))
        if strange.any():
            verdict[strange] = Verdict.OUTSIDE_EXPERIENCE
            action = np.where(strange, heuristic.act(situation).action, action)
    if values is not None:
        values = np.where(np.isnan(values), -np.inf, values)
        still = _unconvincing(situation, action, values, hysteresis(artifact))
        still &= verdict == Verdict.FOLLOWED
        verdict[still] = Verdict.WITHIN_NOISE
        action = np.where(still, situation.projector.layout.noop, action)
    over = situation.state.iteration >= situation.projector.layout.iterations
    verdict[over] = Verdict.FINISHED
    action = np.where(over, situation.projector.layout.noop, action)
    return Decided(_legal(situation, action), choice.action, verdict, values, outside, choice.memory)


def hysteresis(artifact: Artifact | None) -> float:
    """What a change must promise more than staying does, of return."""
    return float(artifact.experience.hysteresis) if artifact else MODEL_NOISE


def beyond(situation: Situation, experience: Experience) -> dict[str, NDArray[np.bool_]]:
    """Where each run is outside of what the model and the policy have seen, by reason, [B] each."""
    projector, state = situation.projector, situation.state
    table, layout = projector.table, projector.layout
    values = projector.minima + projector.steps * state.levels
    margin = projector.steps * 1.5
    limit = UNEXPLAINED * projector.effect_scale
    return {
        "allocation": ((values < table.seen_low - margin) | (values > table.seen_high + margin)).any(axis=1),
        "features": ((state.features < table.feature_low) | (state.features > table.feature_high)).any(axis=1),
        "run_effect": (np.abs(state.effect) > limit).any(axis=1),
        "targets": _off(state.targets, _targets(layout.metrics, experience), experience.target_ratio),
        "weights": _off(state.weights, np.array(experience.weights), experience.weight_ratio),
        "prices": _off(state.prices, np.array(experience.prices), experience.weight_ratio),
        "probabilities": np.logical_or.reduce(asked(state), axis=1),
    }


def _targets(metrics: list[str], experience: Experience) -> NDArray[np.float64]:
    return np.array([experience.targets.get(name, np.nan) for name in metrics])


def _off(values: NDArray[np.floating], made_for: NDArray[np.float64], ratio: tuple[float, float]) -> NDArray[np.bool_]:
    """Rows in which a value's ratio to what was trained for leaves the range; no number is never off."""
    low, high = ratio
    inside = np.isnan(values) | np.isnan(made_for) | ((values >= low * made_for) & (values <= high * made_for))
    result: NDArray[np.bool_] = ~np.logical_and.reduce(inside, axis=1)
    return result


def _unconvincing(
    situation: Situation, action: NDArray[np.integer], values: NDArray[np.floating], required: float
) -> NDArray[np.bool_]:
    """Changes whose predicted gain over staying is no more than ``required``, [B]."""
    noop = situation.projector.layout.noop
    rows = np.arange(len(action))
    convincing = values[rows, action] > values[rows, noop] + required
    result: NDArray[np.bool_] = (action != noop) & ~convincing
    return result


def _legal(situation: Situation, action: NDArray[np.integer]) -> NDArray[np.integer]:
    """The action where it is legal, else none at all: no policy's mistake reaches a launcher."""
    allowed = situation.view.mask[np.arange(len(action)), action]
    return np.where(allowed, action, situation.projector.layout.noop)

"""The guard: replaces a policy's action whose gain is within the noise, or whose state is outside of its experience."""

from enum import IntEnum
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.iterative.chance import asked
from app.kinds.iterative.heuristics import Heuristic, apply, default_heuristic
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


def decide(situation: Situation, artifact: Artifact | None, rule: Heuristic | None = None) -> Decided:
    """Ask the artifact's policy, without one a heuristic, and guard what it says.

    Args:
        situation: B runs.
        artifact: of the agent that answers; None: a heuristic does.
        rule: the heuristic that answers without an agent and outside of its experience; None: the default one.
    """
    heuristic, layout = rule or default_heuristic(situation.projector), situation.projector.layout
    choice = artifact.policy.act(situation) if artifact else apply(heuristic, situation)
    action, values = choice.action, choice.values
    verdict = np.zeros(len(action), np.int8)
    outside: dict[str, NDArray[np.bool_]] = {}
    strange = verdict != 0
    if artifact:
        outside = beyond(situation, artifact.experience)
        strange = reduce(np.logical_or, outside.values())
        if strange.any():
            verdict[strange] = Verdict.OUTSIDE_EXPERIENCE
            action = np.where(strange, apply(heuristic, situation).action, action)
    over = situation.state.iteration >= layout.iterations
    stays = over
    if values is not None:
        values = np.fmax(values, -np.inf)  # no number is worth nothing
        still = _unconvincing(situation, action, values, hysteresis(artifact)) & ~strange
        verdict[still] = Verdict.WITHIN_NOISE
        stays = over | still
    verdict[over] = Verdict.FINISHED
    action = np.where(stays, layout.noop, action)
    return Decided(_legal(situation, action), choice.action, verdict, values, outside, choice.memory)


def hysteresis(artifact: Artifact | None) -> float:
    """What a change must promise more than staying does, of return."""
    return float(artifact.experience.hysteresis) if artifact else MODEL_NOISE


def beyond(situation: Situation, experience: Experience) -> dict[str, NDArray[np.bool_]]:
    """Where each run is outside of what the model and the policy have seen, by reason, [B] each."""
    projector, state = situation.projector, situation.state
    table, layout = projector.table, projector.layout
    unusual = (state.features < table.feature_low) | (state.features > table.feature_high)
    low, high = _made_for(tuple(layout.metrics), experience)
    terms = np.concatenate([state.targets, state.weights, state.prices], axis=1)
    targets, weights = len(layout.metrics), len(layout.weights)
    starts = (0, targets, targets + weights)
    off = np.logical_or.reduceat((terms < low) | (terms > high), starts, axis=1).T  # no number is never off
    return {
        "allocation": projector.far.take(layout.index(state.levels)),
        "features": np.logical_or.reduce(unusual, axis=1),
        "run_effect": np.logical_or.reduce(np.abs(state.effect) > UNEXPLAINED * projector.effect_scale, axis=1),
        **dict(zip(("targets", "weights", "prices"), off, strict=True)),
        "probabilities": np.logical_or.reduce(asked(state), axis=1),
    }


@lru_cache(maxsize=1024)
def _made_for(metrics: tuple[str, ...], experience: Experience) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest targets, weights and prices that a policy was trained for, [M + 3 + R] each."""
    targets = [experience.targets.get(name, np.nan) for name in metrics]
    rest = [*experience.weights, *experience.prices]
    ratios = np.array([experience.target_ratio] * len(targets) + [experience.weight_ratio] * len(rest))
    low, high = ratios.T * np.array(targets + rest)
    return low, high


def _unconvincing(
    situation: Situation, action: NDArray[np.integer], values: NDArray[np.floating], required: float
) -> NDArray[np.bool_]:
    """Changes whose predicted gain over staying is no more than ``required``, [B]."""
    noop = situation.projector.layout.noop
    convincing = values[np.arange(len(action)), action] > values[:, noop] + required
    result: NDArray[np.bool_] = (action != noop) & ~convincing
    return result


def _legal(situation: Situation, action: NDArray[np.integer]) -> NDArray[np.integer]:
    """The action where it is legal, else none at all: no policy's mistake reaches a launcher."""
    allowed = situation.view.mask[np.arange(len(action)), action]
    return np.where(allowed, action, situation.projector.layout.noop)

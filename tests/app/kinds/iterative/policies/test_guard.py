from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import Verdict, decide, experience_of
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance, begin
from app.policies.artifact import Artifact
from tests.planted import planted_spec, planted_table

LAYOUT = Layout(planted_spec())
TABLE = planted_table(planted_spec())
PROJECTOR = Projector(LAYOUT, TABLE)


@dataclass(frozen=True)
class Planted(HeuristicPolicy):
    """Chooses what it is told to."""

    action: int = 0
    values: Any = None

    def act(self, situation: Situation) -> Choice:
        batch = len(situation.state.iteration)
        values = None if self.values is None else np.tile(self.values, (batch, 1))
        return Choice(np.full(batch, self.action), values)


def artifact(action: int, values: Any = None, hysteresis: float = 0.0) -> Artifact:
    policy = Planted({"heuristic": "hold"}, action, values)
    made_for = experience_of(LAYOUT, hysteresis)
    return Artifact(policy, LAYOUT.observation_names, len(LAYOUT.deltas), made_for, "iterative")


def reported(level: int = 16, reports: int = 3, factor: float = 1.0) -> State:
    state = begin(PROJECTOR, np.array([[level]]))
    seconds = factor * np.exp(TABLE.log_mean[0, level, 0, 0])
    for _ in range(reports):
        state = advance(PROJECTOR, state, state.levels, np.array([[seconds]]), np.zeros((1, 0)))
    return state


def situation(state: State) -> Situation:
    return Situation(PROJECTOR, state, view(PROJECTOR, state))


def test_a_sound_choice_is_followed() -> None:
    got = decide(situation(reported()), artifact(6))
    assert (got.action[0], got.verdict[0]) == (6, Verdict.FOLLOWED)


@pytest.mark.parametrize(("gain", "verdict"), [(0.0009, Verdict.WITHIN_NOISE), (0.0011, Verdict.FOLLOWED)])
def test_a_gain_within_the_noise_changes_nothing(gain: float, verdict: Verdict) -> None:
    values = np.zeros(9)
    values[6] = gain
    got = decide(situation(reported()), artifact(6, values, hysteresis=0.001))
    assert got.verdict[0] == verdict
    assert got.action[0] == (LAYOUT.noop if verdict else 6)


def test_values_that_are_no_numbers_change_nothing() -> None:
    got = decide(situation(reported()), artifact(6, np.full(9, np.nan)))
    assert (got.action[0], got.verdict[0]) == (LAYOUT.noop, Verdict.WITHIN_NOISE)


def test_no_illegal_choice_gets_through() -> None:
    got = decide(situation(reported(level=0)), artifact(0))
    assert got.action[0] == LAYOUT.noop


def strange(name: str) -> State:
    state = reported()
    if name == "run_effect":
        return reported(factor=8.0)
    if name == "targets":
        return state._replace(targets=state.targets * 5)
    if name == "weights":
        return state._replace(weights=state.weights * 2)
    if name == "prices":
        return state._replace(prices=state.prices * 2)
    return state._replace(levels=np.array([[16]]))


@pytest.mark.parametrize("name", ["run_effect", "targets", "weights", "prices"])
def test_what_was_never_seen_is_answered_by_the_heuristic(name: str) -> None:
    got = decide(situation(strange(name)), artifact(8))
    heuristic = decide(situation(strange(name)), None)
    assert got.verdict[0] == Verdict.OUTSIDE_EXPERIENCE
    assert got.outside[name][0]
    assert got.chosen[0] == 8
    assert abs(int(got.action[0]) - int(heuristic.action[0])) <= 1  # but for the heuristic's own hysteresis


def test_allocations_that_no_sample_held_are_outside() -> None:
    table = replace(TABLE, seen_low=np.array([4.0]), seen_high=np.array([10.0]))
    projector = Projector(LAYOUT, table)
    state = reported(level=16)
    got = decide(Situation(projector, state, view(projector, state)), artifact(8))
    assert got.outside["allocation"][0]


def test_a_run_past_its_end_is_left_alone() -> None:
    state = reported()._replace(iteration=np.array([30]))
    got = decide(situation(state), artifact(8))
    assert (got.action[0], got.verdict[0]) == (LAYOUT.noop, Verdict.FINISHED)


def test_runs_do_not_change_each_others_decisions() -> None:
    one, other = reported(level=4), reported(level=28, factor=8.0)
    both = State(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))
    together = decide(situation(both), artifact(6))
    for row, state in enumerate((one, other)):
        alone = decide(situation(state), artifact(6))
        assert (alone.action[0], alone.verdict[0]) == (together.action[row], together.verdict[row])

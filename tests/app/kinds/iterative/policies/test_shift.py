"""A declared shift of pace: what model-predictive control does otherwise, and what values actions as it does.

Each batch has two runs with the workload's terms and two with a required probability of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.policy import Choice, Situation
from app.kinds.engine import Choices
from app.kinds.iterative import decide as decider
from app.kinds.iterative import policies
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.contingencies import _Iteration, offers
from app.kinds.iterative.heuristics import (
    HEURISTICS,
    MODEL_PREDICTIVE,
    Heuristic,
    HeuristicPolicy,
    TunedPolicy,
    continuation,
    first_allocation,
)
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.observation import outlook, reachable, view
from app.kinds.iterative.policies import MODEL_NOISE, Verdict, decide, experience_of
from app.kinds.iterative.projector import LARGEST_SLOWDOWN, Projector
from app.kinds.iterative.reasons import Reason
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import EARLIER, STEADIER, advance, aimed, begin
from app.policies.artifact import Artifact
from tests.app.kinds.iterative.decisions.deciding import compiled
from tests.planted import planted_spec, planted_table

SHIFT = {"pace_shift": {"probability": 0.6, "factor": [1.4, 2.0]}}
SLOWER = 0.6 * np.log(1.4 * 2.0) / 2
PLAIN = planted_spec()
SHIFTING = planted_spec(disturbances=SHIFT)
MIXED = np.array([[np.nan], [0.9], [np.nan], [0.9]])


def runs(
    spec: Spec, table: ModelTable | None = None, probabilities: Any = MIXED, reports: int = 3, level: int = 16
) -> Situation:
    """Four runs, by default at 20 executors, after some reports; each is a little slower than the one before."""
    projector = Projector(Layout(spec), table or planted_table(spec))
    state = begin(projector, np.full((len(probabilities), 1), level), probabilities=probabilities)
    for _ in range(reports):
        seconds = 7 + np.arange(len(probabilities), dtype=float)[:, None]
        state = advance(projector, state, state.levels, seconds, np.zeros((len(probabilities), 0)))
    return Situation(projector, state, view(projector, state))


@pytest.mark.parametrize(
    ("changes", "slower"),
    [
        ({}, 0.0),
        ({"disturbances": SHIFT}, SLOWER),
        ({"disturbances": {**SHIFT, "lost_capacity": {"probability": 0.5}}}, SLOWER),
        ({"disturbances": {"lost_capacity": {"probability": 0.5}}}, 0.0),
        ({"disturbances": {"pace_shift": {"probability": 0.6, "factor": [0.9, 2.0]}}}, 0.0),
        ({"disturbances": {"pace_shift": {"probability": 0.6, "factor": [1.0, 1.0]}}}, 0.0),
        ({"disturbances": {"pace_shift": {"probability": 1.0, "factor": [2.0, 8.0]}}}, LARGEST_SLOWDOWN),
        ({"disturbances": {"pace_shift": {"probability": 1.0, "factor": [1e90, 1e100]}}}, LARGEST_SLOWDOWN),
    ],
)
def test_only_a_declared_shift_to_slower_paces_counts(changes: dict[str, Any], slower: float) -> None:
    spec = planted_spec(**changes)
    assert Projector(Layout(spec), planted_table(spec)).slowdown == pytest.approx(slower)
    assert Projector(Layout(spec), replace(planted_table(spec), prior=True)).slowdown == 0


SECONDS = {"name": "iteration_seconds", "target": 330.0, "scope": "run"}
RATE = {"name": "rate", "target": 1.0, "scope": "iteration"}


@pytest.mark.parametrize(
    ("metrics", "counts"),
    [
        ([SECONDS, {"name": "loss"}], True),
        ([SECONDS | {"target": 11.0, "scope": "iteration"}], True),
        ([SECONDS | {"probability": 0.9}], False),
        ([SECONDS | {"goal": "at_least"}], False),
        ([SECONDS | {"goal": "track"}], False),
        ([SECONDS, RATE], False),
        ([{"name": "iteration_seconds"}], False),
    ],
)
def test_it_counts_only_for_upper_limits_of_the_duration(metrics: list[dict[str, Any]], counts: bool) -> None:
    spec = planted_spec(disturbances=SHIFT, metrics=metrics)
    assert (Projector(Layout(spec), planted_table(spec)).slowdown > 0) == counts


def test_targets_are_earlier_but_for_runs_with_a_probability() -> None:
    plain, shifting = runs(PLAIN), runs(SHIFTING)
    assert aimed(plain.projector, plain.state) is plain.state
    earlier = aimed(shifting.projector, shifting.state)
    expected = 330 * np.exp(-EARLIER * SLOWER)
    assert earlier.targets[:, 0].tolist() == pytest.approx([expected, 330, expected, 330])
    assert np.array_equal(shifting.view.observation[:, :-9], plain.view.observation[:, :-9])
    assert np.array_equal(shifting.view.outlook[1::2], plain.view.outlook[1::2])
    assert (shifting.view.outlook[::2] != plain.view.outlook[::2]).any(axis=1).all()


@pytest.mark.parametrize("members", [1, 2])
def test_the_view_values_actions_for_the_earlier_targets(members: int) -> None:
    """As the outlook does, that projects all options anew."""
    table = planted_table(SHIFTING)
    if members > 1:
        offsets = np.stack([np.zeros_like(table.log_mean), np.full_like(table.log_mean, 0.2)])
        table = replace(table, members=offsets - offsets.mean(axis=0))
    projector, state, observation, _ = runs(SHIFTING, table)
    assert projector.members == members
    expected = outlook(projector, aimed(projector, state), reachable(projector, state, observation.mask)).T
    np.testing.assert_allclose(observation.outlook[observation.mask], expected[observation.mask], rtol=1e-6)


def test_the_guard_asks_for_more_gain_but_for_runs_with_a_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gain between the plain least gain and that with the shift is followed in the runs with a probability only."""
    least = MODEL_NOISE * np.exp(STEADIER * SLOWER)
    situation = runs(SHIFTING)
    assert policies.hysteresis(situation, None).tolist() == pytest.approx([least, MODEL_NOISE, least, MODEL_NOISE])
    assert policies.hysteresis(runs(PLAIN), None).tolist() == [MODEL_NOISE] * 4
    outlook, gains = situation.view.outlook.copy(), np.full(4, (MODEL_NOISE + least) / 2)
    noop = situation.projector.layout.noop
    outlook[:] = 0
    outlook[:, noop + 1] = gains
    planted = _Planted({"heuristic": MODEL_PREDICTIVE}, outlook)
    decision = decide(situation, None, Heuristic(MODEL_PREDICTIVE, planted.act))
    assert decision.verdict.tolist() == [Verdict.WITHIN_NOISE, Verdict.FOLLOWED] * 2
    assert decision.action.tolist() == [noop, noop + 1] * 2
    experience = experience_of(situation.projector.layout, 0.5)
    agent = Artifact(planted, situation.projector.layout.observation_names, 9, experience, "iterative")
    assert policies.hysteresis(situation, agent).tolist() == [0.5] * 4


class _Planted(HeuristicPolicy):
    def __init__(self, config: dict[str, Any], values: Any) -> None:
        super().__init__(config)
        object.__setattr__(self, "values", values)

    values: Any

    def act(self, situation: Situation) -> Any:
        return Choice(self.values.argmax(axis=1), self.values)


def test_reasons_state_the_least_gain_of_each_run() -> None:
    on: Compiled = compiled(SHIFTING)
    texts = []
    for situation in (runs(SHIFTING), runs(PLAIN)):
        values = np.zeros_like(situation.view.outlook)
        values[:, on.layout.noop + 1] = MODEL_NOISE / 2
        chosen = Heuristic(MODEL_PREDICTIVE, _Planted({"heuristic": MODEL_PREDICTIVE}, values).act)
        steps = decider.Steps(
            situation.state.levels,
            decide(situation, None, chosen),
            policies.hysteresis(situation, None),
            np.full(4, -1),
        )
        own = Reason("on_track", "as projected")
        texts.append([decider._within_noise(on, situation.state, steps, i, own).text for i in range(4)])
    assert texts[0][1::2] == texts[1][1::2]
    assert len({texts[0][0], texts[0][1]}) == len({texts[0][0], texts[1][0]}) == 2


def test_the_first_allocation_shadows_and_the_rule_use_the_same_targets() -> None:
    plain, shifting = (runs(spec, reports=0) for spec in (PLAIN, SHIFTING))
    before, after = (first_allocation(one.projector, one.state)[:, 0] for one in (plain, shifting))
    assert (after[::2] > before[::2]).all()
    assert (after[1::2] == before[1::2]).all()
    situation = runs(SHIFTING)
    batch = decider.Batch(situation, [frozenset()] * 4, [np.zeros((0, 0))] * 4, [0] * 4)
    noop = situation.projector.layout.noop
    other = Choices([noop + 1] * 4, None, None)
    gains = [decider.compare(compiled(SHIFTING), batch, row, noop, other)["gain"] for row in range(4)]
    tuned = TunedPolicy(
        {"algorithm": "tuned_rule", "numbers": {"target": 1.0, "risk": 1.0, "follow": 0.0, "ignored": 0.0}}
    )
    as_rule = tuned.act(situation._replace(state=aimed(situation.projector, situation.state))).values
    assert as_rule is not None
    assert gains[::2] == pytest.approx((as_rule[:, noop + 1] - as_rule[:, noop])[::2].tolist(), rel=1e-6)


def test_contingencies_value_what_follows_as_the_rule_does() -> None:
    spec, table = planted_spec(iterations=6, metrics=[SECONDS | {"target": 60.0}]), planted_table(PLAIN)
    worth = []
    for disturbances in ({}, SHIFT):
        own = Spec.model_validate(spec.model_dump() | {"disturbances": disturbances})
        projector, state, _, _ = runs(own, table, np.array([[np.nan]]), reports=2)
        moment = _Iteration(projector, state, state.levels[0], 0.0, 20.0)
        levels = np.repeat(state.levels, 2, axis=0)
        worth.append(moment._worth(levels, np.array([8.0, 12.0]), np.array([0, 1])))
        assert isinstance(offers(projector, state, state.levels[0], 0.0), list)
    assert (worth[1] < worth[0]).all()


def test_runs_whose_iterations_differ_have_the_same_targets() -> None:
    """The next iteration's action and the allocation that follows are those of the rule for the earlier targets."""
    table = planted_table(SHIFTING)
    logs = np.repeat(table.log_mean, 2, axis=3) + np.log([1.5, 0.5])
    bins = (np.arange(30) % 2).astype(np.int32)
    table = replace(table, log_mean=logs.astype(np.float32), iteration_bin=bins)
    rule, plain, differ = HEURISTICS[MODEL_PREDICTIVE], Layout(PLAIN), np.zeros(2, int)
    for level in range(0, 33, 4):
        situation = runs(SHIFTING, table, level=level)
        earlier = aimed(situation.projector, situation.state)
        undeclared = Projector(plain, table)
        same = Situation(undeclared, earlier, view(undeclared, earlier))
        actions, wanted = rule.act(situation), rule.act(same)
        assert actions.values is not None
        assert wanted.values is not None
        np.testing.assert_allclose(actions.values, wanted.values, rtol=1e-6)
        assert continuation(situation).tolist() == continuation(same).tolist()
        late = Situation(undeclared, situation.state, view(undeclared, situation.state))
        values = rule.act(late).values
        assert values is not None
        differ += not np.array_equal(values, wanted.values), (continuation(late) != continuation(same)).any()
    assert (differ > 0).all()


def test_agents_observe_the_runs_own_targets() -> None:
    """An agent may have been trained before the rule allowed for shifts: its observations mean what they meant."""
    plain, shifting = runs(PLAIN), runs(SHIFTING)
    assert (plain.view.observation == shifting.view.observation).all()
    assert not np.allclose(plain.view.outlook, shifting.view.outlook)

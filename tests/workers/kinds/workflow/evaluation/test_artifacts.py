"""Artifacts are played as they answer: the same numbers for simulators as for the service."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.kinds.workflow.policies.artifact import save
from app.kinds.workflow.policies.combined import InspectorPolicy, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy, shapes
from app.kinds.workflow.scheduling.observation import FEATURES, STATE_WIDTH
from app.kinds.workflow.scheduling.rules import RULES
from app.policies.base import IncompatibleArtifact
from tests.workers.kinds.workflow.evaluation.schedules import drawn
from tests.workers.kinds.workflow.evaluation.test_protocol import spec
from workers.kinds.workflow.evaluation import artifacts
from workers.kinds.workflow.evaluation.artifacts import AgentScheduler, compiled, scheduler_of
from workers.kinds.workflow.evaluation.episodes import Episode
from workers.kinds.workflow.evaluation.problem import WorkflowProblem
from workers.kinds.workflow.evaluation.schedulers import Ruled
from workers.kinds.workflow.simulator.agents import NETWORK
from workers.kinds.workflow.simulator.pool import Play, play_rules

LAYOUT = WorkflowProblem(spec(backfill_order="sjf"), drawn(10, 1)).layout
SJF, F4 = StrategyPolicy({"rule": "sjf"}), StrategyPolicy({"rule": "f4"})


def scorer(seed: int, wide: int = 5, joint: int = 3) -> ScorerPolicy:
    config = {"features": list(FEATURES), "algorithm": "es", "layers": [wide], "joint": [joint], "context": "none"}
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {name: rng.normal(0, 0.5, shape) for name, shape in shapes(config).items()}
    return ScorerPolicy.build(config | {"advice": None}, arrays)


def portfolio() -> PortfolioPolicy:
    return PortfolioPolicy((SJF, scorer(1), scorer(2, 7, 2)), np.ones((3, STATE_WIDTH)), np.full(3, 0.1))


def test_networks_of_several_sizes_stand_beside_each_other() -> None:
    policy = portfolio()
    agent, members = compiled(policy)
    assert members == ("sjf", "es", "es")
    assert agent.rule.tolist() == [RULES.index("sjf"), NETWORK, NETWORK]
    np.testing.assert_array_equal(agent.gate, policy.gate)
    x = np.random.default_rng(3).normal(0, 1, (20, len(FEATURES)))
    for m, member in enumerate(policy.members):
        if isinstance(member, ScorerPolicy):
            a: dict[str, Any] = member.arrays
            nets = agent.networks
            hidden = np.maximum(x @ a["each.0.weight"].T + a["each.0.bias"], 0)
            joint = np.maximum(hidden @ a["joint.0.weight"].T + a["joint.0.bias"], 0)
            expected = joint @ a["advantage.weight"][0] + a["advantage.bias"][0]
            inner = np.maximum(x @ nets.first[m] + nets.first_bias[m], 0)
            outer = np.maximum(inner @ nets.second[m] + nets.second_bias[m], 0)
            np.testing.assert_allclose(outer @ nets.last[m] + nets.last_bias[m], expected)


def test_an_inspector_has_its_base_and_its_network() -> None:
    agent, members = compiled(InspectorPolicy(F4, scorer(4)))
    assert (members, agent.inspects[0], agent.rule.tolist()) == (("f4",), 1, [RULES.index("f4")])
    np.testing.assert_array_equal(agent.inspector.first[0], scorer(4).arrays["each.0.weight"].T)


def test_a_strategy_is_played_with_the_workloads_mechanism() -> None:
    assert scheduler_of(save(F4), LAYOUT, pool=True) == Ruled("f4", "easy", "sjf")


def test_what_the_gate_chose_is_told_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(play: Play, _agent: Any, mechanism: int, fill: int, *rest: Any) -> None:
        play_rules(play, mechanism, RULES.index("fcfs"), fill)
        rest[-1][::2] = 1

    monkeypatch.setattr(artifacts, "play_agent", half)
    scheduler = scheduler_of(save(portfolio()), LAYOUT, pool=True)
    assert isinstance(scheduler, AgentScheduler)
    trace, measure = drawn(20, 5), None
    episode = Episode(trace, LAYOUT.nodes, LAYOUT.weights, measure)  # type: ignore[arg-type]
    schedule = scheduler.play(episode)
    assert scheduler.choices(episode, schedule) == [(float(at), "es") for at in schedule.start[::2]]
    alone = scheduler_of(save(scorer(1)), LAYOUT, pool=True)
    assert isinstance(alone, AgentScheduler)
    assert alone.choices(episode, schedule) == []


@pytest.mark.parametrize(("changes", "pool"), [({}, False), ({"backfilling": "conservative"}, True)])
def test_what_can_not_be_played_is_refused(changes: dict[str, Any], pool: bool) -> None:
    layout = WorkflowProblem(spec(**changes), drawn(10, 1)).layout
    with pytest.raises(IncompatibleArtifact, match="none, rls or easy"):
        scheduler_of(save(SJF), layout, pool=pool)

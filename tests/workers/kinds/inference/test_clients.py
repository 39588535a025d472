"""Agents of users as they learn together: what they are shown, what they are paid, and what comes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.inference.awarding import Together, award, clients
from app.kinds.inference.heuristics import BASELINES, OFFERING
from app.kinds.inference.quality import jain
from app.policies.artifact import by_role, load
from app.policies.network import NetworkPolicy
from tests.workers.kinds.inference.systems import layout, service, world
from workers.inputs import Conditions, Workload
from workers.kinds.inference.kind import LearnedInference
from workers.kinds.inference.simulator.world import Clients, InferenceWorld
from workers.learning.algorithms.registry import algorithm
from workers.learning.execution.base import Plan
from workers.learning.execution.joint import Joint
from workers.learning.simulator import JointSimulator, MaskedObservation
from workers.learning.training.driver import Training
from workers.learning.training.request import Request, Untrainable

SECONDS = [[[0.3, 0.4, 0.6], [0.6, 0.9, 1.4]]]
TWO: dict[str, Any] = {
    "users": 2,
    "variants": 2,
    "quality": {"full_until": 0.3, "zero_at": 2.0},
    "batches": [1, 2, 4],
    "queue_limit": 20,
    "episode_seconds": 20,
    "control_seconds": 5,
    "policies": "per_user",
}
RATES = (4.0, 1.0)


def learned(batch: int = 8, seed: int = 0, **weights: float) -> Clients:
    """Two users on one server, which is crowded."""
    result = layout(**TWO, weights={"quality": 1, "fairness": 0, "cost": 0, "switching": 0, **weights})
    return Clients(InferenceWorld(result, [service(result, SECONDS, RATES)], Conditions(batch, seed, "learning")))


def any_legal(observation: dict[str, Any], random: np.random.Generator) -> dict[str, NDArray[np.integer]]:
    return {
        name: np.where(own.mask, random.random(own.mask.shape), -1.0).argmax(axis=1)
        for name, own in observation.items()
    }


def paid(simulator: Clients, steps: int) -> list[dict[str, Any]]:
    """All steps, by agents that draw."""
    random, visited, paid = np.random.default_rng(1), dict(simulator.reset()), []
    for _ in range(steps):
        step = simulator.step(any_legal(visited, random))
        visited = {name: MaskedObservation(own.observation, own.mask) for name, own in step.items()}
        paid.append(dict(step))
    return paid


def test_it_is_a_joint_simulator_of_the_users() -> None:
    simulator = learned()
    assert isinstance(simulator, JointSimulator)
    assert list(simulator.roles) == ["u0", "u1"]
    for name, own in simulator.reset().items():
        role = simulator.roles[name]
        assert own.observation.shape == (8, *role.observation.shape)
        assert own.mask.shape == (8, role.actions.n)
        assert own.mask[:, 0].all()


@pytest.mark.parametrize("fairness", [0.0, 1.5])
def test_an_episode_pays_each_its_quality_and_all_the_same_fairness(fairness: float) -> None:
    """Of the requests whose fate is decided when the last one has come."""
    simulator = learned(1, 3, fairness=fairness)
    world = simulator.world
    total, random, visited = np.zeros(2), np.random.default_rng(5), dict(simulator.reset())
    while True:
        step = simulator.step(any_legal(visited, random))
        total += [float(own.reward[0]) for own in step.values()]
        if step["u0"].done[0]:
            break
        visited = {name: MaskedObservation(own.observation, own.mask) for name, own in step.items()}
    expected = -world.after.missed[0] + fairness * (jain(world.after.quality[0]) - 1)
    np.testing.assert_allclose(total / world.requests, expected, atol=1e-4)


def test_a_users_pay_is_of_its_own_requests_alone() -> None:
    simulator = learned(64)
    moved = dict.fromkeys(simulator.roles, 0)
    for step in paid(simulator, 200):
        first, second = (own.reward for own in step.values())
        moved["u0"] += int(((first != 0) & (second == 0)).sum())
        moved["u1"] += int(((second != 0) & (first == 0)).sum())
    assert min(moved.values()) > 50


def test_episodes_begin_anew_and_only_the_clock_ended_them() -> None:
    ends = [step for step in paid(learned(16), 400) if step["u0"].done.any()]
    assert ends
    for step in ends:
        for own in step.values():
            np.testing.assert_array_equal(own.truncated, own.done)
            assert not own.terminated.any()
            np.testing.assert_array_equal(own.final_observation, own.observation)


def test_it_goes_on_from_its_state() -> None:
    first, second = learned(4, 1), learned(4, 2)
    random, visited = np.random.default_rng(0), dict(first.reset())
    second.reset()
    for _ in range(50):
        visited = {
            name: MaskedObservation(own.observation, own.mask)
            for name, own in first.step(any_legal(visited, random)).items()
        }
    second.set_state(first.get_state())
    for _ in range(50):
        actions = any_legal(visited, random)
        one, other = first.step(actions), second.step(actions)
        for name in one:
            for part, same in zip(one[name], other[name], strict=True):
                np.testing.assert_array_equal(part, same)
        visited = {name: MaskedObservation(own.observation, own.mask) for name, own in one.items()}


def test_agents_play_judged_as_they_learned() -> None:
    """What the agents' policies do in a world that is judged is what their actions do where they learn."""
    simulator = learned(8, 4)
    runner = Joint(algorithm("ppo").config, simulator, Plan(8 * 32, 8 * 32), 0)
    runner.advance()
    policies = {
        name: NetworkPolicy.build({"algorithm": "ppo", **config}, dict(arrays))
        for name, (_, config, arrays) in runner.agent.export().items()
    }
    layout = simulator.world.layout
    together = Together(layout, policies, OFFERING)
    judged = world(layout, service(layout, SECONDS, RATES), 8, 9)
    judged.reset()
    for _ in range(60):
        chosen = np.stack(
            [
                policies[name].q_values(*client.observe(judged.state)).argmax(axis=1)
                for name, client in simulator.clients.items()
            ],
            axis=1,
        )
        action = together.act(judged.situation).action
        np.testing.assert_array_equal(action, award(judged.projector, judged.state, chosen))
        if judged.step(action).done.all():
            break


def test_what_users_count_tells_of_each_and_of_fairness() -> None:
    result = layout(**TWO)
    judged = world(result, service(result, SECONDS, RATES), 6, 2)
    judged.reset()
    counted = judged.outcome_increments.copy()
    while True:
        step = judged.step(BASELINES[2].act(judged.situation).action)
        counted += judged.outcome_increments
        if step.done.all():
            break
    names = [outcome.name for outcome in judged.outcomes]
    assert names[5:] == ["jain", "quality.u0", "quality.u1"]
    last = judged.state.quality
    np.testing.assert_allclose(counted[:, 6:], last, atol=1e-9)
    np.testing.assert_allclose(counted[:, 5], jain(last), atol=1e-9)


class Brief(LearnedInference):
    """The kind, judged on few episodes."""

    judged_episodes = 16


def test_a_training_gives_a_policy_for_each_user_and_judges_them_together() -> None:
    result = layout(**TWO)
    workload = Workload(result.spec, service(result, SECONDS, RATES).to_bytes())
    training = Training(Brief().trainer(workload, Request("ppo", budget=2_048, seed=3), None))
    while not training.done:
        training.advance()
    trained = training.result()
    parts = by_role(trained.artifact)
    assert sorted(parts) == ["u0", "u1"]
    for name, client in clients(result).items():
        load(parts[name]).check("inference", client.entries, client.actions)
    report = trained.report
    assert (report["algorithm"], report["episodes"], report["optimum"]) == ("ppo", 16, None)
    assert "every user has an agent of its own" in report["optimum_reason"]
    assert {"jain", "quality.u0", "quality.u1"} <= {row["name"] for row in report["outcomes"]}
    again = Training(Brief().trainer(workload, Request("planner"), trained.artifact))
    again.advance()
    with pytest.raises(Untrainable, match="every user has an agent of its own"):
        again.advance()


def test_a_training_that_was_broken_off_goes_on_bit_equal() -> None:
    result = layout(**TWO)
    workload = Workload(result.spec, service(result, SECONDS, RATES).to_bytes())
    request = Request("ppo", budget=2_048, seed=3)
    straight = Brief().trainer(workload, request, None)
    training = Training(straight)
    training.advance()
    resumed = Training(Brief().trainer(workload, request, None), training.checkpoint())
    for one in (training, resumed):
        while not one.done:
            one.advance()
    assert by_role(training.result().artifact) == by_role(resumed.result().artifact)


def test_what_a_rules_offers_come_to_is_a_baseline_where_each_user_has_an_agent() -> None:
    result, kind = layout(**TWO), LearnedInference()
    model = service(result, SECONDS, RATES).to_bytes()
    offers = Together(result, {}, OFFERING).name
    assert offers in kind.baselines(Workload(result.spec, model))
    alone = result.spec.model_copy(update={"policies": "one"})
    assert offers not in kind.baselines(Workload(alone, model))

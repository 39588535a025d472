"""Several agents in one environment, each by itself."""

from collections.abc import Mapping

import msgspec
import numpy as np
import pytest

from app.policies.network import NetworkPolicy
from tests.workers.learning import games
from workers.learning.algorithms.config import (
    DQN,
    ActorCritic,
    Config,
    Entropy,
    Exploration,
    Memory,
    Network,
    Optimiser,
)
from workers.learning.algorithms.registry import decode
from workers.learning.execution.base import Plan
from workers.learning.execution.joint import IndependentAgents, Joint
from workers.learning.simulator import MaskedObservation

ACTOR = ActorCritic(
    network=Network(layers=(32,), activation="tanh"),
    surrogate="clipped",
    epochs=3,
    batch=128,
    rollout=4,
    optimiser=Optimiser(rate=1e-2, clip=0.5),
    entropy=Entropy(start=0.05),
)
VALUE = DQN(
    network=Network(layers=(32,)),
    memory=Memory(capacity=2048, warm_up=256),
    batch=128,
    optimiser=Optimiser(rate=1e-2),
    exploration=Exploration(start=1.0, end=0.02, fraction=0.4),
    target_share=0.1,
)
CONFIGS: dict[str, Config | Mapping[str, Config]] = {
    "actor_critic": ACTOR,
    "dqn": VALUE,
    "one_of_each": {"left": ACTOR, "right": VALUE},
}


def trained(configs: Config | Mapping[str, Config], slabs: int, seed: int = 0) -> Joint:
    runner = Joint(configs, games.Meeting(64, seed), Plan(64 * slabs, 64 * slabs // 4), seed)
    while not runner.done:
        runner.advance()
    return runner


@pytest.mark.parametrize(
    "name", ["one_of_each", *(pytest.param(name, marks=pytest.mark.slow) for name in ("actor_critic", "dqn"))]
)
def test_two_agents_learn_to_meet(name: str) -> None:
    """Judged by their exported policies, each asked alone: at the right place in 99 of 100 cases."""
    runner = trained(CONFIGS[name], 240)
    policies = {
        agent: NetworkPolicy.build({"algorithm": name, **config}, dict(arrays))
        for agent, (_, config, arrays) in runner.agent.export().items()
    }
    test = games.Meeting(4_000, 99)
    chosen = {
        agent: policies[agent].q_values(*observation).argmax(axis=1) for agent, observation in test.reset().items()
    }
    assert test.step(chosen)["left"].reward.mean() >= 0.99
    assert {agent: live.steps for agent, live in runner.lives.items()} == {"left": 64 * 240, "right": 64 * 240}


def test_an_agent_is_shown_its_own_observation_alone() -> None:
    """Whatever the other sees, it does the same; and its network has no place for more."""
    simulator = games.Meeting(32, 0)
    one, other = (IndependentAgents(ACTOR, simulator.roles, 4) for _ in range(2))
    for agents in (one, other):
        for agent in agents.agents.values():
            agent.load(np.random.default_rng(6).normal(0.0, 0.5, len(agent.parameters())).astype(np.float32))
    observation = simulator.reset()
    strange = {
        **observation,
        "right": MaskedObservation(observation["right"].observation + 100.0, observation["right"].mask),
    }
    for _ in range(3):
        straight, changed = one.act(observation, 0.1), other.act(strange, 0.1)
        np.testing.assert_array_equal(straight["left"].action, changed["left"].action)
        np.testing.assert_array_equal(straight["left"].log_prob, changed["left"].log_prob)
        assert (straight["right"].log_prob != changed["right"].log_prob).any()
    wide = {name: arrays["trunk.0.weight"].shape[1] for name, (_, _, arrays) in one.export().items()}
    assert wide == {"left": 4, "right": 6}


def test_what_an_agent_is_handed_is_its_own() -> None:
    """Recorded where the agents are called: observations, masks and rewards are the simulator's for this agent."""
    runner = Joint(VALUE, games.Meeting(16, 0), Plan(16 * 8, 16 * 8), 0)
    fields: dict[str, list[tuple[int, ...]]] = {"left": [], "right": []}
    for name, agent in runner.agent.agents.items():
        remember = agent.remember

        def spy(experience, name=name, remember=remember):  # type: ignore[no-untyped-def]
            own = runner.observations[name]
            assert experience.observation is own.observation
            assert experience.mask is own.mask
            fields[name].append(experience.observation.shape)
            remember(experience)

        agent.remember = spy  # type: ignore[method-assign]
    runner.advance()
    assert fields == {"left": [(16, 4)] * 8, "right": [(16, 6)] * 8}


def test_what_is_resumed_without_its_memories_fills_them_anew() -> None:
    plan = Plan(16 * 60, 16 * 20, keep_memory=False)
    straight, resumed = (Joint(VALUE, games.Meeting(16, seed), plan, 0) for seed in (0, 9))
    straight.advance()
    resumed.restore(straight.checkpoint())
    assert (resumed.agent.remembered, resumed.steps) == (0, 16 * 20)
    for runner in (straight, resumed):
        runner.advance()
        assert (runner.agent.remembered, runner.steps) == (2 * 16 * 40, 16 * 40)


@pytest.mark.slow
def test_without_the_cue_they_do_not_find_the_right_place() -> None:
    class Blind(games.Meeting):
        def _seen(self) -> dict[str, MaskedObservation]:
            hidden, self.cue = self.cue, np.zeros(self.batch, np.int64)
            result = super()._seen()
            self.cue = hidden
            return result

    runner = Joint(ACTOR, Blind(64, 0), Plan(64 * 160, 64 * 40), 0)
    while not runner.done:
        runner.advance()
    assert (runner.lives["left"].episode_return or 0.0) <= 2 * (1 / 3 + 2 / 3 * 0.5) + 0.1


@pytest.mark.parametrize("name", CONFIGS)
def test_resumed_from_a_checkpoint_is_bit_equal(name: str) -> None:
    plan = Plan(32 * 60, 32 * 20)
    straight = Joint(CONFIGS[name], games.Meeting(32, 5), plan, 3)
    straight.advance()
    resumed = Joint(CONFIGS[name], games.Meeting(32, 77), plan, 8)
    resumed.restore(straight.checkpoint())
    while not straight.done:
        one, other = straight.advance(), resumed.advance()
        assert (one.episode_return, one.updates) == (other.episode_return, other.updates)
        for agent in straight.lives:
            assert straight.lives[agent].episode_return == resumed.lives[agent].episode_return
            assert straight.lives[agent].updates == resumed.lives[agent].updates
    for agent, (_, _, arrays) in straight.agent.export().items():
        for key, value in resumed.agent.export()[agent][2].items():
            np.testing.assert_array_equal(value, arrays[key])


def test_same_seed_same_result_and_another_seed_another() -> None:
    def parameters(seed: int) -> np.ndarray:
        return np.concatenate([agent.parameters() for agent in trained(ACTOR, 16, seed).agent.agents.values()])

    first = parameters(1)
    np.testing.assert_array_equal(first, parameters(1))
    assert (first != parameters(2)).any()


def test_every_agent_needs_a_config() -> None:
    with pytest.raises(ValueError, match="configs for left, but the agents are left, right"):
        Joint({"left": ACTOR}, games.Meeting(4, 0), Plan(8, 8), 0)
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"type": "together"}')

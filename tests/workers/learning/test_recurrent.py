"""A recurrent core: parity with torch's, and what only who remembers can do."""

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from app.kinds.contract.policy import Situation, View
from app.policies.base import RETURN_SCALE
from app.policies.functions import gru_step, tanh
from app.policies.network import NetworkPolicy
from tests.workers.learning import games
from tests.workers.learning.suite import trained
from workers.learning.agent import make_agent
from workers.learning.algorithms.actor_critic import ActorCriticLearner
from workers.learning.algorithms.base import Experience
from workers.learning.algorithms.config import ActorCritic, Cloning, Entropy, Network, Optimiser
from workers.learning.backends import get_backend
from workers.learning.components.network import GRU
from workers.learning.execution.serial import Plan, Serial

XP = get_backend("numpy").xp
replace = msgspec.structs.replace
FORGETFUL = ActorCritic(
    network=Network(layers=(32,), activation="tanh"),
    rollout=8,
    optimiser=Optimiser(rate=1e-2, clip=0.5),
    entropy=Entropy(start=0.05),
)
MINDFUL = replace(FORGETFUL, recurrent=16)


def parameters(units: int, wide: int) -> tuple[torch.nn.GRU, dict[str, Any]]:
    torch.manual_seed(3)
    peer = torch.nn.GRU(wide, units, batch_first=True)
    names = {"input.weight": "weight_ih_l0", "memory.weight": "weight_hh_l0"}
    names |= {"input.bias": "bias_ih_l0", "memory.bias": "bias_hh_l0"}
    return peer, {ours: getattr(peer, theirs).detach().numpy() for ours, theirs in names.items()}


def test_the_core_equals_torchs() -> None:
    peer, arrays = parameters(6, 4)
    rng = np.random.default_rng(0)
    sequence, memory = rng.normal(size=(5, 9, 4)).astype(np.float32), rng.normal(size=(5, 6)).astype(np.float32)
    values = {"sequence": sequence, "begins": np.zeros((5, 9), np.bool_), "memory": memory}
    result = GRU(6).run(XP, arrays, values)
    with torch.no_grad():
        wanted, last = peer(torch.tanh(torch.from_numpy(sequence)), torch.from_numpy(memory)[None])
    rows = result["observation"].reshape(5, 9, 10)
    np.testing.assert_allclose(rows[:, :, :4], torch.tanh(torch.from_numpy(sequence)), rtol=1e-6)
    np.testing.assert_allclose(rows[:, :, 4:], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result["memory"], last[0], rtol=1e-5, atol=1e-6)


def test_nothing_is_remembered_from_before_an_episode() -> None:
    _, arrays = parameters(6, 4)
    rng = np.random.default_rng(1)
    sequence = rng.normal(size=(3, 7, 4)).astype(np.float32)
    begins = np.zeros((3, 7), np.bool_)
    begins[:, 4] = True
    memory = rng.normal(size=(3, 6)).astype(np.float32)
    cut = GRU(6).run(XP, arrays, {"sequence": sequence, "begins": begins, "memory": memory})["memory"]
    state = np.zeros((3, 6), np.float32)
    for step in range(4, 7):
        state = gru_step(tanh(sequence[:, step]), state, arrays)
    np.testing.assert_allclose(cut, state, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["gradient", "clipped"])
def test_who_remembers_the_cue_earns_and_who_does_not_guesses(surrogate: Any) -> None:
    """A third is what guessing earns: 1/3 ± 0.017 in 800 episodes, of which four standard errors are allowed."""
    switched = {"surrogate": surrogate, "epochs": 1 if surrogate == "gradient" else 2}
    remembering = trained(replace(MINDFUL, **switched), games.Recalling(64, 0), 320, chunks=4)
    forgetful = trained(replace(FORGETFUL, **switched), games.Recalling(64, 0), 320, chunks=4)
    assert remembering.live.episode_return is not None
    assert forgetful.live.episode_return is not None
    assert remembering.live.episode_return >= 0.9
    assert forgetful.live.episode_return <= 1 / 3 + 4 * 0.017


def test_rollouts_are_unrolled_as_they_were_acted() -> None:
    """The probabilities that learning recomputes over a rollout are those that actions were drawn with."""
    environment = games.Recalling(16, 0)
    runner = Serial(replace(MINDFUL, rollout=7), environment, Plan(16 * 70, 16 * 13), 0)
    runner.advance()  # six slabs into the second rollout; an episode takes four
    agent, learner = runner.agent, runner.agent.learner
    assert isinstance(learner, ActorCriticLearner)
    whole = agent.collect(runner.collector.step(agent, 0.0, runner.rng))
    assert whole is not None
    batch = learner.examples(whole)
    values = {**learner.inputs.feeds(batch), "mask": batch["mask"], "action": batch["action"]}
    with learner.backend.without_gradient():
        result = learner.bound.run(("chance.log_prob",), values, learner.variables(agent.learned))["chance.log_prob"]
    np.testing.assert_allclose(learner.backend.to_numpy(result), whole["log_prob"].reshape(-1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [None, 128])
def test_resumed_from_a_checkpoint_is_bit_equal(batch: int | None) -> None:
    config, plan = replace(MINDFUL, batch=batch), Plan(32 * 60, 32 * 20)
    straight = Serial(config, games.Recalling(32, 5), plan, 3)
    straight.advance()
    resumed = Serial(config, games.Recalling(32, 99), plan, 77)
    resumed.restore(straight.checkpoint())
    while not straight.done:
        one, other = straight.advance(), resumed.advance()
        assert (one.episode_return, one.loss, one.updates) == (other.episode_return, other.loss, other.updates)
    np.testing.assert_array_equal(straight.agent.parameters(), resumed.agent.parameters())


@pytest.mark.slow
def test_a_recurrent_agent_can_be_cloned_from_who_remembers() -> None:
    environment = games.Recalling(64, 0)
    config = replace(MINDFUL, cloning=Cloning(epochs=12, batch=256, rate=1e-2, entropy=0.0))
    agent = make_agent(config, environment.observation_space, environment.action_space, None, np.random.default_rng(0))
    observation, mask = environment.reset()
    slabs, sure = [], np.zeros(64, np.float32)
    for _ in range(64):
        action = environment.cue.copy()
        step = environment.step(action)
        slabs.append(
            Experience(observation, mask, action, step.reward, step.done, step.final_observation, step.mask, sure)
        )
        observation, mask = step.observation, step.mask
    agent.imitate(slabs, np.random.default_rng(1))
    runner = Serial(config, games.Recalling(64, 7), Plan(64 * 24, 64 * 24), 0)
    runner.agent.load(agent.parameters())
    assert (runner.advance().episode_return or 0.0) >= 0.9


@cache
def mindful() -> Serial:
    """A trained agent with a memory; tests only export it."""
    return trained(MINDFUL, games.Recalling(64, 0), 320, chunks=4)


def served(runner: Serial) -> NetworkPolicy:
    kind, config, arrays = runner.agent.export()
    assert kind == "network"
    return NetworkPolicy.build({"algorithm": "recurrent_ppo", **config}, dict(arrays))


def recalled(policy: NetworkPolicy, remembering: bool) -> float:
    """Share of cues that an exported policy knows at the end, with or without what it remembered."""
    environment = games.Recalling(600, 9)
    (observation, mask), memory, paid = environment.reset(), None, 0.0
    for _ in range(environment.delay + 1):
        choice = policy.act(Situation(None, None, View(observation, mask), memory))
        memory = choice.memory if remembering else None
        step = environment.step(choice.action)
        observation, mask, paid = step.observation, step.mask, paid + float(step.reward.mean())
    return paid


def test_what_is_exported_remembers() -> None:
    """Without its memory it guesses: 1/3 ± 0.019 in 600 episodes, of which four standard errors are allowed."""
    policy = served(mindful())
    assert recalled(policy, remembering=True) >= 0.9
    assert recalled(policy, remembering=False) <= 1 / 3 + 4 * 0.02


def test_what_is_exported_step_by_step_equals_what_learned_over_the_sequence() -> None:
    config = replace(MINDFUL, rollout=9)
    runner = trained(config, games.Recalling(16, 0), 90)
    policy, agent, rng = served(runner), runner.agent, np.random.default_rng(2)
    learner, size = agent.learner, games.Recalling(1, 0).observation_space.shape[0]
    assert isinstance(learner, ActorCriticLearner)
    sequence, mask = rng.normal(size=(5, 9, size)).astype(np.float32), np.ones((5, 3), np.bool_)
    feeds = {"sequence": sequence, "begins": np.zeros((5, 9), np.bool_), "memory": np.zeros((5, 16), np.float32)}
    values = {name: learner.backend.asarray(value) for name, value in feeds.items()}
    values["mask"] = learner.backend.asarray(np.ones((45, 3), np.bool_))
    with learner.backend.without_gradient():
        logits = learner.bound.run(("policy.logits",), values, {"online": learner.exported(agent.learned)})
    wanted = learner.backend.to_numpy(logits["policy.logits"]).reshape(5, 9, 3) * config.temperature
    memory = None
    for step in range(9):
        choice = policy.act(Situation(None, None, View(sequence[:, step], mask), memory))
        memory = choice.memory
        assert choice.values is not None
        np.testing.assert_allclose(choice.values * RETURN_SCALE, wanted[:, step], rtol=1e-5, atol=1e-5)


def test_a_recurrent_agent_goes_on_from_what_it_exported() -> None:
    _, config, arrays = mindful().agent.export()
    other = Serial(MINDFUL, games.Recalling(64, 1), Plan(64 * 24, 64 * 24), 5)
    other.agent.start_from(arrays, config)
    assert recalled(served(other), remembering=True) >= 0.9
    forgetful = Serial(FORGETFUL, games.Recalling(64, 1), Plan(64 * 24, 64 * 24), 5)
    with pytest.raises(ValueError, match=r"does not fit.*core\.input\.bias"):
        forgetful.agent.start_from(arrays, config)

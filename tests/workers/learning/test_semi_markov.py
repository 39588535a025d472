"""Decisions that are not equally long: what follows counts by the discount that the simulator gives of each step."""

from typing import Any

import msgspec
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from tests.workers.learning.environments import Planted
from tests.workers.learning.suite import trained
from tests.workers.learning.test_closed_forms import slab
from tests.workers.learning.test_value_agents import SMALL, TABLE
from workers.learning.algorithms.config import NAMED, Config
from workers.learning.backends import get_backend
from workers.learning.components.base import reals
from workers.learning.components.policy import GAE, VTrace
from workers.learning.components.replay import TRANSITION, Replay, Rollout
from workers.learning.components.value import NStep
from workers.learning.simulator import Step

XP = get_backend("numpy").xp
STEP_SPACE = {
    "observation": reals(1),
    "mask": spaces.MultiBinary(2),
    "action": spaces.Discrete(2),
    "reward": reals(),
    "done": spaces.MultiBinary(()),
    "next_observation": reals(1),
    "next_mask": spaces.MultiBinary(2),
}


class Unequal(Planted):
    """Two states, each of which leads to the other, for ever; a quick action, the first, pays less than a slow one."""

    reward = np.array([[1.0, 1.5], [0.5, 1.0]])
    discount = np.array([[0.6, 0.2], [0.6, 0.2]], np.float32)

    def __init__(self, batch: int, seed: int) -> None:
        other = np.broadcast_to(np.eye(2)[::-1, None], (2, 2, 2))
        super().__init__(batch, seed, other, self.reward, np.zeros(2, np.bool_), np.arange(2))

    def step(self, actions: NDArray[Any]) -> Step:
        discount = self.discount[self.state, actions]
        return super().step(actions)._replace(discount=discount)

    def solved(self) -> NDArray[np.float64]:
        """Q by value iteration: the contraction is at most 0.6."""
        q = np.zeros((2, 2))
        for _ in range(100):
            q = self.reward + self.discount * q.max(axis=1)[::-1, None]
        return q


VALUES: dict[str, Config] = {
    "table": msgspec.structs.replace(TABLE, entries=(0,)),
    "dqn": SMALL,
}


@pytest.mark.parametrize("name", ["table", "dqn"])
def test_values_are_those_of_the_semi_markov_process(name: str) -> None:
    environment = Unequal(32, 0)
    runner = trained(VALUES[name], environment, 400)
    result = runner.agent.values(np.eye(2, dtype=np.float32), environment.legal)
    np.testing.assert_allclose(result, environment.solved(), atol=0.08)


@pytest.mark.parametrize("estimator", ["gae", pytest.param("vtrace", marks=pytest.mark.slow)])
def test_policy_gradients_find_the_best_actions(estimator: str) -> None:
    environment = Unequal(64, 0)
    config = msgspec.structs.replace(NAMED["a2c"], estimator=estimator)
    runner = trained(config, environment, 700)
    actions = runner.agent.greedy(np.eye(2, dtype=np.float32), environment.legal)
    assert actions.tolist() == environment.solved().argmax(axis=1).tolist()


def test_without_their_discount_the_best_actions_are_others() -> None:
    """What the tests above test: the slow action pays more, but holds up what follows."""
    assert Unequal(1, 0).solved().argmax(axis=1).tolist() == [0, 0]
    assert Unequal.reward.argmax(axis=1).tolist() == [1, 1]


@pytest.mark.parametrize("steps", [1, 3])
def test_n_step_return_equals_the_loop(steps: int) -> None:
    rng, batch, gamma = np.random.default_rng(0), 30, 0.9
    component = NStep(steps, gamma)
    component.allocate(STEP_SPACE, rng)
    slabs = [
        {**slab(np.random.default_rng(n), batch, n), "discount": rng.random(batch).astype(np.float32)} for n in range(9)
    ]
    resumed = NStep(steps, gamma)
    resumed.allocate(STEP_SPACE, rng)
    for start in range(9):
        outputs = component.run(None, {}, slabs[start])
        again = resumed.run(None, {}, slabs[start])
        state = resumed.state()
        resumed = NStep(steps, gamma)
        resumed.allocate(STEP_SPACE, rng)
        resumed.restore(state)
        if start < steps - 1:
            continue
        window = slabs[start - steps + 1 : start + 1]
        for b in range(batch):
            total, discount = 0.0, 1.0
            for one in window:
                total += discount * one["reward"][b]
                discount *= gamma * one["discount"][b] * (not one["done"][b])
            assert outputs["reward"][b] == pytest.approx(total, rel=1e-5, abs=1e-6)
            assert outputs["discount"][b] == pytest.approx(discount, rel=1e-5)
        np.testing.assert_array_equal(outputs["discount"], again["discount"])


def test_a_replay_memory_keeps_the_discount_of_each_transition() -> None:
    rng, window, memory = np.random.default_rng(0), NStep(1, 0.5), Replay(64)
    window.allocate(STEP_SPACE, rng)
    memory.allocate({**STEP_SPACE, "discount": reals()}, rng)
    values = slab(rng, 64, 0) | {"discount": np.linspace(0, 1, 64, dtype=np.float32), "done": np.zeros(64, np.bool_)}
    memory.insert(window.run(None, {}, values))
    assert "discount" in TRANSITION
    np.testing.assert_allclose(memory.rings["discount"], 0.5 * values["discount"])


def test_a_rollout_keeps_them_too_and_ones_where_there_are_none() -> None:
    rng, rollout = np.random.default_rng(0), Rollout(2)
    rollout.allocate({**STEP_SPACE, "log_prob": reals()}, rng)
    discount = rng.random(5).astype(np.float32)
    for values in (discount, None):
        rollout.push({**slab(rng, 5, 0), "log_prob": np.zeros(5, np.float32), "discount": values})
    np.testing.assert_array_equal(rollout.slabs["discount"], np.stack([discount, np.ones(5, np.float32)], axis=1))


@pytest.mark.parametrize("vtrace", [False, True])
def test_advantages_equal_the_double_sum(vtrace: bool) -> None:
    """A_t = Σ_l (Π_{i<l} γ·d_i·λ)·δ_{t+l}; on policy, V-trace's targets are those of GAE with λ = `trace`."""
    rng, gamma, trace, batch, steps = np.random.default_rng(3), 0.95, 0.8, 20, 6
    numbers = {name: rng.normal(size=(batch, steps)).astype(np.float32) for name in ("reward", "value", "log_prob")}
    discount, ended = rng.random((batch, steps)).astype(np.float32), rng.random((batch, steps)) < 0.2
    last = rng.normal(size=batch).astype(np.float32)
    values = {**numbers, "behaviour": numbers["log_prob"], "done": 1 - discount * ~ended, "last": last}
    result = (VTrace(gamma, trace) if vtrace else GAE(gamma, trace)).run(XP, {}, values)
    for b in range(batch):
        value, mask = [*numbers["value"][b], last[b]], gamma * discount[b] * ~ended[b]
        delta = [numbers["reward"][b, t] + mask[t] * value[t + 1] - value[t] for t in range(steps)]
        for t in range(steps):
            wanted = sum(delta[k] * np.prod(trace * mask[t:k]) for k in range(t, steps))
            assert result["target"][b, t] == pytest.approx(wanted + value[t], rel=1e-4, abs=1e-5)

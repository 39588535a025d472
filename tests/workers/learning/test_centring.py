"""Problems that never end: the level that all values share is taken out of the rewards, and what is best stays so."""

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.workers.learning.environments import Planted
from tests.workers.learning.suite import trained
from tests.workers.learning.test_value_agents import SMALL, TABLE
from workers.learning.algorithms.config import NAMED, ActorCritic, Config, endless
from workers.learning.algorithms.q_table import centre_rewards
from workers.learning.execution.serial import Collector, Plan, Serial
from workers.learning.simulator import Step
from workers.learning.training.request import Request, config_for

CYCLE = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


class Endless(Planted):
    """Three states in turn; the second action pays more and takes four times as long. Values are some -100."""

    reward = np.array([[-1.0, -4.2], [-1.2, -4.0], [-1.0, -3.9]])
    discount = np.exp(-np.array([[0.01, 0.04]] * 3)).astype(np.float32)

    def __init__(self, batch: int, seed: int) -> None:
        ends = np.zeros(3, np.bool_)
        super().__init__(batch, seed, np.stack([CYCLE, CYCLE], axis=1), self.reward, ends, np.arange(3))

    def step(self, actions: NDArray[Any]) -> Step:
        discount = self.discount[self.state, actions]
        return super().step(actions)._replace(discount=discount)

    def solved(self) -> NDArray[np.float64]:
        """Q by value iteration."""
        q = np.zeros((3, 2))
        for _ in range(5_000):
            q = self.reward + self.discount * (CYCLE @ q.max(axis=1))[:, None]
        return q


class Cut(Endless):
    """The same, told as episodes that only the clock ends, one step in five."""

    def step(self, actions: NDArray[Any]) -> Step:
        done = self.rng.random(self.batch) < 0.2
        return super().step(actions)._replace(done=done, truncated=done)


VALUES: dict[str, Config] = {
    "table": msgspec.structs.replace(TABLE, entries=(0, 1)),
    "dqn": SMALL,
    "quantile": msgspec.structs.replace(SMALL, quantiles=4),
}


def learned(config: Config, environment: Endless, slabs: int = 600) -> NDArray[np.float32]:
    """What actions are worth to a learner."""
    values: NDArray[np.float32] = trained(config, environment, slabs).agent.values(
        np.eye(3, dtype=np.float32), environment.legal
    )
    return values


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("table", Endless),
        ("table", Cut),
        ("dqn", Endless),
        pytest.param("dqn", Cut, marks=pytest.mark.slow),
        pytest.param("quantile", Endless, marks=pytest.mark.slow),
        pytest.param("quantile", Cut, marks=pytest.mark.slow),
    ],
)
def test_what_sets_values_apart_is_learned_without_their_level(name: str, environment: type[Endless]) -> None:
    world = environment(32, 0)
    result = learned(msgspec.structs.replace(VALUES[name], centred=True), world)
    exact = world.solved()
    assert exact.max() < -50
    assert abs(result.mean()) < 5
    np.testing.assert_allclose(result - result.mean(), exact - exact.mean(), atol=0.08)


@pytest.mark.slow
def test_with_their_level_the_same_budget_is_too_short() -> None:
    """What the test above tests."""
    world = Endless(32, 0)
    result, exact = learned(VALUES["dqn"], world), world.solved()
    assert np.abs((result - result.mean()) - (exact - exact.mean())).max() > 0.08


@pytest.mark.parametrize("name", ["a2c", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ppo", "vtrace"))])
def test_actors_find_the_best_actions(name: str) -> None:
    world = Cut(64, 0)
    runner = trained(msgspec.structs.replace(NAMED[name], centred=True), world, 600)
    actions = runner.agent.greedy(np.eye(3, dtype=np.float32), world.legal)
    assert actions.tolist() == world.solved().argmax(axis=1).tolist() == [0, 1, 1]


def test_errors_are_none_on_average_once_rewards_are_centred() -> None:
    rng = np.random.default_rng(0)
    reward, ends, following, value = rng.random((4, 8, 5))
    error = reward + (1 - ends) * following - value
    left = centre_rewards(np, reward, ends, error)
    assert (left + (1 - ends) * following - value).mean() == pytest.approx(0, abs=1e-8)
    level = (reward - left) / ends
    np.testing.assert_allclose(level, level.mean())


def test_where_nothing_is_discounted_nothing_is_taken_out() -> None:
    reward = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(centre_rewards(np, reward, np.zeros((2, 3)), reward), reward)


@pytest.mark.parametrize("name", ["tabular_q", "dueling_double_dqn", "a2c", "ppo"])
def test_who_learns_of_an_endless_problem_is_centred(name: str) -> None:
    request = Request(name, 10_000)
    for continuing in (True, False):
        to_builtins = msgspec.to_builtins(config_for(name, request, (0,), continuing=continuing))
        assert to_builtins["centred"] is continuing


def test_endless_problems_keep_policies_broad_at_first() -> None:
    usual = NAMED["ppo"]
    assert isinstance(usual, ActorCritic)
    assert endless(usual).entropy.start > usual.entropy.start
    assert endless(usual).entropy.end == usual.entropy.end


def test_episodes_that_the_clock_ends_are_counted_and_go_on() -> None:
    """Learners are told of no end; the returns of what was cut are reported."""
    runner = Serial(SMALL, Cut(32, 0), Plan(32 * 20, 32 * 20), 0)
    assert runner.advance().episode_return is not None
    collector = Collector(Cut(32, 0))
    observation = collector.step(runner.agent, 0.0, np.random.default_rng(0))
    assert not observation.done.any()
    assert collector.take_counts()[1] > 0

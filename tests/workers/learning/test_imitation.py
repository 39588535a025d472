"""Demonstrations are what their expert does."""

import numpy as np
import pytest

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.heuristics import HEURISTICS
from tests.workers.learning import environments
from workers.learning.simulator import demonstrate


@pytest.mark.parametrize("name", ["threshold", "hold"])
def test_a_heuristic_demonstrates_what_it_would_do(name: str) -> None:
    workload = environments.Workload(64)
    slabs = list(demonstrate(workload.simulator(32, 1), HEURISTICS[name], 12))
    again = workload.simulator(32, 1)
    observation, _ = again.reset()
    for slab in slabs:
        np.testing.assert_array_equal(slab.observation, observation)
        np.testing.assert_array_equal(slab.action, HEURISTICS[name].act(again.situation).action)
        step = again.step(slab.action)
        np.testing.assert_array_equal(slab.reward, step.reward)
        np.testing.assert_array_equal(slab.next_observation, step.final_observation)
        assert slab.mask[np.arange(32), slab.action].all()
        observation = step.observation
    assert sum(int(slab.done.sum()) for slab in slabs) > 0


def test_an_expert_that_breaks_the_rules_is_no_example() -> None:
    environment = environments.finite_horizon(16, 0)

    class Wild:
        name = "wild"

        def act(self, situation: Situation) -> Choice:
            return Choice(np.full(len(situation.state), 2))

    with pytest.raises(ValueError, match="'wild'"):
        list(demonstrate(environment, Wild(), 3))


def test_the_exact_expert_earns_the_optimum() -> None:
    environment = environments.finite_horizon(512, 3)
    slabs = list(demonstrate(environment, environments.Expert(environment), 60))
    episodes = np.stack([slab.reward for slab in slabs]).reshape(10, 6, 512).sum(axis=1).ravel()
    assert abs(episodes.mean() - environment.best()) <= 4 * episodes.std() / np.sqrt(len(episodes))

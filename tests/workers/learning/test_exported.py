"""What is exported says, in NumPy and through the service's own loader, what the learner says on its backend."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from gymnasium import spaces

from app.kinds.contract.policy import Situation
from app.kinds.iterative.policies import FAMILIES
from app.policies.base import RETURN_SCALE
from workers.learning.agent import Agent, make_agent
from workers.learning.algorithms.base import Experience
from workers.learning.algorithms.config import NAMED, QTable
from workers.learning.backends import get_backend
from workers.learning.components.base import reals

WIDE, ACTIONS = 9, 4


def taught(name: str) -> Agent:
    """An agent of arbitrary parameters; a table has to be filled by learning."""
    config, rng = NAMED[name], np.random.default_rng(1)
    agent = make_agent(config, reals(WIDE), spaces.Discrete(ACTIONS), None, rng, get_backend("torch"))
    if not isinstance(config, QTable):
        agent.load(rng.normal(0.0, 0.3, agent.parameters().shape).astype(np.float32))
        return agent
    for _ in range(4):
        observation, mask = drawn(rng, config.warm_up // 2)
        acted = agent.act(observation, mask, 0.5, rng)
        reward, done = rng.standard_normal(len(observation), np.float32), rng.random(len(observation)) < 0.1
        agent.remember(Experience(observation, mask, acted.action, reward, done, observation, mask, acted.log_prob))
        agent.learn(0.5, rng)
    return agent


def drawn(rng: np.random.Generator, batch: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    mask = rng.random((batch, ACTIONS)) < 0.7
    mask[:, 0] |= ~mask.any(axis=1)
    return rng.standard_normal((batch, WIDE), np.float32), mask


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_service_says_what_the_learner_says(name: str) -> None:
    agent = taught(name)
    observation, mask = drawn(np.random.default_rng(2), 64)
    kind, described, arrays = agent.export()
    policy = FAMILIES[kind].build({"algorithm": name, **described}, dict(arrays))
    view = SimpleNamespace(observation=observation, mask=mask)
    choice = policy.act(Situation(None, None, cast("Any", view)))
    assert choice.values is not None
    ours = agent.values(observation, mask)
    assert ours.std() > 0.1
    np.testing.assert_allclose((choice.values * RETURN_SCALE)[mask], ours[mask], rtol=1e-5, atol=1e-5)
    assert np.isneginf(choice.values[~mask]).all()
    np.testing.assert_array_equal(choice.action, agent.greedy(observation, mask))

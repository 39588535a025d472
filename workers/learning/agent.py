"""From a config to an agent that acts and learns."""

from collections.abc import Callable

import msgspec
import numpy as np
from gymnasium import spaces

from workers.learning.algorithms.actor_critic import ActorCriticAgent
from workers.learning.algorithms.base import Agent, Experience, Observations
from workers.learning.algorithms.config import DQN, ActorCritic, Config, QTable
from workers.learning.algorithms.dqn import ValueAgent
from workers.learning.algorithms.q_table import TableAgent
from workers.learning.backends import Backend, backend_of, resolve
from workers.learning.spaces import sample

Learner = DQN | ActorCritic


def make_agent(
    config: Config,
    observation: spaces.Box,
    actions: spaces.Discrete,
    advice: slice | None,
    rng: np.random.Generator,
    backend: Backend | None = None,
) -> Agent:
    """Build the agent of a config for an environment's spaces.

    Args:
        config: which algorithm, with which switches.
        observation: Box of shape [D].
        actions: Discrete(N).
        advice: where the observation holds one number per action, in the unit of the reward; or None.
        rng: draws the starting values, and later the batches; the executor's own.
        backend: in place of the config's: one that only acts needs no gradients.

    Raises:
        BuildError: the config does not fit the spaces; names component and input.
        BackendError: what the config is to learn on can't be had.
    """
    if isinstance(config, QTable):
        return TableAgent(config, observation, actions, advice)
    backend = backend or backend_of(settled(config, observation, actions, advice).place)
    return _learner(config, observation, actions, advice, rng, backend)


def settled(
    config: Learner, observation: spaces.Box, actions: spaces.Discrete, advice: slice | None, slab: int = 2_048
) -> Learner:
    """Return the config with its backend and device settled, by timing its own updates where there is a choice.

    A training that must go on bit-equal elsewhere keeps what was settled at its start. Raises BackendError.

    Args:
        config: what is to learn.
        observation: Box of shape [D].
        actions: Discrete(N).
        advice: as for `make_agent`.
        slab: environments in lock-step while it is timed.
    """

    def trial(backend: Backend) -> Callable[[], None]:
        rng = np.random.default_rng(0)
        agent = _learner(config, observation, actions, advice, rng, backend)
        return _until_learned(agent, sample(observation, slab, rng), int(actions.n), rng)

    return msgspec.structs.replace(config, place=resolve(config.place, trial))


def _learner(
    config: Learner,
    observation: spaces.Box,
    actions: spaces.Discrete,
    advice: slice | None,
    rng: np.random.Generator,
    backend: Backend,
) -> Agent:
    if isinstance(config, ActorCritic):
        return ActorCriticAgent(config, observation, actions, advice, backend, rng)
    return ValueAgent(config, observation, actions, advice, backend, rng)


def _until_learned(agent: Agent, seen: Observations, actions: int, rng: np.random.Generator) -> Callable[[], None]:
    """Work to be timed: slabs of random transitions, until the agent has learned once."""
    slab, mask = len(seen), np.ones((len(seen), actions), np.bool_)
    reward, done = rng.standard_normal(slab, np.float32), rng.random(slab) < 1 / 32

    def work() -> None:
        stats = None
        while stats is None:
            acted = agent.act(seen, mask, 0.5, rng)
            agent.remember(Experience(seen, mask, acted.action, reward, done, seen, mask, acted.log_prob))
            stats = agent.learn(0.5, rng)

    return work

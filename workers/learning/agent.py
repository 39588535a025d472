"""From a config to an agent that acts and learns."""

import numpy as np
from gymnasium import spaces

from workers.learning.algorithms.actor_critic import ActorCriticAgent
from workers.learning.algorithms.base import Agent
from workers.learning.algorithms.config import DQN, ActorCritic, Config
from workers.learning.algorithms.dqn import ValueAgent
from workers.learning.algorithms.q_table import TableAgent
from workers.learning.backends import Backend, get_backend, resolve


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
    """
    if isinstance(config, ActorCritic):
        return ActorCriticAgent(
            config, observation, actions, advice, backend or get_backend(resolve(config.place)), rng
        )
    if isinstance(config, DQN):
        return ValueAgent(config, observation, actions, advice, backend or get_backend(resolve(config.place)), rng)
    return TableAgent(config, observation, actions, advice)

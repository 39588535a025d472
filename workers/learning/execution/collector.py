"""Collects transitions: one simulator stepped by an agent, and the returns of the episodes that ended."""

import numpy as np

from workers.learning.agent import Agent
from workers.learning.algorithms.base import Experience
from workers.learning.simulator import Simulator


class Collector:
    """B environments in lock-step, and their present observations.

    `paid` and `episodes`: sum of the returns of the episodes that ended, exploration included, and how many did, since
    the last `take_counts`.
    """

    def __init__(self, environment: Simulator) -> None:
        self.environment = environment
        self.observation, self.mask = environment.reset()
        self.returns = np.zeros(environment.batch, np.float64)
        self.paid, self.episodes = 0.0, 0

    def step(self, agent: Agent, progress: float, rng: np.random.Generator) -> Experience:
        """Take one step in each environment."""
        observation, mask = self.observation, self.mask
        action, log_prob, _ = agent.act(observation, mask, progress, rng)
        step = self.environment.step(action)
        self.observation, self.mask = step.observation, step.mask
        self.returns += step.reward
        if step.done.any():
            self.paid += float(self.returns[step.done].sum())
            self.episodes += int(step.done.sum())
            self.returns[step.done] = 0.0
        return Experience(
            observation,
            mask,
            action,
            step.reward,
            step.terminated,
            step.final_observation,
            step.mask,
            log_prob,
            step.discount,
        )

    def take_counts(self) -> tuple[float, int]:
        """Return `paid` and `episodes`, and count from nothing again."""
        counts = self.paid, self.episodes
        self.paid, self.episodes = 0.0, 0
        return counts

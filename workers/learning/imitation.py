"""Demonstrations: an expert (a heuristic of the kind, or the planner) plays in the simulator, and learners watch."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from app.kinds.contract.policy import Policy
from workers.learning.algorithms.base import Experience
from workers.learning.simulator import Simulator


class Situated(Simulator, Protocol):
    """A simulator that shows a policy what the service would show it."""

    @property
    def situation(self) -> Any:
        """B runs, each at the point of its next decision: what `Policy.act` takes."""
        ...


def demonstrate(simulator: Situated, policy: Policy, slabs: int) -> Iterator[Experience]:
    """Let an expert decide, from a reset on: `slabs` slabs of what came of it, [B, …] each.

    The expert is as sure as can be of what it does: `log_prob` is 0. An action that the mask forbids would not be an
    example to follow; raises ValueError.
    """
    observation, mask = simulator.reset()
    for _ in range(slabs):
        action = np.asarray(policy.act(simulator.situation).action, np.int64)
        if not mask[np.arange(len(action)), action].all():
            raise ValueError(f"the expert {policy.name!r} chose an action that is not legal")
        step = simulator.step(action)
        sure = np.zeros(len(action), np.float32)
        reward, done, after = step.reward, step.terminated, step.final_observation
        yield Experience(observation, mask, action, reward, done, after, step.mask, sure, step.discount)
        observation, mask = step.observation, step.mask

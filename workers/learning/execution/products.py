"""What actors deliver to a learner, by kind of agent. The same whatever carries it: shared memory, or a cluster.

* `Transitions` (value-based agents): a slab of n-step transitions, with first priorities where replay is prioritised
  (Ape-X: Horgan et al., 2018).
* `Fragments` (actor-critic agents): a rollout with its behaviour's probabilities, to be corrected for by the learner
  (IMPALA: Espeholt et al., 2018).
* `Gradients` (asynchronous actor-critic agents): what a rollout says about the parameters that it was made with (A3C:
  Mnih et al., 2016).

Only a learner has memories of any size; an actor keeps no more than its window.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms.base import Agent, LearnStats
from workers.learning.algorithms.config import DQN, Config
from workers.learning.algorithms.dqn import ValueAgent
from workers.learning.execution.base import ExecutionError
from workers.learning.execution.memory import Field, Fields
from workers.learning.execution.walk import Walk

Arrays = Mapping[str, NDArray[Any]]


@dataclass
class Worker:
    """Who acts: an agent, where it walks, and what it draws from."""

    agent: Agent
    walk: Walk
    rng: np.random.Generator


class Product(ABC):
    """One kind of delivery: how an actor makes it, and what a learner does with it.

    Attributes:
        slabs: how many slabs of environment steps stand behind one.
        differentiates: whether its maker needs gradients.
    """

    slabs: int = 1
    differentiates: bool = False

    @abstractmethod
    def fields(self) -> Fields:
        """Return the arrays of one delivery."""

    @abstractmethod
    def produce(self, worker: Worker, progress: float, out: Arrays) -> None:
        """Act, and fill the arrays."""

    @abstractmethod
    def consume(self, agent: Agent, given: Arrays, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Learn from what was delivered."""

    @abstractmethod
    def contribute(self, worker: Worker, progress: float) -> LearnStats | None:
        """Do both at once: act as an actor would, and learn from it."""


class Transitions(Product):
    """[B] n-step transitions; `count` of them, none until the window is full."""

    def __init__(self, agent: ValueAgent, batch: int) -> None:
        self.batch, self.rings = batch, agent.memory.rings
        self.prioritised = agent.config.memory.prioritised

    def fields(self) -> Fields:
        """As the replay memory has them."""
        found = {port: Field(ring.dtype.str, (self.batch, *ring.shape[1:])) for port, ring in self.rings.items()}
        errors = {"errors": Field("<f4", (self.batch,))} if self.prioritised else {}
        return {**found, **errors, "count": Field("<i8", (1,))}

    def produce(self, worker: Worker, progress: float, out: Arrays) -> None:
        """One slab, through the n-step window."""
        agent = _value_agent(worker.agent)
        found = agent.collect(worker.walk.slab(agent, progress, worker.rng))
        count = out["count"][0] = len(found["reward"])
        for port in self.rings:
            out[port][:count] = found[port]
        if self.prioritised and count:
            out["errors"][:count] = agent.errors(found)

    def consume(self, agent: Agent, given: Arrays, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Into the memory; then learn."""
        count = int(given["count"][0])
        found = {port: given[port][:count] for port in self.rings}
        _value_agent(agent).insert(found, given["errors"][:count] if self.prioritised else None)
        return agent.learn(progress, rng)

    def contribute(self, worker: Worker, progress: float) -> LearnStats | None:
        """One slab, as in a serial training."""
        worker.agent.remember(worker.walk.slab(worker.agent, progress, worker.rng))
        return worker.agent.learn(progress, worker.rng)


def _value_agent(agent: Agent) -> ValueAgent:
    if not isinstance(agent, ValueAgent):
        raise TypeError(f"transitions are for value-based agents, this is a {type(agent).__name__}")
    return agent


def product_of(config: Config, agent: Agent, walk: Walk) -> Product:
    """Return what is delivered for an agent; raises ExecutionError for one that learns in its own process only."""
    if isinstance(config, DQN):
        return Transitions(_value_agent(agent), walk.environment.batch)
    raise ExecutionError(f"{type(config).__name__} has little to compute, and learns in one process: use 'serial'")

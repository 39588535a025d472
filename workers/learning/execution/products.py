"""What actors deliver to a learner, by kind of agent. The same whatever carries it: shared memory, or a cluster.

* `Transitions` (value-based agents): a slab of n-step transitions, with first priorities where replay is prioritised
  (Ape-X: Horgan et al., 2018).
* `Fragments` (actor-critic agents): a rollout with its behaviour's probabilities, to be corrected for by the learner
  (IMPALA: Espeholt et al., 2018).
* `Gradients` (actor-critic agents that take one step a rollout): what a rollout says about the parameters that it was
  made with (A3C: Mnih et al., 2016); A2C on several processes is that.

Only a learner has memories of any size; an actor keeps no more than its window.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms.actor_critic import ActorCriticAgent
from workers.learning.algorithms.base import Agent, LearnStats
from workers.learning.algorithms.config import DQN, ActorCritic, Config
from workers.learning.algorithms.dqn import ValueAgent
from workers.learning.execution.base import ExecutionError
from workers.learning.execution.memory import Field, Fields
from workers.learning.execution.walk import Walk
from workers.learning.spaces import empty

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
        slots: how many an actor may be ahead: the more, the less it waits, and the older are its parameters.
        differentiates: whether its maker needs gradients.
    """

    slabs: int = 1
    slots: int = 4
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


class Rollouts(Product):
    """What deliveries of whole rollouts of an actor-critic agent have in common."""

    slots = 2

    def __init__(self, agent: ActorCriticAgent, batch: int) -> None:
        self.batch, self.slabs = batch, agent.config.rollout
        self.spaces, self.parameters = agent.rollout.gives(agent.rollout.spaces), agent.report.parameters

    def gather(self, worker: Worker, progress: float) -> ActorCriticAgent:
        """Act until the rollout is full."""
        agent = _actor_critic(worker.agent)
        agent.forget()
        for _ in range(self.slabs):
            agent.remember(worker.walk.slab(agent, progress, worker.rng))
        return agent


class Fragments(Rollouts):
    """[B] trajectories, with the logarithms of the probabilities that their actions were drawn with."""

    def fields(self) -> Fields:
        """As the rollout has them."""
        stores = {port: empty(space, self.batch) for port, space in self.spaces.items()}
        return {port: Field(store.dtype.str, store.shape) for port, store in stores.items()}

    def produce(self, worker: Worker, progress: float, out: Arrays) -> None:
        """One rollout."""
        slabs = self.gather(worker, progress).rollout.slabs
        for port in self.spaces:
            out[port][:] = slabs[port]

    def consume(self, agent: Agent, given: Arrays, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """In place of a rollout of its own; then learn."""
        filled = {port: given[port] for port in self.spaces}
        _actor_critic(agent).rollout.restore({**filled, "filled": np.array([self.slabs])})
        return agent.learn(progress, rng)

    def contribute(self, worker: Worker, progress: float) -> LearnStats | None:
        """One rollout, as in a serial training."""
        return self.gather(worker, progress).learn(progress, worker.rng)


class Gradients(Rollouts):
    """The gradient [P] of a rollout; `figures` are those of `LearnStats`, in order."""

    differentiates = True

    def fields(self) -> Fields:
        """Gradient and figures."""
        return {"gradient": Field("<f4", (self.parameters,)), "figures": Field("<f8", (4,))}

    def produce(self, worker: Worker, progress: float, out: Arrays) -> None:
        """One rollout, differentiated."""
        gradient, stats = self._differentiated(worker, progress)
        out["gradient"][:] = gradient
        out["figures"][:] = astuple(stats)

    def consume(self, agent: Agent, given: Arrays, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Take a step along it, whatever the parameters are by now."""
        del rng  # the gradient was drawn for elsewhere
        _actor_critic(agent).apply(given["gradient"].copy(), progress)
        updates, loss, rate, exploration = given["figures"].tolist()
        return LearnStats(int(updates), loss, rate, exploration)

    def contribute(self, worker: Worker, progress: float) -> LearnStats | None:
        """One rollout, and a step along its gradient."""
        gradient, stats = self._differentiated(worker, progress)
        _actor_critic(worker.agent).apply(gradient, progress)
        return stats

    def _differentiated(self, worker: Worker, progress: float) -> tuple[NDArray[np.float32], LearnStats]:
        found = self.gather(worker, progress).gradient(progress, worker.rng)
        if found is None:
            raise RuntimeError(f"{self.slabs} slabs are no full rollout")
        return found


def _actor_critic(agent: Agent) -> ActorCriticAgent:
    if not isinstance(agent, ActorCriticAgent):
        raise TypeError(f"rollouts are for actor-critic agents, this is a {type(agent).__name__}")
    return agent


def _value_agent(agent: Agent) -> ValueAgent:
    if not isinstance(agent, ValueAgent):
        raise TypeError(f"transitions are for value-based agents, this is a {type(agent).__name__}")
    return agent


def product_of(config: Config, agent: Agent, walk: Walk) -> Product:
    """Return what is delivered for an agent; raises ExecutionError for one that learns in its own process only."""
    if isinstance(config, DQN):
        return Transitions(_value_agent(agent), walk.environment.batch)
    if isinstance(config, ActorCritic):
        one_step = config.surrogate == "gradient" and config.epochs == 1 and config.batch is None
        family = Gradients if config.asynchronous or (one_step and config.estimator == "gae") else Fragments
        return family(_actor_critic(agent), walk.environment.batch)
    raise ExecutionError(f"{type(config).__name__} has little to compute, and learns in one process: use 'serial'")

"""What actors deliver to a learner, by kind of agent. The same whatever carries it: shared memory, or a cluster.

* `Transitions` (value-based agents whose acting is at least as much work as their learning): a slab of n-step
  transitions, with first priorities where replay is prioritised (Ape-X: Horgan et al., 2018).
* `Steps` (value-based agents that learn more than they act): the gradients that a slab gives rise to; everybody has a
  share of the replay memory, the learner has the parameters (Gorila: Nair et al., 2015).
* `Fragments` (actor-critic agents): a rollout with its behaviour's probabilities, to be corrected for by the learner
  (IMPALA: Espeholt et al., 2018).
* `Gradients` (actor-critic agents that take one step a rollout): what a rollout says about the parameters that it was
  made with (A3C: Mnih et al., 2016); A2C on several processes is that.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from msgspec import structs
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

    def shown(self, agent: Agent) -> NDArray[np.float32]:
        """Return what actors must know of the learner's parameters, flat."""
        return agent.parameters()

    def adopt(self, agent: Agent, shown: NDArray[np.float32]) -> None:
        """Let an actor's agent go by what was shown."""
        agent.load(shown)

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


class Steps(Product):
    """The gradients [U, P] of a slab's updates, `count` of them; `figures` are those of `LearnStats`, in order.

    An actor is a learner of its own, with the moments of its own steps, but begins every slab at the common parameters.
    """

    differentiates = True
    slots = 2

    def __init__(self, agent: ValueAgent) -> None:
        self.updates, self.parameters = _updates(agent.config)[0], agent.report.parameters

    def fields(self) -> Fields:
        """Gradients and figures."""
        shape = (self.updates, self.parameters)
        return {"gradients": Field("<f4", shape), "count": Field("<i8", (1,)), "figures": Field("<f8", (4,))}

    def shown(self, agent: Agent) -> NDArray[np.float32]:
        """Both networks."""
        target = _value_agent(agent).bound.stores["target"].flat
        return np.concatenate([agent.parameters(), _value_agent(agent).backend.to_numpy(target)])

    def adopt(self, agent: Agent, shown: NDArray[np.float32]) -> None:
        """Both networks."""
        value_agent = _value_agent(agent)
        value_agent.load(shown[: self.parameters])
        backend = value_agent.backend
        backend.assign(value_agent.bound.stores["target"], backend.asarray(shown[self.parameters :]))

    def produce(self, worker: Worker, progress: float, out: Arrays) -> None:
        """One slab of a training of its own."""
        taken: list[NDArray[np.float32]] = []
        _value_agent(worker.agent).taken = taken
        stats = self.contribute(worker, progress)
        out["count"][0] = len(taken)
        for index, gradient in enumerate(taken):
            out["gradients"][index] = gradient
        if stats is not None:
            out["figures"][:] = astuple(stats)

    def consume(self, agent: Agent, given: Arrays, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Take the steps, whatever the parameters are by now."""
        del rng  # the batches were drawn elsewhere
        count = int(given["count"][0])
        if not count:
            return None
        for gradient in given["gradients"][:count]:
            _value_agent(agent).apply(gradient.copy(), progress)
        updates, loss, rate, exploration = given["figures"].tolist()
        return LearnStats(int(updates), loss, rate, exploration)

    def contribute(self, worker: Worker, progress: float) -> LearnStats | None:
        """One slab, as in a serial training."""
        worker.agent.remember(worker.walk.slab(worker.agent, progress, worker.rng))
        return worker.agent.learn(progress, worker.rng)


def _value_agent(agent: Agent) -> ValueAgent:
    if not isinstance(agent, ValueAgent):
        raise TypeError(f"this is for value-based agents, not for a {type(agent).__name__}")
    return agent


def _updates(config: DQN) -> tuple[int, int]:
    """Updates after a slab, at most, and examples in each."""
    if config.foresight is None:
        return config.updates_per_slab, config.batch
    return max(config.foresight.updates, config.updates_per_slab), max(config.foresight.batch, config.batch)


def learns_more_than_it_acts(config: DQN, batch: int, lanes: int) -> bool:
    """Whether one learner could not keep up with actors on all other lanes.

    An example to learn from costs about twice what a step of an environment does. What every action would lead to is
    known where the environments are, and learned there. Demonstrations are the learner's alone.
    """
    if config.imitation is not None:
        return False
    updates, examples = _updates(config)
    return config.foresight is not None or 2 * (lanes - 1) * updates * examples > batch * config.slabs_per_update


def shared_out(config: Config, batch: int, lanes: int) -> Config:
    """Return the config by which each of `lanes` workers learns.

    Those that learn everywhere share the memory out. One that learns from the transitions of others has no foresight.
    """
    if not isinstance(config, DQN):
        return config
    if not learns_more_than_it_acts(config, batch, lanes):
        return structs.replace(config, foresight=None)
    memory = config.memory
    share = {name: -(-getattr(memory, name) // lanes) for name in ("capacity", "warm_up")}
    ahead = config.foresight
    if ahead is not None:
        ahead = structs.replace(ahead, states=-(-ahead.states // lanes))
    return structs.replace(config, memory=structs.replace(memory, **share), foresight=ahead)


def product_of(config: Config, agent: Agent, batch: int, lanes: int) -> Product:
    """Return what is delivered for an agent; raises ExecutionError for one that learns in its own process only.

    Args:
        config: the agent's, as `shared_out` gives it.
        agent: built by it.
        batch: environments of each actor.
        lanes: actors, and the learner.
    """
    if isinstance(config, DQN):
        value_agent = _value_agent(agent)
        everywhere = learns_more_than_it_acts(config, batch, lanes)
        return Steps(value_agent) if everywhere else Transitions(value_agent, batch)
    if isinstance(config, ActorCritic):
        one_step = config.surrogate == "gradient" and config.epochs == 1 and config.batch is None
        family = Gradients if config.asynchronous or (one_step and config.estimator == "gae") else Fragments
        return family(_actor_critic(agent), batch)
    raise ExecutionError(f"{type(config).__name__} has little to compute, and learns in one process: use 'serial'")

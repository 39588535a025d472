"""Distributed training: a learner that consumes the deliveries of actors, and acts itself while there are none.

The ratio of updates to environment steps is that of a serial training: fast actors wait (their queues are bounded),
and a fast learner collects a slab of its own. So no core is idle, and the seconds in which actors start are used too.
Every actor, and the learner's own collector, has its own exploration rates. Shapes: P parameters, U updates per entry.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from workers.learning.agent import Agent, make_agent
from workers.learning.algorithms.base import LearnStats
from workers.learning.algorithms.config import DQN, ActorCritic, Config
from workers.learning.algorithms.registry import algorithm_of
from workers.learning.backends import LEARNS, get_backend
from workers.learning.components.exploration import Schedule
from workers.learning.execution.base import ChunkTotals, ExecutionError, Plan
from workers.learning.execution.serial import Collector, Learner
from workers.learning.simulator import SimulatorSpec

# Arrays shared between processes.
#
# They lie in a file without a name: all processes that hold its descriptor see the same pages, and the system frees
# them with the last of these processes, however it ends. So nothing is left behind, even after `kill -9`.


ALIGNED = 64  # bytes: a cache line
NAME = "steward-learning"  # name in the system's list of mappings


class Field(NamedTuple):
    """One array: NumPy name of its dtype, and its shape."""

    dtype: str
    shape: tuple[int, ...]


Fields = Mapping[str, Field]


def nameless(size: int) -> int:
    """Return a file descriptor of ``size`` zero bytes in a file without a path; OSError if there is no memory."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create(NAME)
    else:
        with tempfile.TemporaryFile() as opened:  # other systems: a file that is deleted while open
            file = os.dup(opened.fileno())
    os.truncate(file, size)
    return file


class SharedArrays:
    """Named arrays in memory shared between processes, initially 0.

    Args:
        fields: dtype and shape of each array by name; equal in every process.
        file: descriptor of the arrays' memory in the process that made them; None: new memory.
    """

    def __init__(self, fields: Fields, file: int | None = None) -> None:
        starts, size = {}, 0
        for name, (dtype, shape) in fields.items():
            starts[name] = size
            size += -(-prod(shape) * np.dtype(dtype).itemsize // ALIGNED) * ALIGNED
        self.file = nameless(max(size, ALIGNED)) if file is None else file
        pages = mmap.mmap(self.file, max(size, ALIGNED))
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.frombuffer(pages, dtype, prod(shape), starts[name]).reshape(shape)
            for name, (dtype, shape) in fields.items()
        }

    def close(self) -> None:
        """Close the descriptor; the memory is freed with the last array that uses it."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
            self.arrays = {}


class ParameterBuffer:
    """The learner's P parameters and progress in shared memory: one process writes, actors read.

    The version is odd during a write; a reader compares it before and after, and reads again if it has changed. (A
    processor that reorders stores may still give a mixture of two successive versions, which is as harmless as the
    staleness that actors' parameters have anyway.)
    """

    def __init__(self, parameters: int, file: int | None = None) -> None:
        fields = {
            "version": Field("<i8", (1,)),
            "progress": Field("<f8", (1,)),
            "parameters": Field("<f4", (parameters,)),
        }
        self.shared = SharedArrays(fields, file)
        self._version, self._progress, self._parameters = self.shared.arrays.values()

    @property
    def progress(self) -> float:
        """Share of the training that is done, 0 to 1."""
        return float(self._progress[0])

    def write(self, parameters: NDArray[np.float32], progress: float) -> None:
        """Write parameters [P] and progress (0 to 1) as the next version; only one process may write."""
        self._version[0] += 1
        self._parameters[:] = parameters
        self._progress[0] = progress
        self._version[0] += 1

    def read(self, known: int) -> tuple[int, NDArray[np.float32]] | None:
        """Return version number and a copy of the parameters [P]; None if the version is still ``known``."""
        while True:
            version = int(self._version[0])
            if version == known:
                return None
            parameters = self._parameters.copy()
            if version % 2 == 0 and int(self._version[0]) == version:
                return version, parameters

    def close(self) -> None:
        """Release the arrays and the shared memory; the buffer is unusable afterwards."""
        del self._version, self._progress, self._parameters
        self.shared.close()


# Deliveries of actors to a learner, independent of the transport (shared memory or a cluster).
#
# - `Entries` of the learner's buffer: n-step transitions of value-based agents (Ape-X: Horgan et al., 2018); rollouts
#   with the behaviour's log probabilities, corrected by the learner, of actor-critic agents (IMPALA: Espeholt et al.,
#   2018). Fastest where acting dominates, and the only way where an entry is used for several epochs.
# - `Gradients` of an entry: every actor has a share of the replay memory, the learner has the parameters (Gorila: Nair
#   et al., 2015; A3C: Mnih et al., 2016). Fastest where learning dominates.


Arrays = Mapping[str, NDArray[Any]]


@dataclass
class Worker:
    """An agent that collects transitions, in an actor or in the learner: agent, collector, and random generator."""

    agent: Agent
    collector: Collector
    rng: np.random.Generator

    def gather(self, progress: float) -> Arrays | None:
        """Act at ``progress`` (0 to 1) until the buffer can store something; return it, or None for too few steps."""
        entry = None
        for _ in range(self.agent.buffer.slabs):
            entry = self.agent.collect(self.collector.step(self.agent, progress, self.rng))
        return entry

    def remember(self, progress: float) -> None:
        """Act at ``progress`` (0 to 1) until transitions or a rollout are complete, and store them in the buffer."""
        entry = self.gather(progress)
        if entry is not None:
            self.agent.buffer.insert(entry)


class Product(ABC):
    """Kind of delivery from actors to the learner.

    Attributes:
        slabs: steps of all the actor's environments per delivery.
        slots: number of deliveries that an actor may be ahead: more mean less waiting, but staler parameters.
        actor_arrays: names of the arrays of the learner's state that actors need.
        differentiates: whether actors need a backend with gradients.
    """

    slots: int
    differentiates: bool

    def __init__(self, agent: Agent, shown: tuple[str, ...]) -> None:
        self.slabs, self.actor_arrays = agent.buffer.slabs, shown

    @abstractmethod
    def fields(self) -> Fields:
        """Return dtype and shape of each array of one delivery, by name."""

    @abstractmethod
    def produce(self, worker: Worker, progress: float, out: Arrays) -> None:
        """In an actor: act at ``progress`` (0 to 1), and write a delivery to the arrays ``out``, shaped by `fields`."""

    @abstractmethod
    def consume(self, agent: Agent, arrays: Arrays, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """In the learner at ``progress`` (0 to 1): learn from a delivery's ``arrays``; return statistics, if any."""

    def contribute(self, worker: Worker, progress: float) -> LearnStats | None:
        """In the learner at ``progress`` (0 to 1): act, store transitions, learn; return statistics or None."""
        worker.remember(progress)
        return worker.agent.learn(progress, worker.rng)


class Entries(Product):
    """Deliveries that are whole entries of an actor's buffer; the learner stores them in its own, and learns from them.

    Besides the entry's arrays by name, [batch, …], a delivery has ``count`` [1]: number of its rows; 0 without an
    entry, while an actor's n-step window fills.

    Args:
        agent: agent whose buffer has entries of the same shapes.
        batch: rows of an entry, one for each of the actor's environments.

    Raises:
        ValueError: the shapes of the buffer's entries are unknown.
    """

    differentiates = False

    def __init__(self, agent: Agent, batch: int) -> None:
        super().__init__(agent, agent.learner.acting)
        self.slots, self.entry = (4 if self.slabs == 1 else 2), agent.buffer.entry(batch)

    def fields(self) -> Fields:
        """Return dtype and shape of an entry's arrays, and of ``count`` [1], the number of filled rows."""
        fields = {port: Field(value.dtype.str, value.shape) for port, value in self.entry.items()}
        return {**fields, "count": Field("<i8", (1,))}

    def produce(self, worker: Worker, progress: float, out: Arrays) -> None:
        """Act at ``progress`` (0 to 1) until transitions or a rollout are complete; copy them to the arrays ``out``."""
        entry = worker.gather(progress)
        out["count"][0] = 0 if entry is None else len(entry["reward"])
        if entry is not None:
            for port in self.entry:
                out[port][:] = entry[port]

    def consume(self, agent: Agent, arrays: Arrays, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Store delivered transitions, run the updates due at ``progress`` (0 to 1); return statistics or None."""
        if arrays["count"][0]:
            agent.buffer.insert({port: arrays[port] for port in self.entry})
        return agent.learn(progress, rng)


class Gradients(Product):
    """Deliveries that are gradients [U, P]: `count` of at most U updates, by P parameters.

    `figures` [4] are the updates' number, mean loss, learning rate, and mean ε, temperature or entropy.

    An actor is a learner with optimiser moments of its own, but starts every entry from the common parameters.
    """

    differentiates = True
    slots = 2

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent, agent.learner.shared)
        self.shape = agent.buffer.updates, len(agent.parameters(("online",)))

    def fields(self) -> Fields:
        """Return dtype and shape of ``gradients`` [U, P], ``count`` [1] and ``figures`` [4]."""
        return {"gradients": Field("<f4", self.shape), "count": Field("<i8", (1,)), "figures": Field("<f8", (4,))}

    def produce(self, worker: Worker, progress: float, out: Arrays) -> None:
        """Act and learn at ``progress`` (0 to 1), write the gradients to ``out``; TypeError if the learner has none."""
        worker.remember(progress)
        taken, stats = worker.agent.differentiate(progress)
        out["count"][0] = len(taken)
        for index, gradient in enumerate(taken):
            out["gradients"][index] = gradient
        if stats is not None:
            out["figures"][:] = (stats.updates, stats.loss, stats.rate, stats.exploration or 0.0)

    def consume(self, agent: Agent, arrays: Arrays, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Step along each gradient in ``arrays`` at the rate of ``progress`` (0 to 1); return statistics or None."""
        del rng  # the actor drew the batches
        count = int(arrays["count"][0])
        if not count:
            return None
        for gradient in arrays["gradients"][:count]:
            agent.apply(gradient.copy(), progress)
        updates, loss, rate, exploration = arrays["figures"].tolist()
        return LearnStats(int(updates), loss, rate, exploration)


def learns_more_than_it_acts(config: Config, batch: int, lanes: int) -> bool:
    """Return whether actors should deliver gradients rather than buffer entries.

    They should if learning takes one learner longer than acting takes ``lanes`` − 1 actors, each of ``batch``
    environments; learning from an example costs about twice as much as an environment step. Demonstrations, and data
    used for several epochs, require entries instead.
    """
    if isinstance(config, ActorCritic):
        one_step = config.surrogate == "gradient" and config.epochs == 1 and config.batch is None
        return config.asynchronous or (one_step and config.estimator == "gae")
    if not isinstance(config, DQN) or config.imitation is not None:
        return False
    examples = config.updates_per_slab * config.batch
    return 2 * (lanes - 1) * examples > batch * config.slabs_per_update


def shared_out(config: Config, batch: int, lanes: int) -> Config:
    """Return the config of each of ``lanes`` workers; if they send gradients, each has a part of memory and warm-up."""
    if not isinstance(config, DQN) or not learns_more_than_it_acts(config, batch, lanes):
        return config
    share = {name: -(-getattr(config.memory, name) // lanes) for name in ("capacity", "warm_up")}
    return structs.replace(config, memory=structs.replace(config.memory, **share))


def require_actors(config: Config, executor: str) -> None:
    """Check that the executor of this name can run a config's algorithm.

    Raises:
        ExecutionError: the algorithm does not support the executor.
        UnknownAlgorithm: no installed algorithm has a config of this type.
    """
    if executor not in algorithm_of(config).executors:
        raise ExecutionError(f"{type(config).__name__} can't be run by {executor!r}: use 'serial'")


def product_of(config: Config, agent: Agent, batch: int, lanes: int) -> Product:
    """Choose the kind of delivery from actors: gradients or buffer entries.

    Args:
        config: settings that `shared_out` returned.
        agent: an agent of that config.
        batch: number of environments of each actor.
        lanes: number of actors plus 1 for the learner.
    """
    return Gradients(agent) if learns_more_than_it_acts(config, batch, lanes) else Entries(agent, batch)


class Delivery(NamedTuple):
    """A delivery from an actor.

    Attributes:
        arrays: arrays by name, with dtypes and shapes by the product's `fields`; valid until released.
        paid: sum of the returns of the actor's episodes that ended since its previous delivery.
        episodes: number of these episodes.
        token: identifies actor and slot to the fleet; opaque to others.
    """

    arrays: Arrays
    paid: float
    episodes: int
    token: Any


class Fleet(Protocol):
    """Actors of one learner, in other processes or machines; `replaced` counts those that ended and were replaced."""

    replaced: int

    def publish(self, parameters: NDArray[np.float32], progress: float) -> None:
        """Send the learner's parameters [P] and progress (0 to 1) to the actors; the first call starts them."""
        ...

    def poll(self) -> Delivery | None:
        """Return a delivery, or None if there is none; does not wait.

        Raises:
            ExecutionError: several actors in a row ended before their first delivery.
        """
        ...

    def release(self, delivery: Delivery) -> None:
        """Free a delivery's arrays for reuse."""
        ...

    def close(self) -> None:
        """End all actors and release their memory; can be called twice."""
        ...


class Rungs(Schedule):
    """Exploration schedule of one actor, ``lane`` of ``lanes``: every ``lanes``-th ε of a schedule for all actors."""

    def __init__(self, ladder: Schedule, lane: int, lanes: int) -> None:
        self.ladder, self.lane, self.lanes = ladder, lane, lanes

    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        """Return ε or temperature of the actor's environments, [batch], at ``progress`` (0 to 1)."""
        return self.ladder.epsilon(progress, batch * self.lanes)[self.lane :: self.lanes]


def set_exploration(agent: Agent, lane: int, lanes: int) -> None:
    """Replace an agent's exploration schedule by the part of worker ``lane`` (from 0) of ``lanes`` workers."""
    agent.schedule = Rungs(agent.schedule, lane, lanes)


class Post(NamedTuple):
    """Position of an actor: index ``lane`` (from 0) among ``lanes`` workers, learner included.

    ``generation`` counts the actor's predecessors at its position; ``seed`` is the training's. Both, with ``lane``,
    determine the actor's random numbers.
    """

    lane: int
    lanes: int
    generation: int
    seed: int


def make_worker(config: Config, simulator: SimulatorSpec, post: Post) -> tuple[Worker, Product]:
    """Make an actor with simulator and agent (on NumPy unless it needs gradients), and its kind of delivery.

    Raises PluginError or ValueError where the simulator cannot be made, BuildError where the config does not fit it.
    """
    worlds, draws = np.random.SeedSequence(post.seed, spawn_key=(post.lane, post.generation)).generate_state(2)
    environment, rng = simulator.with_seed(int(worlds)).make(), np.random.default_rng(int(draws))
    spaces = environment.observation_space, environment.action_space, environment.advice
    agent = make_agent(config, *spaces, rng, get_backend("numpy"))
    product = product_of(config, agent, environment.batch, post.lanes)
    if product.differentiates:
        agent = make_agent(config, *spaces, rng, get_backend(LEARNS))  # on the CPU, as the GPU is the learner's
    set_exploration(agent, post.lane, post.lanes)
    return Worker(agent, Collector(environment), rng), product


class Distributed(Learner):
    """Learner in this process, with actors elsewhere that contribute gradients or buffer entries.

    Args:
        config, plan, seed: settings of the agent, length of the training and its chunks, and seed of random numbers.
        clock: function that returns monotonic seconds.
        simulator: description of the simulators that this process and the actors make, one each.
        actors: number of actors.

    Attributes:
        deliveries: number of the actors' deliveries that were consumed.

    Raises:
        ExecutionError: the algorithm cannot be run with actors.
        UnknownAlgorithm: no installed algorithm has a config of this type.
        PluginError, ValueError: the simulator cannot be made.
        BuildError, ValueError: the config does not fit the simulator's spaces.
        BackendError: the config's device is unavailable.
    """

    name: ClassVar[str]

    def __init__(
        self,
        config: Config,
        simulator: SimulatorSpec,
        plan: Plan,
        seed: int,
        actors: int,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        lanes = actors + 1
        require_actors(config, self.name)
        config = shared_out(config, simulator.batch, lanes)
        super().__init__(config, simulator.make(), plan, seed, clock)
        set_exploration(self.agent, actors, lanes)
        self.product = product_of(config, self.agent, simulator.batch, lanes)
        self.fleet = self._fleet(config, simulator, [Post(lane, lanes, 0, seed) for lane in range(actors)])
        self.deliveries = 0
        self._own = Worker(self.agent, self.collector, self.rng)

    @abstractmethod
    def _fleet(self, config: Config, simulator: SimulatorSpec, posts: list[Post]) -> Fleet:
        """Return the fleet of actors, one for each of ``posts``, not yet started."""

    def _begin(self) -> None:
        self.fleet.publish(self.agent.parameters(self.product.actor_arrays), self.progress)

    def _turn(self, tally: ChunkTotals) -> None:
        progress, delivery = self.progress, self.fleet.poll()
        if delivery is None:
            stats = self.product.contribute(self._own, progress)
        else:
            stats = self.product.consume(self.agent, delivery.arrays, progress, self.rng)
            tally.end(delivery.paid, delivery.episodes)
            self.deliveries += 1
            self.fleet.release(delivery)
        self.steps += self.product.slabs * self.environment.batch
        tally.learn(stats)
        if stats is not None:
            self.fleet.publish(self.agent.parameters(self.product.actor_arrays), self.progress)

    def close(self) -> None:
        """End the actors, and release their memory."""
        self.fleet.close()

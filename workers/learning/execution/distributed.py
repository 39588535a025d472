"""The learner of a distributed training: it takes what actors deliver, and acts itself whenever nothing has come.

The ratio of updates to environment steps is that of a serial training: actors that are ahead wait (their rings are
bounded), and a learner that is ahead does a slab of its own. So no core is idle, whichever side is the slower, and the
first seconds, in which actors start, are used too. Every actor, and the learner's own collector, has its own
exploration rates.
"""

from abc import abstractmethod
from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.learning.agent import Agent, make_agent
from workers.learning.algorithms.config import Config
from workers.learning.backends import LEARNS, get_backend
from workers.learning.components.exploration import Schedule
from workers.learning.execution.base import ChunkTotals, Plan
from workers.learning.execution.products import Arrays, Product, Worker, product_of, require_actors, shared_out
from workers.learning.execution.serial import Collector, Learner
from workers.learning.simulator import SimulatorSpec


class Delivery(NamedTuple):
    """What an actor has delivered.

    Attributes:
        arrays: as the product's `fields`; to be read before it is released.
        paid: sum of the returns of the episodes that ended on the way.
        episodes: how many did.
        token: the fleet's own.
    """

    arrays: Arrays
    paid: float
    episodes: int
    token: Any


class Fleet(Protocol):
    """Actors of one learner, in other processes or machines; one that ends is replaced, and `replaced` counts that."""

    replaced: int

    def publish(self, parameters: NDArray[np.float32], progress: float) -> None:
        """Show the learner's parameters [P] to the actors; the first call starts them."""
        ...

    def poll(self) -> Delivery | None:
        """Return a delivery if there is one, at once; raises ExecutionError where actors can't be kept alive."""
        ...

    def release(self, delivery: Delivery) -> None:
        """Let the delivery's place be used again."""
        ...

    def close(self) -> None:
        """End all actors and take their memory back; may be called twice."""
        ...


class Rungs(Schedule):
    """Every `lanes`-th rung of a ladder over all actors' environments, beginning with the `lane`-th."""

    def __init__(self, ladder: Schedule, lane: int, lanes: int) -> None:
        self.ladder, self.lane, self.lanes = ladder, lane, lanes

    def epsilon(self, progress: float, batch: int) -> NDArray[np.float32]:
        """Return the actor's own rungs [batch]."""
        return self.ladder.epsilon(progress, batch * self.lanes)[self.lane :: self.lanes]


def set_exploration(agent: Agent, lane: int, lanes: int) -> None:
    """Put an agent on its rungs of the exploration ladder."""
    agent.schedule = Rungs(agent.schedule, lane, lanes)


class Post(NamedTuple):
    """An actor's place: which of how many, and how often it was filled before (a replacement has luck of its own)."""

    lane: int
    lanes: int
    generation: int
    seed: int


def make_worker(config: Config, simulator: SimulatorSpec, post: Post) -> tuple[Worker, Product]:
    """Make an actor: simulator, agent, and what it delivers. Who needs no gradients acts on the NumPy backend."""
    worlds, draws = np.random.SeedSequence(post.seed, spawn_key=(post.lane, post.generation)).generate_state(2)
    environment, rng = simulator.seeded(int(worlds)).make(), np.random.default_rng(int(draws))
    spaces = environment.observation_space, environment.action_space, environment.advice
    agent = make_agent(config, *spaces, rng, get_backend("numpy"))
    product = product_of(config, agent, environment.batch, post.lanes)
    if product.differentiates:
        agent = make_agent(config, *spaces, rng, get_backend(LEARNS))  # on the CPU: a learner's device is its own
    set_exploration(agent, post.lane, post.lanes)
    return Worker(agent, Collector(environment), rng), product


class Distributed(Learner):
    """The learner in this process, and a fleet of actors; see `Learner` for the arguments.

    `deliveries` counts what was taken from actors; the rest are the learner's own steps.
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
        """Return actors that have not been started."""

    def _begin(self) -> None:
        self.fleet.publish(self.agent.parameters(self.product.shown), self.progress)

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
            self.fleet.publish(self.agent.parameters(self.product.shown), self.progress)

    def close(self) -> None:
        """End the actors, and release their memory."""
        self.fleet.close()

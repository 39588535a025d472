"""Executor with actors on a Ray cluster; learner and deliveries are those of `processes`.

Ray is an optional extra. If no cluster is connected, the one named by `RAY_ADDRESS` is used, or else a local one is
started, and ended with the training. Each actor has a bounded number of requests in flight, so that it cannot run ahead
of the learner; each request carries the parameters of its time.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.installed import command
from workers.learning.algorithms.config import Config, encode
from workers.learning.algorithms.registry import decode
from workers.learning.execution.base import ExecutionError, Plan
from workers.learning.execution.distributed import Delivery, Distributed, Fleet, Post, make_worker
from workers.learning.execution.processes import MOST_FAILED_STARTS, spare_cores
from workers.learning.simulator import SimulatorSpec

LOCAL = {"num_cpus": None, "include_dashboard": False, "log_to_driver": False, "configure_logging": False}


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise ExecutionError(f"executor 'ray' needs the extra of that name: {command('ray')}") from error


class RemoteActor:
    """Actor on the cluster: acts once per request, with the parameters that the request carries."""

    def __init__(self, config: bytes, simulator: SimulatorSpec, post: Post) -> None:
        self.worker, self.product = make_worker(decode(config), simulator, post)

    def produce(self, shown: NDArray[np.float32], progress: float) -> tuple[dict[str, NDArray[Any]], float, int]:
        """Return one delivery's arrays, and sum of returns and number of the episodes that ended in it.

        ``shown`` are the learner's parameters [P], ``progress`` (0 to 1) sets the exploration.
        """
        self.worker.agent.load(np.array(shown), self.product.actor_arrays)
        out = {name: np.zeros(shape, dtype) for name, (dtype, shape) in self.product.fields().items()}
        self.product.produce(self.worker, progress, out)
        return out, *self.worker.collector.take_counts()


class RayFleet:
    """Actors on a Ray cluster.

    Args:
        config: settings of the agent, as JSON.
        simulator: description of the actors' environment.
        posts: position of each actor.
        slots: number of requests in flight per actor.

    Raises:
        ExecutionError: Ray is not installed.
    """

    def __init__(self, config: bytes, simulator: SimulatorSpec, posts: list[Post], slots: int) -> None:
        self.ray, self.config, self.simulator, self.posts, self.slots = _ray(), config, simulator, posts, slots
        self.replaced, self._stillborn = 0, 0
        self.actors: dict[int, Any] = {}
        self._in_flight: dict[Any, int] = {}  # request → lane
        self._delivered: set[int] = set()
        self._parameters = np.zeros(0, np.float32)
        self._shown: Any = None
        self._progress, self._started, self._owner = 0.0, False, False

    def publish(self, parameters: NDArray[np.float32], progress: float) -> None:
        """Store parameters [P] and progress (0 to 1) for later requests; start the actors at the first call."""
        self._parameters, self._progress, self._shown = parameters, progress, None
        if not self._started:
            self._started = True
            if not self.ray.is_initialized():
                self.ray.init(**LOCAL)
                self._owner = True
            for post in self.posts:
                self._start(post)

    def _start(self, post: Post) -> None:
        remote = self.ray.remote(num_cpus=1, max_restarts=0)(RemoteActor)
        self.posts[post.lane] = post
        self.actors[post.lane] = remote.remote(self.config, self.simulator, post)
        for _ in range(self.slots):
            self._submit(post.lane)

    def _submit(self, lane: int) -> None:
        if self._shown is None:
            self._shown = self.ray.put(self._parameters)
        self._in_flight[self.actors[lane].produce.remote(self._shown, self._progress)] = lane

    def poll(self) -> Delivery | None:
        """Return the result of a completed request, or None; replace ended actors.

        Raises:
            ExecutionError: 4 actors in a row ended before their first delivery (`MOST_FAILED_STARTS`).
        """
        if not self._in_flight:
            return None
        answered, _ = self.ray.wait(list(self._in_flight), num_returns=1, timeout=0)
        if not answered:
            return None
        lane = self._in_flight.pop(answered[0])
        try:
            arrays, paid, episodes = self.ray.get(answered[0])
        except self.ray.exceptions.RayActorError as error:
            self._replace(lane, error)
            return None
        self._delivered.add(lane)
        self._stillborn = 0
        return Delivery(arrays, paid, episodes, self.actors[lane])

    def _replace(self, lane: int, error: Exception) -> None:
        self._stillborn += lane not in self._delivered
        if self._stillborn >= MOST_FAILED_STARTS:
            raise ExecutionError(f"{self._stillborn} actors in a row ended before they delivered anything") from error
        self._in_flight = {request: other for request, other in self._in_flight.items() if other != lane}
        self._delivered.discard(lane)
        post = self.posts[lane]
        self._start(post._replace(generation=post.generation + 1))
        self.replaced += 1

    def release(self, delivery: Delivery) -> None:
        """Send the delivery's actor its next request, unless the actor was replaced."""
        lane = next((lane for lane, actor in self.actors.items() if actor is delivery.token), None)
        if lane is not None:
            self._submit(lane)

    def close(self) -> None:
        """Kill the actors, and shut down a cluster that was started here; can be called twice."""
        for actor in self.actors.values():
            self.ray.kill(actor)
        self.actors, self._in_flight = {}, {}
        if self._owner:
            self._owner = False
            self.ray.shutdown()


class OnRay(Distributed):
    """Executor with the learner in this process and actors on a Ray cluster."""

    name = "ray"
    fleet: RayFleet

    def _fleet(self, config: Config, simulator: SimulatorSpec, posts: list[Post]) -> Fleet:
        return RayFleet(encode(config), simulator, posts, self.product.slots)


def cluster_cores(ray: Any) -> int:
    """Return the number of CPUs of the connected cluster (else of this machine) minus 1 for the learner, at least 1."""
    if not ray.is_initialized():
        return spare_cores()
    resources: Mapping[str, float] = ray.cluster_resources()
    return max(1, int(resources.get("CPU", 1.0)) - 1)


def make(
    config: Config,
    simulator: SimulatorSpec,
    plan: Plan,
    seed: int,
    clock: Callable[[], float] = perf_counter,
    *,
    actors: int | None = None,
) -> OnRay:
    """Make the executor, with ``actors`` actors on the cluster (None: one per CPU, less one for the learner).

    Raises:
        ExecutionError: the algorithm cannot be run with actors, or Ray is not installed.
        BuildError: the config does not fit the simulator's spaces.
    """
    return OnRay(config, simulator, plan, seed, actors or cluster_cores(_ray()), clock)

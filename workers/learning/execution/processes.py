"""Executor with actor processes on one machine, over shared memory."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.processes import child_command, die_with_parent
from workers.learning.algorithms.config import Config, encode
from workers.learning.algorithms.registry import decode
from workers.learning.execution.base import ExecutionError, Plan
from workers.learning.execution.distributed import (
    Delivery,
    Distributed,
    Field,
    Fields,
    Fleet,
    ParameterBuffer,
    Post,
    SharedArrays,
    make_worker,
    nameless,
)
from workers.learning.simulator import SimulatorSpec

# An actor process: ``python -m workers.learning.execution.processes <descriptors>``.
#
# It reads parameters from the parameter buffer, acts, and fills slots of its ring. A byte on one pipe names a free
# slot, a byte on another a filled one; so an idle side sleeps, and a side whose peer has ended reads the end of the
# file, and ends.


class Job(msgspec.Struct, frozen=True):
    """Start-up message of an actor process.

    Attributes:
        parent: id of the learner's process, with which the actor ends.
        config: settings of the agent, as JSON.
        simulator: description of the actor's environment.
        post: position of the actor.
        parameter_count: number of parameters in the parameter buffer, P.
        slots: number of deliveries that the ring, the actor's shared memory, has room for.
    """

    parent: int
    config: bytes
    simulator: SimulatorSpec
    post: Post
    parameter_count: int
    slots: int


def ring_fields(delivered: Fields, slots: int) -> Mapping[str, Field]:
    """Return dtype and shape of the arrays, [slots, …], by name, of a ring: shared memory of ``slots`` deliveries.

    `told` [slots, 2] has the sum of returns, and the number, of the episodes that ended.
    """
    fields = {**delivered, "told": Field("<f8", (2,))}
    return {name: Field(field.dtype, (slots, *field.shape)) for name, field in fields.items()}


def read_job(file: int) -> Job:
    """Read an actor's start-up message from a file descriptor, and close it; msgspec.DecodeError if it is none."""
    with os.fdopen(file, "rb") as opened:
        opened.seek(0)
        return msgspec.msgpack.decode(opened.read(), type=Job)


def act(job: Job, buffer: ParameterBuffer, ring_file: int, free: int, filled: int) -> None:
    """Fill free slots of the ring with deliveries until the learner closes its pipe.

    ``ring_file``, ``free`` and ``filled`` are file descriptors: the ring's memory, and the pipes whose bytes are
    numbers of slots. Raises BrokenPipeError if the learner ends meanwhile, and what `make_worker` raises.
    """
    worker, product = make_worker(decode(job.config), job.simulator, job.post)
    ring = SharedArrays(ring_fields(product.fields(), job.slots), ring_file).arrays
    version = 0
    while slot := os.read(free, 1):
        news = buffer.read(version)
        if news is not None:
            version, shown = news
            worker.agent.load(shown, product.actor_arrays)
        out = {name: array[slot[0]] for name, array in ring.items()}
        product.produce(worker, buffer.progress, out)
        out["told"][:] = worker.collector.take_counts()
        os.write(filled, slot)


def main(descriptors: list[str]) -> None:
    """Run an actor; ``descriptors`` are the files of message, parameter buffer, ring, free slots and filled slots.

    Raises:
        SystemExit: with status 0, if the learner has ended.
    """
    job_file, board_file, ring_file, free, filled = (int(descriptor) for descriptor in descriptors)
    job = read_job(job_file)
    die_with_parent(job.parent)
    try:
        act(job, ParameterBuffer(job.parameter_count, board_file), ring_file, free, filled)
    except BrokenPipeError:
        sys.exit(0)  # the learner has ended


if __name__ == "__main__":
    main(sys.argv[1:])


# The executor over processes: actors deliver through rings in shared memory, without pickling.
#
# Actors are separate processes, not children of `multiprocessing`: a task queue's worker may not have such children,
# and a fresh interpreter inherits no locks and no threads. They are killed with their parent.


MOST_FAILED_STARTS = 4  # actors in a row that end before their first delivery
ROOT = Path(__file__).resolve().parents[3]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Actor:
    """An actor process as the learner holds it: the process, its ring, and the pipes with the numbers of slots.

    The constructor starts the process; it raises OSError if that fails.
    """

    def __init__(self, job: Job, delivered: Fields, buffer: ParameterBuffer) -> None:
        self.post, self.delivered, self.closed = job.post, 0, False
        self.ring = SharedArrays(ring_fields(delivered, job.slots))
        # one thread for each library: actors are as many as there are cores for them
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": os.pathsep.join(paths)}
        job_file, (free_end, self.free), (self.filled, filled_end) = _written(job), os.pipe(), os.pipe()
        os.write(self.free, bytes(range(job.slots)))  # fits into the pipe's buffer, so this does not block
        arguments = (job_file, buffer.shared.file, self.ring.file, free_end, filled_end)
        self.process = subprocess.Popen(
            child_command("workers.learning.execution.processes", *map(str, arguments)),
            pass_fds=arguments,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno() if _is_file(sys.stderr) else subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # an interrupt at the terminal is for the learner, which then ends its actors
        )
        for file in (job_file, free_end, filled_end):
            os.close(file)

    def close(self) -> None:
        """Kill the process, wait for its end, and release ring and pipes; can be called twice."""
        if not self.closed:
            self.closed = True
            self.process.kill()
            self.process.wait()
            os.close(self.free)
            os.close(self.filled)
            self.ring.close()


def _written(job: Job) -> int:
    data = msgspec.msgpack.encode(job)
    file = nameless(len(data))
    os.write(file, data)
    return file


def _is_file(stream: object) -> bool:
    try:
        return stream.fileno() >= 0  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


class ProcessFleet:
    """Actor processes with their rings and the common parameter buffer.

    Args:
        jobs: start-up message of each actor.
        delivered: dtype and shape of each array of one delivery, by name.
    """

    def __init__(self, jobs: list[Job], delivered: Fields) -> None:
        self.jobs, self.delivered = jobs, delivered
        self.replaced, self._stillborn = 0, 0
        self._board: ParameterBuffer | None = None
        self._actors: list[Actor] = []
        self._waiting: deque[tuple[Actor, int]] = deque()
        self._pipes = selectors.DefaultSelector()
        self._end = weakref.finalize(self, _end, self._actors, self._pipes)

    @property
    def pids(self) -> list[int]:
        """Process ids of the actors."""
        return [actor.process.pid for actor in self._actors]

    @property
    def settled(self) -> bool:
        """Whether every actor has delivered at least once."""
        return bool(self._actors) and all(actor.delivered for actor in self._actors)

    def publish(self, parameters: NDArray[np.float32], progress: float) -> None:
        """Write parameters [P] and progress (0 to 1) to the parameter buffer; start the actors at the first call.
        Raises OSError if a process can't be started."""
        if self._board is None:
            self._board = ParameterBuffer(len(parameters))
            self._board.write(parameters, progress)
            for job in self.jobs:
                self._start(job)
        else:
            self._board.write(parameters, progress)

    def _start(self, job: Job) -> None:
        assert self._board is not None  # noqa: S101  (narrows the type)
        actor = Actor(job, self.delivered, self._board)
        self._actors.append(actor)
        self._pipes.register(actor.filled, selectors.EVENT_READ, actor)

    def poll(self) -> Delivery | None:
        """Return the next delivery, or None; replace ended actors.

        Raises:
            ExecutionError: 4 actors in a row ended before their first delivery (`MOST_FAILED_STARTS`).
        """
        if not self._waiting:
            for key, _ in self._pipes.select(timeout=0):
                actor: Actor = key.data
                slots = os.read(actor.filled, 64)
                if slots:
                    actor.delivered += len(slots)
                    self._stillborn = 0
                    self._waiting.extend((actor, slot) for slot in slots)
                else:
                    self._replace(actor)
        if not self._waiting:
            return None
        actor, slot = self._waiting.popleft()
        arrays = {name: array[slot] for name, array in actor.ring.arrays.items()}
        paid, episodes = arrays.pop("told")
        return Delivery(arrays, float(paid), int(episodes), (actor, slot))

    def _replace(self, actor: Actor) -> None:
        self._stillborn += actor.delivered == 0
        self._pipes.unregister(actor.filled)
        self._actors.remove(actor)
        actor.close()
        if self._stillborn >= MOST_FAILED_STARTS:
            status = actor.process.returncode
            raise ExecutionError(f"{self._stillborn} actors in a row ended before they delivered anything: {status}")
        post = actor.post._replace(generation=actor.post.generation + 1)
        self._start(msgspec.structs.replace(self.jobs[post.lane], post=post))
        self.replaced += 1

    def release(self, delivery: Delivery) -> None:
        """Return the delivery's slot to its actor, if that still runs."""
        actor, slot = delivery.token
        if not actor.closed:
            try:
                os.write(actor.free, bytes([slot]))
            except BrokenPipeError:
                return  # it has just ended; the next `poll` replaces it

    def close(self) -> None:
        """Kill the actors, and release the shared memory; can be called twice."""
        self._waiting.clear()
        self._end()
        if self._board is not None and self._board.shared.file >= 0:
            self._board.close()


def _end(actors: list[Actor], pipes: selectors.BaseSelector) -> None:
    for actor in actors:
        actor.process.kill()
    for actor in actors:
        actor.close()
    actors.clear()
    pipes.close()


class Processes(Distributed):
    """Executor with the learner in this process and actors in others on the same machine."""

    name = "processes"
    fleet: ProcessFleet

    def _fleet(self, config: Config, simulator: SimulatorSpec, posts: list[Post]) -> Fleet:
        config_bytes, shown = encode(config), len(self.agent.parameters(self.product.actor_arrays))
        jobs = [Job(os.getpid(), config_bytes, simulator, post, shown, self.product.slots) for post in posts]
        return ProcessFleet(jobs, self.product.fields())


def spare_cores() -> int:
    """Return the number of processor cores available to this process minus 1 for the learner, at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


def make(
    config: Config,
    simulator: SimulatorSpec,
    plan: Plan,
    seed: int,
    clock: Callable[[], float] = perf_counter,
    *,
    actors: int | None = None,
) -> Processes:
    """Make the executor, with ``actors`` processes (None: one per spare core).

    Raises:
        ExecutionError: the algorithm cannot be run with actors.
        BuildError: the config does not fit the simulator's spaces.
    """
    return Processes(config, simulator, plan, seed, actors or spare_cores(), clock)

"""An actor process: ``python -m workers.learning.execution.actor <descriptors>``, started by `processes`.

It takes the learner's parameters from the board, acts, and fills slots of its ring with what the learner asks for. A
byte on a pipe says which slot is free, a byte on another which is filled; so who has nothing to do sleeps, and who has
lost the other side reads the end of the file, and ends.
"""

import os
import sys
from collections.abc import Mapping

import msgspec

from app.processes import die_with_parent
from workers.learning.algorithms.registry import decode
from workers.learning.described_simulator import SimulatorSpec
from workers.learning.execution.distributed import Post, make_worker
from workers.learning.execution.memory import Field, Fields, ParameterBuffer, SharedArrays


class Job(msgspec.Struct, frozen=True):
    """What an actor is told; `shown` is how many numbers the board shows, `slots` how many the ring has."""

    parent: int
    config: bytes
    simulator: SimulatorSpec
    post: Post
    shown: int
    slots: int


def ring_fields(delivered: Fields, slots: int) -> Mapping[str, Field]:
    """Return the arrays of a ring, [slots, …] each; `told` is the returns' sum, and the number, of ended episodes."""
    fields = {**delivered, "told": Field("<f8", (2,))}
    return {name: Field(field.dtype, (slots, *field.shape)) for name, field in fields.items()}


def read_job(file: int) -> Job:
    """Read what the learner wrote to the file, and close it."""
    with os.fdopen(file, "rb") as opened:
        opened.seek(0)
        return msgspec.msgpack.decode(opened.read(), type=Job)


def act(job: Job, buffer: ParameterBuffer, ring_file: int, free: int, filled: int) -> None:
    """Fill slots until the learner is gone."""
    worker, product = make_worker(decode(job.config), job.simulator, job.post)
    ring = SharedArrays(ring_fields(product.fields(), job.slots), ring_file).arrays
    version = 0
    while slot := os.read(free, 1):
        news = buffer.read(version)
        if news is not None:
            version, shown = news
            worker.agent.load(shown, product.shown)
        out = {name: array[slot[0]] for name, array in ring.items()}
        product.produce(worker, buffer.progress, out)
        out["told"][:] = worker.collector.take_counts()
        os.write(filled, slot)


def main(descriptors: list[str]) -> None:
    """Take the job, and do it."""
    job_file, board_file, ring_file, free, filled = (int(descriptor) for descriptor in descriptors)
    job = read_job(job_file)
    die_with_parent(job.parent)
    try:
        act(job, ParameterBuffer(job.shown, board_file), ring_file, free, filled)
    except BrokenPipeError:
        sys.exit(0)  # the learner has ended


if __name__ == "__main__":
    main(sys.argv[1:])

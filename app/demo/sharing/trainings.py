"""The demo's trainings: a process each, with a CPU limit, which run asynchronously."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from app.demo.cpu_limit import CpuLimit, limited
from app.demo.processes import Child, Listener
from app.demo.sharing.workload import FETCH_SECONDS, JOBS, PERCENT, SIZES

CALIBRATION_BATCHES = 8
PROFILED_SLICES = (1, 2, 4, 8)
PROFILED_ITERATIONS = 3


class Iteration(NamedTuple):
    """A completed iteration: number of its training, seconds, and accuracy (share) after it."""

    training: int
    seconds: float
    accuracy: float


class Trainings:
    """Trainings by number; each runs one iteration at a time. Methods raise ChildError if a process has ended."""

    def __init__(self, children: Sequence[Child], limits: Sequence[CpuLimit]) -> None:
        self.children, self.limits = children, limits
        self.limit = limits[0].name
        self.batches: dict[str, int] = {}
        self._listener = Listener(children)

    def load(self) -> None:
        """Wait until all processes have started, and add them to their limits."""
        for child, limit in zip(self.children, self.limits, strict=True):
            child.read()
            limit.add(child.process.pid)

    def calibrate(self) -> None:
        """Choose the batches of an iteration by network so that it takes the network's CPU seconds."""
        for name, size in SIZES.items():
            self.batches[name] = CALIBRATION_BATCHES
            self.begin(0, name, seed=0)
            self.children[0].call()
            used = min(self.children[0].call()["cpu_seconds"] for _ in range(3))
            self.batches[name] = max(1, round(CALIBRATION_BATCHES * size.seconds / used))

    def profile(self, size: str) -> Iterator[tuple[int, float]]:
        """Measure iterations of a network on several numbers of slices; yields slices and seconds."""
        self.begin(0, size, seed=0)
        self.children[0].call()
        for slices in PROFILED_SLICES:
            self.give(0, slices)
            for _ in range(PROFILED_ITERATIONS):
                yield slices, self.children[0].call()["seconds"]

    def begin(self, training: int, size: str, seed: int) -> None:
        """Start a new training of a network with a seed, and wait until it is ready."""
        self.limits[training].set(100)
        how = {"batches": self.batches[size], "fetch_seconds": FETCH_SECONDS, "seed": seed, "width": SIZES[size].width}
        self.children[training].call(start=how)

    def give(self, training: int, slices: int) -> None:
        """Limit a training to this number of slices; 0 stops it."""
        self.limits[training].set(slices * PERCENT)

    def start(self, training: int) -> None:
        """Start an iteration; ``wait`` returns its result."""
        self.children[training].send()

    def wait(self, until: float) -> list[Iteration]:
        """Completed iterations as soon as there is one; empty if there is none by ``until`` (``time.monotonic``)."""
        return [Iteration(number, said["seconds"], said["accuracy"]) for number, said in self._listener.wait(until)]

    def close(self) -> None:
        """Stop listening to the trainings."""
        self._listener.close()


@contextmanager
def trainings() -> Iterator[Trainings]:
    """Context manager: start the training processes with CPU limits; end both at its exit."""
    with ExitStack() as stack:
        limits = [stack.enter_context(limited()) for _ in JOBS]
        children = [stack.enter_context(Child("app.demo.training")) for _ in JOBS]
        several = Trainings(children, limits)
        stack.callback(several.close)
        yield several

"""The demo's trainings: a process each, under a CPU limit of its own, which goes on while the client does."""

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
    """An iteration that is done: whose it is, by number, its seconds, and the accuracy after it."""

    training: int
    seconds: float
    accuracy: float


class Trainings:
    """Trainings by number; each does one iteration at a time."""

    def __init__(self, children: Sequence[Child], limits: Sequence[CpuLimit]) -> None:
        self.children, self.limits = children, limits
        self.limit = limits[0].name
        self.batches: dict[str, int] = {}
        self._listener = Listener(children)

    def load(self) -> None:
        """Wait until the processes have loaded what they need, and put them under their limits."""
        for child, limit in zip(self.children, self.limits, strict=True):
            child.read()
            limit.add(child.process.pid)

    def calibrate(self) -> None:
        """Choose the batches of an iteration such that it takes each size the CPU that it is meant to."""
        for name, size in SIZES.items():
            self.batches[name] = CALIBRATION_BATCHES
            self.begin(0, name, seed=0)
            self.children[0].call()
            used = min(self.children[0].call()["cpu_seconds"] for _ in range(3))
            self.batches[name] = max(1, round(CALIBRATION_BATCHES * size.seconds / used))

    def profile(self, size: str) -> Iterator[tuple[int, float]]:
        """Slices, and seconds of an iteration on them, several times each."""
        self.begin(0, size, seed=0)
        self.children[0].call()
        for slices in PROFILED_SLICES:
            self.give(0, slices)
            for _ in range(PROFILED_ITERATIONS):
                yield slices, self.children[0].call()["seconds"]

    def begin(self, training: int, size: str, seed: int) -> None:
        """Begin a training from nothing, and wait until it could start."""
        self.limits[training].set(100)
        how = {"batches": self.batches[size], "fetch_seconds": FETCH_SECONDS, "seed": seed, "width": SIZES[size].width}
        self.children[training].call(start=how)

    def give(self, training: int, slices: int) -> None:
        """Let a training have this much of the CPU; without any it stops where it is."""
        self.limits[training].set(slices * PERCENT)

    def start(self, training: int) -> None:
        """Have a training do an iteration; ``wait`` tells when it is done."""
        self.children[training].send()

    def wait(self, until: float) -> list[Iteration]:
        """Iterations that are done, as soon as there is one; none when ``until``, of ``time.monotonic``, has come."""
        return [Iteration(number, said["seconds"], said["accuracy"]) for number, said in self._listener.wait(until)]

    def close(self) -> None:
        """Close the socket, and listen no more."""
        self._listener.close()


@contextmanager
def trainings() -> Iterator[Trainings]:
    """The processes, started but not waited for; ended, and the limits lifted, whatever happens."""
    with ExitStack() as stack:
        limits = [stack.enter_context(limited()) for _ in JOBS]
        children = [stack.enter_context(Child("app.demo.training")) for _ in JOBS]
        several = Trainings(children, limits)
        stack.callback(several.close)
        yield several

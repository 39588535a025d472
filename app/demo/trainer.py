"""The training in its child process and the limit that it runs under, driven iteration by iteration."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.demo.cpu_limit import CpuLimit, limited
from app.demo.plan import FETCH_SECONDS, REFERENCE_SECONDS, Measured
from app.demo.processes import Child

CALIBRATION_BATCHES = 10


class Trainer:
    """The training process and a neighbour, under one limit."""

    def __init__(self, child: Child, neighbour: Child, limit: CpuLimit) -> None:
        self.limit = limit
        self._child, self._neighbour = child, neighbour
        self._batches = CALIBRATION_BATCHES

    def load(self) -> None:
        """Wait until the processes have loaded what they need, and put them under the limit."""
        for child in (self._child, self._neighbour):
            child.read()
            self.limit.add(child.process.pid)

    def calibrate(self, percent: float) -> int:
        """Choose the number of batches such that an iteration takes ``REFERENCE_SECONDS`` at ``percent``."""
        self.begin(seed=0)
        self.iteration(percent)
        seconds = min(self.iteration(percent).seconds for _ in range(3))
        wanted, had = REFERENCE_SECONDS - FETCH_SECONDS, seconds - FETCH_SECONDS
        self._batches = max(1, round(CALIBRATION_BATCHES * wanted / had))
        return self._batches

    def begin(self, seed: int) -> None:
        """Begin a training from nothing."""
        self.limit.set(100)
        self._child.call(start={"batches": self._batches, "fetch_seconds": FETCH_SECONDS, "seed": seed})

    def iteration(self, percent: float) -> Measured:
        """Train for one iteration with ``percent`` of one core."""
        self.limit.set(percent)
        measured = self._child.call()
        return Measured(percent=percent, **measured)

    def disturb(self, *, on: bool) -> None:
        """Have the neighbour take CPU under the same limit, or none."""
        self._neighbour.call(spin=on)


@contextmanager
def trainer() -> Iterator[Trainer]:
    """The processes, started but not waited for; ended, and the limit lifted, whatever happens."""
    with limited() as limit, Child("app.demo.training") as child, Child("app.demo.disturbance") as neighbour:
        yield Trainer(child, neighbour, limit)

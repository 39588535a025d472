"""The demo's training: in a child process under a CPU limit, or simulated."""

import math
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from app.demo.cpu_limit import CpuLimit, limited
from app.demo.plan import (
    FETCH_SECONDS,
    REFERENCE,
    SAVE_EVERY,
    SAVE_SECONDS,
    WORK_SECONDS,
    Measured,
    phase_of,
)
from app.demo.processes import Child

CALIBRATION_BATCHES = 10
TOLERANCE = 1.5  # times the CPU that the limit allows: a training that uses more isn't limited


class Trainer(Protocol):
    """A training that runs iteration by iteration, and can be restarted.

    Attributes:
        how: how its CPU is limited, in words.
        simulated: whether its time is simulated.
    """

    how: str
    simulated: bool

    def begin(self, seed: int) -> None:
        """Start a new training with a seed."""
        ...

    def iteration(self, percent: float) -> Measured:
        """Run one iteration with ``percent`` of one core."""
        ...

    def disturb(self, *, on: bool) -> None:
        """Switch the neighbour, which uses CPU under the same limit, on or off."""
        ...


class UnlimitedError(RuntimeError):
    """CPU limits have no effect on this host."""


class RealTrainer:
    """A training process and its neighbour, under one CPU limit."""

    simulated = False

    def __init__(self, child: Child, neighbour: Child, limit: CpuLimit) -> None:
        self.how = f"CPU limited by {limit.name}"
        self._limit, self._child, self._neighbour = limit, child, neighbour
        self._batches, self._disturbed = CALIBRATION_BATCHES, False

    def load(self) -> None:
        """Wait for the processes, limit them, and choose the batches of an iteration.

        Raises:
            UnlimitedError: the limit has no effect.
        """
        for child in (self._child, self._neighbour):
            child.read()
            self._limit.add(child.process.pid)
        self.begin(seed=0)
        self.iteration(REFERENCE)
        tried = [self.iteration(REFERENCE) for _ in range(2)]
        if min(row.cpu_seconds / row.seconds for row in tried) > TOLERANCE * REFERENCE / 100:
            raise UnlimitedError
        used = min(row.cpu_seconds for row in tried)
        self._batches = max(1, round(CALIBRATION_BATCHES * WORK_SECONDS / used))

    def begin(self, seed: int) -> None:
        """Start a new training with a seed."""
        self._limit.set(100)
        waits = {"fetch_seconds": FETCH_SECONDS, "save_every": SAVE_EVERY, "save_seconds": SAVE_SECONDS}
        self._child.call(start={"batches": self._batches, "seed": seed, **waits})

    def iteration(self, percent: float) -> Measured:
        """Run one iteration with ``percent`` of one core."""
        self._limit.set(percent)
        return Measured(percent=percent, disturbed=self._disturbed, **self._child.call())

    def disturb(self, *, on: bool) -> None:
        """Switch the neighbour on or off."""
        self._neighbour.call(spin=on)
        self._disturbed = on


class SimulatedTrainer:
    """The same training in simulated time, with noise of 4 % of the seconds."""

    simulated = True
    how = "SIMULATED TIME: nothing is trained, and no CPU is limited"
    noise = 0.04
    share = 0.5  # of the CPU that the neighbour leaves

    def __init__(self) -> None:
        self._random, self._number, self._disturbed = random.Random(0), 0, False  # noqa: S311 - a simulation

    def begin(self, seed: int) -> None:
        """Start a new training with a seed."""
        self._random, self._number = random.Random(seed), 0  # noqa: S311 - a simulation

    def iteration(self, percent: float) -> Measured:
        """Simulated measurements of one iteration with ``percent`` of one core."""
        number, saves = self._number, phase_of(self._number) == "save"
        self._number += 1
        wait, work = (SAVE_SECONDS, WORK_SECONDS / 20) if saves else (FETCH_SECONDS, WORK_SECONDS)
        slower = 1 / self.share if self._disturbed else 1.0
        seconds = (wait + slower * work * 100 / percent) * math.exp(self._random.gauss(0, self.noise))
        progress = 1 - math.exp(-number / 8)
        return Measured(number, percent, seconds, work, 2.3 - 2 * progress, 0.1 + 0.85 * progress, self._disturbed)

    def disturb(self, *, on: bool) -> None:
        """Switch the neighbour on or off."""
        self._disturbed = on


@contextmanager
def trainer(*, simulated: bool) -> Iterator[Trainer]:
    """Context manager: a ready trainer, simulated if requested or if CPU limits don't work here.

    Its processes and its limit end with it.
    """
    if simulated or sys.platform != "linux":
        yield SimulatedTrainer()
        return
    with limited() as limit, Child("app.demo.training") as child, Child("app.demo.disturbance") as neighbour:
        real = RealTrainer(child, neighbour, limit)
        try:
            real.load()
        except UnlimitedError:
            yield SimulatedTrainer()
            return
        yield real

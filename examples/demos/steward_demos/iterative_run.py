"""The training of ``steward demo``, real or simulated, and its runs under Steward or at a constant allocation.

A training alternates between two phases. Most iterations *train*: their speed scales with the CPU. Every fourth
*saves*: it waits for a remote store, and more CPU doesn't make it faster. So additional CPU has diminishing returns,
and none while waiting. From the second third on, a neighbour computes in one thread under the same CPU limit and takes
about half of it.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from steward_demos.processes import Child, CpuLimit, limited
from steward_demos.service import Json, Steward

WORKLOAD = "digits"
SAVE_EVERY = 4
WORK_SECONDS = 0.13  # CPU time of a training iteration; its number of batches is chosen for that
FETCH_SECONDS = 0.03  # of a training iteration go by until its data are there, whatever CPU there is
SAVE_SECONDS = 0.9  # that the store takes for a checkpoint
MINIMUM, MAXIMUM, STEP = 10, 90, 10
"""Allocations in percent of a core: less than one core, which every machine has."""
GRID = range(MINIMUM, MAXIMUM + 1, STEP)
PROFILED = (20, 30, 60, 90)
REFERENCE = 30
DEADLINE_SLACK = 1.12  # the deadline over what the reference takes without the neighbour
SAFETY = 1.1  # what a careful engineer leaves under the deadline
PRICE_PER_CPU_SECOND = 0.01


@dataclass(frozen=True)
class Measured:
    """Measurements of one iteration: allocation in percent of a core, wall-clock and CPU time in seconds, loss,
    accuracy.
    """

    iteration: int
    percent: float
    seconds: float
    cpu_seconds: float
    loss: float
    accuracy: float
    disturbed: bool = False

    @property
    def phase(self) -> str:
        """Phase of the iteration: “train” or “save”."""
        return phase_of(self.iteration)

    @property
    def reserved(self) -> float:
        """CPU-seconds reserved: allocation × duration."""
        return self.percent / 100 * self.seconds


def phase_of(iteration: int) -> str:
    """Phase of an iteration: “train” or “save”."""
    return "save" if iteration % SAVE_EVERY == SAVE_EVERY - 1 else "train"


def disturbed_iterations(iterations: int) -> range:
    """Iterations during which the neighbour computes: all after the first third."""
    return range(iterations // 3, iterations)


def spec(iterations: int) -> dict[str, Any]:
    """The workload's spec for registration, without a deadline, which follows from the profile.

    Every allocation can be reached in one step. The neighbour is declared as a shift of pace with probability 0.9.
    """
    cpu = {
        "name": "cpu",
        "unit": "percent",
        "minimum": MINIMUM,
        "maximum": MAXIMUM,
        "step": STEP,
        "max_steps": len(GRID) - 1,
        "initial": REFERENCE,
        "price_per_hour": PRICE_PER_CPU_SECOND * 3600 / 100,
    }
    return {
        "name": WORKLOAD,
        "resources": [cpu],
        "metrics": [{"name": "iteration_seconds", "unit": "s", "goal": "at_most", "scope": "run"}],
        "iterations": iterations,
        "weights": {"sla": 100.0, "cost": 1.0, "change": 0.0},
        "disturbances": {"pace_shift": {"probability": 0.9, "factor": [1.1, 1.6]}},
    }


class Profile:
    """Duration of an iteration in seconds, ``wait + work / allocation`` by phase, fitted to measurements.

    Phases with and without the neighbour are fitted apart, by non-negative least squares on the relative error.
    """

    def __init__(self, rows: Iterable[Measured]) -> None:
        by_phase: dict[tuple[str, bool], list[Measured]] = {}
        for row in rows:
            by_phase.setdefault((row.phase, row.disturbed), []).append(row)
        self.phases = {phase: _wait_and_work(rows) for phase, rows in by_phase.items()}

    def seconds(self, percent: float, iterations: int, disturbed: range = range(0)) -> float:
        """Predicted seconds of a run at an allocation in percent of a core; raises KeyError for phases without
        measurements.
        """
        results = [self.phases[phase_of(number), number in disturbed] for number in range(iterations)]
        return sum(wait + work / (percent / 100) for wait, work in results)


def _wait_and_work(rows: Sequence[Measured]) -> tuple[float, float]:
    seconds = np.array([row.seconds for row in rows])
    terms = np.array([[1.0, 100 / row.percent] for row in rows]) / seconds[:, None]  # each iteration counts alike
    (wait, work), *_ = np.linalg.lstsq(terms, np.ones(len(rows)), rcond=None)
    if wait < 0 or work < 0:  # of two terms, the non-negative optimum then has one alone
        alone = [(term.sum() / (term**2).sum(), index) for index, term in enumerate(terms.T)]
        left = [((1 - value * terms[:, index]) ** 2).sum() for value, index in alone]
        value, index = alone[int(np.argmin(left))]
        wait, work = (value, 0.0) if index == 0 else (0.0, value)
    return float(wait), float(work)


def deadline_seconds(profile: Profile, iterations: int) -> float:
    """Deadline of a run in seconds: 1.12 times the predicted duration at the reference allocation without the
    neighbour.
    """
    return math.ceil(10 * DEADLINE_SLACK * profile.seconds(REFERENCE, iterations)) / 10


def careful_static(profile: Profile, iterations: int, deadline: float) -> int:
    """Smallest allocation (percent) whose undisturbed prediction leaves a tenth of slack, as an engineer would choose;
    else 90.
    """
    return _smallest(lambda percent: SAFETY * profile.seconds(percent, iterations) <= deadline)


def best_static(profile: Profile, iterations: int, deadline: float) -> int:
    """Smallest allocation (percent) that meets the deadline by the profile with the neighbour; else the largest, 90."""
    disturbed = disturbed_iterations(iterations)
    return _smallest(lambda percent: profile.seconds(percent, iterations, disturbed) <= deadline)


def _smallest(fits: Callable[[int], bool]) -> int:
    return next((percent for percent in GRID if fits(percent)), MAXIMUM)


class Saved(NamedTuple):
    """Relative saving of a run against another: share of the other's cost, with a 95 % confidence interval."""

    share: float
    low: float
    high: float


def saved(run: Sequence[Measured], other: Sequence[Measured]) -> Saved:
    """Relative saving in CPU-seconds of ``run`` against ``other``, paired by iteration.

    The interval is that of a ratio estimator over pairs of iterations, stratified by phase and neighbour (Cochran 1977,
    6.11). It covers the noise of single iterations, not differences between days or machines.
    """
    own, others = (np.array([row.reserved for row in rows]) for rows in (run, other))
    ratio = own.sum() / others.sum()
    strata = np.unique([f"{row.phase} {row.disturbed}" for row in run], return_inverse=True)[1]
    left = own - ratio * others
    groups = [left[strata == stratum] for stratum in range(strata.max() + 1)]
    variance = sum(len(group) * group.var(ddof=1) for group in groups if len(group) > 1)
    freedom = max(len(own) - len(groups), 1)
    z = 1.96
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)  # Abramowitz, Stegun 26.7.5
    reach = t * math.sqrt(variance) / others.sum()
    return Saved(float(1 - ratio), float(1 - ratio - reach), float(1 - ratio + reach))


@dataclass(frozen=True)
class Advice:
    """CPU in percent of a core for the next iteration, with reason; predicted seconds with 90 % interval or None."""

    percent: float
    reason: str
    source: str = ""
    mean: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """One iteration: the decision before it, measurements, seconds since the run's start, and the decision after it."""

    advice: Advice
    measured: Measured
    elapsed: float
    decided: Advice

    @property
    def within(self) -> bool | None:
        """Whether the iteration's seconds are within the predicted 90 % interval; None without a prediction."""
        if self.advice.low is None or self.advice.high is None:
            return None
        return self.advice.low <= self.measured.seconds <= self.advice.high


class Controller(Protocol):
    """Decides the allocation of each iteration of a run."""

    def first(self) -> Advice:
        """The decision for the first iteration."""
        ...

    def next(self, measured: Measured) -> Advice:
        """The decision for the iteration after the measured one."""
        ...


class Static:
    """A constant allocation for the whole run."""

    def __init__(self, percent: float) -> None:
        self.advice = Advice(percent, "never changes")

    def first(self) -> Advice:
        """The constant allocation, for the first iteration."""
        return self.advice

    def next(self, measured: Measured) -> Advice:  # noqa: ARG002 - it does not look
        """The constant allocation, whatever was measured."""
        return self.advice


class Managed:
    """A live run under Steward's decisions; ``on_start`` is called with the first one."""

    def __init__(self, steward: Steward, workload: str, on_start: Callable[[Advice], None]) -> None:
        self._steward, self._workload, self._on_start = steward, workload, on_start
        self._run = ""

    def first(self) -> Advice:
        """Start the run and return its first decision."""
        started = self._steward.start(self._workload)
        self._run = started["id"]
        opening = advice(started["decision"])
        self._on_start(opening)
        return opening

    def next(self, measured: Measured) -> Advice:
        """Report the iteration and return the next decision."""
        report = {"allocation": {"cpu": measured.percent}, "metrics": {"iteration_seconds": measured.seconds}}
        return advice(self._steward.report(self._run, measured.iteration, report))

    def finish(self) -> None:
        """Finish the run; its iterations become a sample."""
        self._steward.finish(self._run)


class Profiled(Managed):
    """A run that reports to Steward but keeps a constant allocation, to produce a sample.

    It waits for Steward's answers like a live run, so that its timings are comparable.
    """

    def __init__(self, steward: Steward, workload: str, percent: float) -> None:
        super().__init__(steward, workload, on_start=lambda _: None)
        self._percent = percent

    def first(self) -> Advice:
        """Start the run; the constant allocation."""
        return replace(super().first(), percent=self._percent)

    def next(self, measured: Measured) -> Advice:
        """Report the iteration; the constant allocation."""
        return replace(super().next(measured), percent=self._percent)


def advice(decision: Json) -> Advice:
    """An ``Advice`` from a decision's JSON."""
    seconds = decision["predicted"].get("iteration_seconds", {})
    return Advice(
        percent=decision["allocation"]["cpu"],
        reason=decision["reason"]["text"],
        source=decision["source"],
        mean=seconds.get("mean"),
        low=seconds.get("low"),
        high=seconds.get("high"),
    )


@dataclass(frozen=True)
class RunPlan:
    """Length of a run in iterations, its deadline in seconds, and the iterations disturbed by the neighbour."""

    iterations: int
    deadline: float
    disturbed: range


@dataclass(frozen=True)
class Run:
    """A completed run.

    Attributes:
        name: “steward”, “careful”, “largest” or “best_static”, or “profile-<percent>”.
        label: name to display.
        rows: its iterations.
        deadline: in seconds.
    """

    name: str
    label: str
    rows: tuple[Row, ...]
    deadline: float

    @property
    def measured(self) -> list[Measured]:
        """Measurements of its iterations."""
        return [row.measured for row in self.rows]

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the run: the sum over its iterations."""
        return self.rows[-1].elapsed

    @property
    def met(self) -> bool:
        """Whether the deadline was met."""
        return self.seconds <= self.deadline

    @property
    def reserved(self) -> float:
        """CPU-seconds reserved: the sum of allocation × duration."""
        return sum(row.measured.reserved for row in self.rows)

    @property
    def cost(self) -> float:
        """Cost of the reserved CPU-seconds."""
        return self.reserved * PRICE_PER_CPU_SECOND

    @property
    def used(self) -> float:
        """CPU-seconds that the training used."""
        return sum(row.measured.cpu_seconds for row in self.rows)


def drive(
    name: str, label: str, controller: Controller, trainer: Trainer, run_plan: RunPlan, on_row: Callable[[Row], None]
) -> Run:
    """Run the training to its end under a controller; ``on_row`` is called after each iteration."""
    trainer.begin(seed=1)
    rows: list[Row] = []
    decision, elapsed = controller.first(), 0.0
    try:
        for number in range(run_plan.iterations):
            if number == run_plan.disturbed.start and run_plan.disturbed:
                trainer.disturb(on=True)
            measured = trainer.iteration(decision.percent)
            elapsed += measured.seconds
            decided = controller.next(measured)
            rows.append(Row(decision, measured, elapsed, decided))
            on_row(rows[-1])
            decision = decided
    finally:
        trainer.disturb(on=False)
    return Run(name, label, tuple(rows), run_plan.deadline)


def profile(steward: Steward, trainer: Trainer, allocations: Sequence[int], iterations: int) -> Iterator[Run]:
    """Run the training once per allocation (percent of a core) without the neighbour; each run becomes a sample."""
    undisturbed = RunPlan(iterations, float("inf"), range(0))
    for percent in allocations:
        controller = Profiled(steward, WORKLOAD, percent)
        name = f"profile-{percent}"
        run = drive(name, name, controller, trainer, undisturbed, lambda _: None)
        controller.finish()
        yield run


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
    with (
        limited() as limit,
        Child("steward_demos.training") as child,
        Child("steward_demos.training", ["neighbour"]) as neighbour,
    ):
        real = RealTrainer(child, neighbour, limit)
        try:
            real.load()
        except UnlimitedError:
            yield SimulatedTrainer()
            return
        yield real

"""Parameters of the demo: the training, its neighbour, the deadline, and the static allocations for comparison.

A training alternates between two phases. Most iterations *train*: their speed scales with the CPU. Every fourth
*saves*: it waits for a remote store, and more CPU doesn't make it faster. So additional CPU has diminishing returns,
and none while waiting. From the second third on, a neighbour computes in one thread under the same CPU limit and takes
about half of it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

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
        self.phases = {phase: _wait_and_work(found) for phase, found in by_phase.items()}

    def seconds(self, percent: float, iterations: int, disturbed: range = range(0)) -> float:
        """Predicted seconds of a run at an allocation in percent of a core; raises KeyError for phases without
        measurements.
        """
        found = [self.phases[phase_of(number), number in disturbed] for number in range(iterations)]
        return sum(wait + work / (percent / 100) for wait, work in found)


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

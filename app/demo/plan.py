"""What the demo allocates, and the figures that are derived from the profile: workload, deadline, static choices."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

WORKLOAD = "digits"
ROUNDS = 3  # runs at each allocation, by which they are seen to differ
PROFILED_ITERATIONS = 4  # of each: the first, and how those after it differ
REFERENCE_SECONDS = 0.6  # of one iteration at the reference: what an iteration's batches are chosen for
FETCH_SECONDS = 0.2  # of each iteration go by until its data are there, whatever CPU there is
DEADLINE_SLACK = 1.2  # the deadline leaves this much over the time that the reference needs undisturbed
SAFETY = 1.1  # a careful person's margin under the deadline
PRICE_PER_CORE_HOUR = 3600.0  # a CPU-second costs 1: an amount that can be read


@dataclass(frozen=True)
class Measured:
    """One iteration as it was: allocation in percent of a core, wall clock and CPU time in seconds."""

    iteration: int
    percent: float
    seconds: float
    cpu_seconds: float
    loss: float
    accuracy: float


@dataclass(frozen=True)
class Execution:
    """A short training under one allocation."""

    name: str
    rows: tuple[Measured, ...]


@dataclass(frozen=True)
class Grid:
    """The allocations that may be chosen, in percent of one core.

    Attributes:
        minimum, maximum, step: of what may be chosen.
        profiled: at which the training is profiled.
        reference: that the deadline is derived from.
    """

    minimum: int
    maximum: int
    step: int
    profiled: tuple[int, ...]
    reference: int


GRID = Grid(minimum=20, maximum=80, step=10, profiled=(20, 30, 50, 80), reference=30)
"""Less than a core, which every machine has to give, busy or not: what is limited is what is had."""


def spec(allocations: Grid, iterations: int) -> dict[str, Any]:
    """The workload as it is registered; its deadline is set once it is known what an iteration takes."""
    cpu = {
        "name": "cpu",
        "unit": "percent",
        "minimum": allocations.minimum,
        "maximum": allocations.maximum,
        "step": allocations.step,
        "max_steps": 2,
        "initial": allocations.reference,
        "price_per_hour": PRICE_PER_CORE_HOUR / 100,
    }
    deadline = {"name": "iteration_seconds", "unit": "s", "goal": "at_most", "scope": "run"}
    return {
        "name": WORKLOAD,
        "resources": [cpu],
        "metrics": [deadline],
        "iterations": iterations,
        "weights": {"sla": 20.0, "cost": 0.1, "change": 0.002},
    }


def seconds_by_percent(executions: Sequence[Execution]) -> dict[float, float]:
    """Mean seconds of an iteration in the quickest run at each allocation, smallest allocation first.

    The quickest: what else the machine does may slow a run, and none is faster than its allocation allows.
    """
    found: dict[float, float] = {}
    for execution in sorted(executions, key=lambda execution: execution.rows[0].percent):
        percent = execution.rows[0].percent
        seconds = mean(row.seconds for row in execution.rows)
        found[percent] = min(seconds, found.get(percent, seconds))
    return found


def deadline_seconds(executions: Sequence[Execution], iterations: int, reference: float) -> float:
    """Deadline of the whole run: what the reference allocation needs by the samples, and a little slack."""
    return math.ceil(2 * DEADLINE_SLACK * iterations * seconds_by_percent(executions)[reference]) / 2


def static_choice(executions: Sequence[Execution], iterations: int, deadline: float) -> float:
    """The static allocation a careful person takes: the smallest that meets the deadline with a tenth to spare."""
    for percent, seconds in seconds_by_percent(executions).items():
        if SAFETY * iterations * seconds <= deadline:
            return percent
    return max(seconds_by_percent(executions))

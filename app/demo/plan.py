"""What the demo allocates, and the figures that are derived from the profile: workload, deadline, static choices."""

import csv
import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

WORKLOAD = "digits"
ROUNDS = 2
PROFILED_ITERATIONS = 2
CORE_SECONDS = 0.75  # seconds of one iteration on one whole core: what an iteration's batches are chosen for
DEADLINE_SLACK = 1.12  # the deadline leaves this much over the time that one whole core needs undisturbed
SAFETY = 1.1  # a careful person's margin under the deadline
PRICE_PER_CORE_HOUR = 0.05


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
    """The allocations that may be chosen, in percent of one core."""

    minimum: int
    maximum: int
    step: int

    @property
    def profiled(self) -> tuple[int, ...]:
        """The allocations at which the training is profiled."""
        shares = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
        return tuple(round(share * self.maximum) for share in shares)

    @property
    def reference(self) -> int:
        """The allocation that the deadline is derived from: half of the largest, a whole core of two."""
        return self.maximum // 2


def grid(cores: int | None = None) -> Grid:
    """Up to two cores, from a fifth of that in steps of a tenth."""
    usable = min(2, cores or os.cpu_count() or 1)
    return Grid(minimum=20 * usable, maximum=100 * usable, step=10 * usable)


def spec(allocations: Grid, iterations: int, deadline_seconds: float) -> dict[str, Any]:
    """The workload as it is registered."""
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
    deadline = {"name": "iteration_seconds", "unit": "s", "target": deadline_seconds, "goal": "at_most", "scope": "run"}
    return {
        "name": WORKLOAD,
        "resources": [cpu],
        "metrics": [deadline],
        "iterations": iterations,
        "weights": {"sla": 20.0, "cost": 0.1, "change": 0.002},
    }


def as_csv(executions: Sequence[Execution]) -> str:
    """The samples as the service takes them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["execution", "iteration", "allocation.cpu", "metric.iteration_seconds"])
    for execution in executions:
        for row in execution.rows:
            writer.writerow([execution.name, row.iteration, f"{row.percent:g}", f"{row.seconds:.4f}"])
    return text.getvalue()


def seconds_by_percent(executions: Sequence[Execution]) -> dict[float, float]:
    """Mean seconds of an iteration for each allocation in the samples, smallest allocation first."""
    rows = [row for execution in executions for row in execution.rows]
    found = sorted({row.percent for row in rows})
    return {percent: mean(row.seconds for row in rows if row.percent == percent) for percent in found}


def deadline_seconds(executions: Sequence[Execution], iterations: int, reference: float) -> float:
    """Deadline of the whole run: what the reference allocation needs by the samples, and a little slack."""
    return math.ceil(2 * DEADLINE_SLACK * iterations * seconds_by_percent(executions)[reference]) / 2


def static_choice(executions: Sequence[Execution], iterations: int, deadline: float) -> float:
    """The static allocation a careful person takes: the smallest that meets the deadline with a tenth to spare."""
    for percent, seconds in seconds_by_percent(executions).items():
        if SAFETY * iterations * seconds <= deadline:
            return percent
    return max(seconds_by_percent(executions))

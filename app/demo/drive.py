"""One run of the training under a controller: Steward, or one allocation that never changes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from app.demo.api import Json, Steward
from app.demo.plan import PRICE_PER_CPU_SECOND, WORKLOAD, Measured
from app.demo.trainer import Trainer


@dataclass(frozen=True)
class Advice:
    """An allocation for the next iteration, and what was said about it; an interval of seconds if one was."""

    percent: float
    reason: str
    source: str = ""
    mean: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """One iteration of a run: what was advised for it, what it measured, and what was decided after it."""

    advice: Advice
    measured: Measured
    elapsed: float
    decided: Advice

    @property
    def within(self) -> bool | None:
        """Whether the iteration took as long as was predicted (90 % interval); None without a prediction."""
        if self.advice.low is None or self.advice.high is None:
            return None
        return self.advice.low <= self.measured.seconds <= self.advice.high


class Controller(Protocol):
    """Chooses the allocation of each iteration of a run."""

    def first(self) -> Advice:
        """The allocation of the first iteration."""
        ...

    def next(self, measured: Measured) -> Advice:
        """The allocation after what was measured."""
        ...


class Static:
    """One allocation for the whole run."""

    def __init__(self, percent: float) -> None:
        self.advice = Advice(percent, "never changes")

    def first(self) -> Advice:
        """The one allocation of the whole run."""
        return self.advice

    def next(self, measured: Measured) -> Advice:  # noqa: ARG002 - it does not look
        """The same allocation, whatever was measured."""
        return self.advice


class Managed:
    """A live run under Steward's decisions."""

    def __init__(self, steward: Steward, workload: str, on_start: Callable[[Advice], None]) -> None:
        self._steward, self._workload, self._on_start = steward, workload, on_start
        self._run = ""

    def first(self) -> Advice:
        """Start the run; its first advice."""
        started = self._steward.start(self._workload)
        self._run = started["id"]
        opening = advice(started["decision"])
        self._on_start(opening)
        return opening

    def next(self, measured: Measured) -> Advice:
        """Report the iteration; its answer is the decision."""
        report = {"allocation": {"cpu": measured.percent}, "metrics": {"iteration_seconds": measured.seconds}}
        return advice(self._steward.report(self._run, measured.iteration, report))

    def finish(self) -> None:
        """Finish the run: its iterations become samples."""
        self._steward.finish(self._run)


class Profiled(Managed):
    """A run that reports to Steward, waits for its answers, and keeps to one allocation: what is measured is a sample.

    A profile that waits as the live run will sees what the live run will.
    """

    def __init__(self, steward: Steward, workload: str, percent: float) -> None:
        super().__init__(steward, workload, on_start=lambda _: None)
        self._percent = percent

    def first(self) -> Advice:
        """The one allocation of the whole run."""
        return replace(super().first(), percent=self._percent)

    def next(self, measured: Measured) -> Advice:
        """The same allocation, whatever is advised."""
        return replace(super().next(measured), percent=self._percent)


def advice(decision: Json) -> Advice:
    """A decision of the API."""
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
    """How long a run is, when it has to be done (seconds), and in which of its iterations a neighbour takes CPU."""

    iterations: int
    deadline: float
    disturbed: range


@dataclass(frozen=True)
class Run:
    """A run that has been driven to its end.

    Attributes:
        name: “steward”, “careful”, “largest” or “best_static”; of a run of the profile, any other.
        label: the same for people.
    """

    name: str
    label: str
    rows: tuple[Row, ...]
    deadline: float

    @property
    def measured(self) -> list[Measured]:
        """What its iterations measured."""
        return [row.measured for row in self.rows]

    @property
    def seconds(self) -> float:
        """Wall clock of the run, decisions included."""
        return self.rows[-1].elapsed

    @property
    def met(self) -> bool:
        """Whether the deadline was met."""
        return self.seconds <= self.deadline

    @property
    def reserved(self) -> float:
        """CPU-seconds that were reserved: allocation × seconds."""
        return sum(row.measured.reserved for row in self.rows)

    @property
    def cost(self) -> float:
        """What the reserved CPU-seconds cost."""
        return self.reserved * PRICE_PER_CPU_SECOND

    @property
    def used(self) -> float:
        """CPU-seconds that the training itself used."""
        return sum(row.measured.cpu_seconds for row in self.rows)


def drive(
    name: str, label: str, controller: Controller, trainer: Trainer, run_plan: RunPlan, on_row: Callable[[Row], None]
) -> Run:
    """Train to the end, asking the controller after each iteration; ``on_row`` is called with each as it happens."""
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
    """A whole run without the neighbour at each allocation. They become samples."""
    undisturbed = RunPlan(iterations, float("inf"), range(0))
    for percent in allocations:
        controller = Profiled(steward, WORKLOAD, percent)
        name = f"profile-{percent}"
        run = drive(name, name, controller, trainer, undisturbed, lambda _: None)
        controller.finish()
        yield run

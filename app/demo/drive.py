"""One run of the demo's training under Steward's decisions or under a constant allocation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from app.demo.api import Json, Steward
from app.demo.plan import PRICE_PER_CPU_SECOND, WORKLOAD, Measured
from app.demo.trainer import Trainer


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

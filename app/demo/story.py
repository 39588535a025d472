"""``steward demo``: profile a real training, learn from it, and run it under Steward's decisions."""

import json
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.console import Console

from app.cli.remote.service import UnreachableError
from app.demo import plan
from app.demo.api import Json, RefusedError, Steward
from app.demo.drive import Managed, Row, Run, RunPlan, Static, drive, profile
from app.demo.processes import ChildError
from app.demo.service import own_service
from app.demo.show import Show
from app.demo.trainer import Trainer, trainer


@dataclass(frozen=True)
class Options:
    """What may be said on the command line.

    Attributes:
        output: folder of what is kept.
        iterations: of the training.
        compare: whether it is also played without Steward.
        budget: environment steps of each seed of the training; whoever watches waits for it.
        rounds: measurements at each allocation.
    """

    output: Path = Path("demo-output")
    iterations: int = 24
    compare: bool = True
    budget: int = 250_000
    rounds: int = plan.ROUNDS


def run(options: Options, console: Console | None = None) -> int:
    """Do the whole demo; the exit status."""
    show = Show(console)
    return ended(Demo(options, show).run, show)


def ended(demo: Callable[[], None], show: Show) -> int:
    """Do a demo; the exit status. Ctrl-C and SIGTERM end it in order: no process, no control group stays."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        demo()
    except KeyboardInterrupt:
        show.say("[red]interrupted[/]; everything that was started is stopped")
        return 130
    except (RefusedError, UnreachableError, ChildError) as error:
        show.say(f"[red]{error}[/]")
        return 1
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class Demo:
    """The demo, step by step."""

    def __init__(self, options: Options, show: Show) -> None:
        self.options, self.show = options, show
        self.grid = plan.GRID
        third = options.iterations // 3
        self.disturbed = range(third, third + options.iterations * 7 // 24)
        self.started = time.monotonic()

    def run(self) -> None:
        """From starting the service to the picture."""
        with ExitStack() as stack:
            self.show.step("Start the service and load the training")
            own = stack.enter_context(trainer())
            steward = stack.enter_context(own_service())
            own.load()
            self.show.say(f"{steward.url}, on its embedded default; CPU limited by: {own.limit.name}")
            executions = self.profile(steward, own)
            run_plan = self.learn(steward, executions)
            runs = [self.live(steward, own, run_plan)]
            if self.options.compare:
                runs += self.comparisons(own, run_plan, executions)
        self.conclude(runs)

    def profile(self, steward: Steward, own: Trainer) -> list[plan.Execution]:
        """Register the workload, and report short runs at several allocations: they become its samples."""
        self.show.step("Profile: short trainings at several CPU allocations, reported as they run")
        steward.register(plan.spec(self.grid, self.options.iterations))
        batches = own.calibrate(self.grid.reference)
        self.show.say(f"torch network on scikit-learn's digits; one iteration is {batches} batches on this machine")
        executions: list[plan.Execution] = []
        total = len(self.grid.profiled) * self.options.rounds
        with self.show.bar("profile") as progress:
            for execution in profile(steward, own, self.grid.profiled, self.options.rounds):
                executions.append(execution)
                progress.update(len(executions) / total, execution.name)
        self.show.profile(executions)
        return executions

    def learn(self, steward: Steward, executions: list[plan.Execution]) -> RunPlan:
        """Set the deadline, fit a domain model to the samples, train an agent."""
        iterations = self.options.iterations
        deadline = plan.deadline_seconds(executions, iterations, self.grid.reference)
        self.show.step(
            f"Learn: {iterations} iterations are to be done in {deadline:.1f} s, with as little CPU as that takes"
        )
        steward.aim(plan.WORKLOAD, deadline)
        fitted = self.show.follow("fit  ", steward.follow(steward.fit(plan.WORKLOAD)))
        self.model_report(steward.model(plan.WORKLOAD, fitted["result"]["model"]))
        trained = self.show.follow("train", steward.follow(steward.train(plan.WORKLOAD, budget=self.options.budget)))
        self.agent_report(steward.agent(plan.WORKLOAD, trained["result"]["agent"]))
        return RunPlan(iterations, deadline, self.disturbed)

    def model_report(self, report: Json) -> None:
        """The domain model in a line."""
        seconds = report["metrics"]["iteration_seconds"]
        self.show.say(
            f"domain model: {report['family']}, error {seconds['mape']:.1%} (naive mean: {seconds['naive_mape']:.0%})"
        )

    def agent_report(self, report: Json) -> None:
        """The agent in a line or two."""
        gap = report.get("gap_to_optimum")
        ending = "" if gap is None else f", {gap:.1%} from the exact optimum"
        self.show.say(f"agent: {report['algorithm']}{ending}; best heuristic: {report['best_heuristic']}")
        self.show.say(f"[dim]{report['reason']}[/]")

    def live(self, steward: Steward, own: Trainer, run_plan: RunPlan) -> Run:
        """The training under Steward's decisions."""
        first, last = run_plan.disturbed.start, run_plan.disturbed.stop - 1
        self.show.step("Run live under Steward's decisions")
        neighbour = f"in iterations {first}–{last} [red]*[/] a neighbour takes CPU under the same limit"
        self.show.say(f"deadline {run_plan.deadline:.1f} s; costs are CPU-seconds reserved")
        self.show.say(neighbour)
        controller = Managed(steward, plan.WORKLOAD, on_start=self.show.head)
        run = drive("Steward", controller, own, run_plan, self.show.row)
        controller.finish()
        return run

    def comparisons(self, own: Trainer, run_plan: RunPlan, executions: list[plan.Execution]) -> list[Run]:
        """The same training under static allocations, with the same disturbance, really run."""
        self.show.step("The same training at static allocations, under the same disturbance, really run")
        careful = plan.static_choice(executions, run_plan.iterations, run_plan.deadline)
        largest = float(self.grid.maximum)
        names = {f"largest static ({largest:g} %)": largest, f"careful static ({careful:g} %)": careful}
        return [self.static(own, run_plan, name, percent) for name, percent in names.items()]

    def static(self, own: Trainer, run_plan: RunPlan, name: str, percent: float) -> Run:
        """One static run."""
        with self.show.bar(name) as progress:

            def advance(row: Row) -> None:
                progress.update((row.measured.iteration + 1) / run_plan.iterations)

            return drive(name, Static(percent), own, run_plan, advance)

    def conclude(self, runs: list[Run]) -> None:
        """Summary and picture."""
        from app.demo import plot

        self.show.step("Summary: every figure is measured in this demo")
        self.show.summary(runs)
        files = plot.save(runs, self.options.output)
        figures = self.options.output / "demo.json"
        figures.write_text(json.dumps([_record(run) for run in runs], indent=1))
        self.show.say(f"picture and figures: {', '.join(str(path) for path in [*files, figures])}")
        self.show.say(f"the whole demo took {time.monotonic() - self.started:.0f} s")


def _record(run: Run) -> Json:
    """A run's figures, for whoever wants to look closer."""
    rows = [
        {
            "iteration": row.measured.iteration,
            "percent": row.measured.percent,
            "seconds": row.measured.seconds,
            "predicted": [row.advice.low, row.advice.high],
            "disturbed": row.disturbed,
            "source": row.advice.source,
            "reason": row.advice.reason,
            "accuracy": row.measured.accuracy,
        }
        for row in run.rows
    ]
    totals = {"deadline": run.deadline, "seconds": run.seconds, "met": run.met}
    return {"run": run.name, **totals, "cpu_seconds_reserved": run.reserved, "cpu_seconds_used": run.used, "rows": rows}

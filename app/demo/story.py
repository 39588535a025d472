"""``steward demo``: profiles a real training, fits and trains on that, and runs it with and without Steward."""

import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
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

TRIES = 3  # static allocations that are played until one meets the deadline


@dataclass(frozen=True)
class Options:
    """Options of the command.

    Attributes:
        output: folder for results.
        iterations: of the training.
        compare: whether it is also run without Steward.
        budget: environment steps per seed of the agent's training.
        as_json: print one JSON object to standard output, and everything else to standard error.
        simulated: run in simulated time.
    """

    output: Path = Path("demo-output")
    iterations: int = 24
    compare: bool = True
    budget: int = 100_000
    as_json: bool = False
    simulated: bool = False


def run(options: Options, console: Console | None = None) -> int:
    """Run the whole demo; returns the exit status."""
    show = Show(console or Console(stderr=options.as_json))
    return ended(Demo(options, show).run, show)


def ended(demo: Callable[[], None], show: Show) -> int:
    """Run a demo and return the exit status; at Ctrl-C and SIGTERM all processes and control groups are removed."""
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
    """The steps of the demo, which print their results."""

    def __init__(self, options: Options, show: Show) -> None:
        self.options, self.show = options, show
        self.started = time.monotonic()

    def run(self) -> None:
        """All steps, from starting the service to the picture."""
        with ExitStack() as stack:
            self.show.step("Start the service and load the training")
            self.show.say("on a busy machine this takes minutes")
            steward = stack.enter_context(own_service())
            own = stack.enter_context(trainer(simulated=self.options.simulated))
            self.show.say(f"{steward.url}, on its embedded default; {own.how}")
            if own.simulated and not self.options.simulated:
                self.show.say(
                    "[red]the CPU of a process can't be limited here: the story is played in simulated time[/]"
                )
            profiled = self.profile(steward, own)
            run_plan = self.learn(steward, profiled)
            runs = [self.live(steward, own, run_plan)]
            if self.options.compare:
                runs += self.comparisons(own, run_plan, profiled, runs[0])
        self.conclude(runs, simulated=own.simulated)

    def profile(self, steward: Steward, own: Trainer) -> list[Run]:
        """Register the workload, and report whole runs at four allocations, which become its samples."""
        self.show.step("Profile: the training at four CPU allocations, without the neighbour")
        steward.register(plan.spec(self.options.iterations))
        self.show.say(
            "a torch network learns scikit-learn's digits; each iteration trains, but for every fourth, which saves:\n"
            f"   a checkpoint takes the remote store (a stand-in) about {plan.SAVE_SECONDS:g} s, whatever CPU there is"
        )
        runs: list[Run] = []
        with self.show.bar("profile") as progress:
            for one in profile(steward, own, plan.PROFILED, self.options.iterations):
                runs.append(one)
                progress.update(len(runs) / len(plan.PROFILED), one.name)
        self.show.profile(runs)
        return runs

    def learn(self, steward: Steward, profiled: Sequence[Run]) -> RunPlan:
        """Set the deadline, fit a domain model, and train an agent."""
        iterations = self.options.iterations
        deadline = plan.deadline_seconds(_measured(profiled), iterations)
        self.show.step(f"Learn: {iterations} iterations have to end within {deadline:.1f} s, at the least cost")
        steward.aim(plan.WORKLOAD, deadline)
        fitted = self.show.follow("fit  ", steward.follow(steward.fit(plan.WORKLOAD)))
        model = steward.model(plan.WORKLOAD, fitted["result"]["model"])
        seconds = model["metrics"]["iteration_seconds"]
        self.show.say(
            f"domain model: {model['family']}, error {seconds['mape']:.1%} (naive mean: {seconds['naive_mape']:.0%})"
        )
        trained = self.show.follow("train", steward.follow(steward.train(plan.WORKLOAD, budget=self.options.budget)))
        agent = steward.agent(plan.WORKLOAD, trained["result"]["agent"])
        self.show.say(f"agent: {agent['algorithm']}; best rule: {agent['best_heuristic']}")
        self.show.say(f"[dim]{agent['reason']}[/]")
        return RunPlan(iterations, deadline, plan.disturbed_iterations(iterations))

    def live(self, steward: Steward, own: Trainer, run_plan: RunPlan) -> Run:
        """Run the training under Steward's decisions."""
        self.show.step("Run live under Steward's decisions")
        self.show.say(
            f"deadline {run_plan.deadline:.1f} s; from iteration {run_plan.disturbed.start} on [red]*[/] a neighbour "
            "computes in one thread\n   under the same CPU limit, and takes about half of it"
        )
        controller = Managed(steward, plan.WORKLOAD, on_start=self.show.head)
        run = drive("steward", "Steward", controller, own, run_plan, self.show.row)
        controller.finish()
        return run

    def comparisons(self, own: Trainer, run_plan: RunPlan, profiled: Sequence[Run], steward: Run) -> list[Run]:
        """Run the training at static allocations, with the same neighbour.

        The best static one in hindsight is the smallest that meets the deadline by all measurements so far; if it
        misses the deadline, the next larger one is run, up to three.
        """
        self.show.step("The same training at static allocations, beside the same neighbour")
        chosen = plan.careful_static(_measured(profiled), run_plan.iterations, run_plan.deadline)
        careful = self.static(own, run_plan, "careful", f"careful static, {chosen} %", chosen)
        largest = self.static(own, run_plan, "largest", f"largest, {plan.MAXIMUM} %", plan.MAXIMUM)
        seen = _measured([*profiled, steward, careful, largest])
        percent = plan.best_static(seen, run_plan.iterations, run_plan.deadline)
        best = largest
        for tried in plan.GRID[plan.GRID.index(percent) :][:TRIES]:
            label = f"best static in hindsight, {tried} %"
            if tried == plan.MAXIMUM:
                best = Run("best_static", label, largest.rows, largest.deadline)
            else:
                best = self.static(own, run_plan, "best_static", label, tried)
            if best.met:
                break
        return [careful, best, largest]

    def static(self, own: Trainer, run_plan: RunPlan, name: str, label: str, percent: int) -> Run:
        """Run the training at a constant allocation in percent of a core."""
        with self.show.bar(label) as progress:

            def advance(row: Row) -> None:
                progress.update((row.measured.iteration + 1) / run_plan.iterations)

            return drive(name, label, Static(percent), own, run_plan, advance)

    def conclude(self, runs: Sequence[Run], *, simulated: bool) -> None:
        """Save picture and figures, and print the summary."""
        from app.demo import plot

        self.show.step("Summary" if simulated else "Summary: every figure was measured in this demo")
        files = plot.save(runs, self.options.output)
        figures = self.options.output / "demo.json"
        found = _record(runs, simulated=simulated)
        rows = {run.name: [_row(row) for row in run.rows] for run in runs}
        figures.write_text(json.dumps({**found, "rows": rows}, indent=1))
        self.show.say(f"picture and figures: {', '.join(str(path) for path in [*files, figures])}")
        self.show.say(f"the whole demo took {time.monotonic() - self.started:.0f} s")
        self.show.summary(runs, simulated=simulated)
        if self.options.as_json:
            json.dump(found, sys.stdout, indent=1)
            print(flush=True)


def _measured(runs: Sequence[Run]) -> plan.Profile:
    return plan.Profile(row.measured for run in runs for row in run.rows)


def _record(runs: Sequence[Run], *, simulated: bool) -> Json:
    """The object that ``--json`` prints: the deadline in seconds, and each allocation with outcome and cost."""
    allocations = [
        {
            "name": run.name,
            "elapsed_seconds": run.seconds,
            "met": run.met,
            "cpu_seconds": run.reserved,
            "cost": run.cost,
            "percent": run.rows[0].measured.percent if run.name != "steward" else None,
            "cpu_seconds_used": run.used,
            "saved": None if run.name == "steward" else plan.saved(runs[0].measured, run.measured)._asdict(),
        }
        for run in runs
    ]
    return {
        "deadline_seconds": runs[0].deadline,
        "simulated": simulated,
        "neighbour_from_iteration": plan.disturbed_iterations(len(runs[0].rows)).start,
        "price_per_cpu_second": plan.PRICE_PER_CPU_SECOND,
        "allocations": allocations,
    }


def _row(row: Row) -> Json:
    """An iteration as a JSON object for the file of figures."""
    return {
        "iteration": row.measured.iteration,
        "phase": row.measured.phase,
        "percent": row.measured.percent,
        "seconds": row.measured.seconds,
        "predicted": [row.advice.low, row.advice.high],
        "disturbed": row.measured.disturbed,
        "source": row.advice.source,
        "reason": row.advice.reason,
        "accuracy": row.measured.accuracy,
    }

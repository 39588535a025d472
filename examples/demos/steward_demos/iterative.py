"""``steward demo``: profiles a real training, fits and trains on that, and runs it with and without Steward."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.charts import timeline
from app.charts.figures import Figure
from app.charts.text import money
from app.charts.timeline import Beside, Expected, Point, Series
from steward_demos.iterative_run import (
    GRID,
    MAXIMUM,
    PRICE_PER_CPU_SECOND,
    PROFILED,
    SAVE_SECONDS,
    WORKLOAD,
    Advice,
    Managed,
    Profile,
    Row,
    Run,
    RunPlan,
    Static,
    Trainer,
    best_static,
    careful_static,
    deadline_seconds,
    disturbed_iterations,
    drive,
    profile,
    saved,
    spec,
    trainer,
)
from steward_demos.service import Json, Steward, own_service
from steward_demos.show import Show, ended, save_pictures

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
    show = TrainingShow(console or Console(stderr=options.as_json))
    return ended(Demo(options, show).run, show)


class Demo:
    """The steps of the demo, which print their results."""

    def __init__(self, options: Options, show: TrainingShow) -> None:
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
        steward.register(spec(self.options.iterations))
        self.show.say(
            "a torch network learns scikit-learn's digits; each iteration trains, but for every fourth, which saves:\n"
            f"   a checkpoint takes the remote store (a stand-in) about {SAVE_SECONDS:g} s, whatever CPU there is"
        )
        runs: list[Run] = []
        with self.show.bar("profile") as progress:
            for one in profile(steward, own, PROFILED, self.options.iterations):
                runs.append(one)
                progress.update(len(runs) / len(PROFILED), one.name)
        self.show.profile(runs)
        return runs

    def learn(self, steward: Steward, profiled: Sequence[Run]) -> RunPlan:
        """Set the deadline, fit a domain model, and train an agent."""
        iterations = self.options.iterations
        deadline = deadline_seconds(_measured(profiled), iterations)
        self.show.step(f"Learn: {iterations} iterations have to end within {deadline:.1f} s, at the least cost")
        steward.aim(WORKLOAD, deadline)
        fitted = self.show.follow("fit  ", steward.follow(steward.fit(WORKLOAD)))
        model = steward.model(WORKLOAD, fitted["result"]["model"])
        seconds = model["metrics"]["iteration_seconds"]
        self.show.say(
            f"domain model: {model['family']}, error {seconds['mape']:.1%} (naive mean: {seconds['naive_mape']:.0%})"
        )
        trained = self.show.follow("train", steward.follow(steward.train(WORKLOAD, budget=self.options.budget)))
        agent = steward.agent(WORKLOAD, trained["result"]["agent"])
        self.show.say(f"agent: {agent['algorithm']}; best rule: {agent['best_heuristic']}")
        self.show.say(f"[dim]{agent['reason']}[/]")
        return RunPlan(iterations, deadline, disturbed_iterations(iterations))

    def live(self, steward: Steward, own: Trainer, run_plan: RunPlan) -> Run:
        """Run the training under Steward's decisions."""
        self.show.step("Run live under Steward's decisions")
        self.show.say(
            f"deadline {run_plan.deadline:.1f} s; from iteration {run_plan.disturbed.start} on [red]*[/] a neighbour "
            "computes in one thread\n   under the same CPU limit, and takes about half of it"
        )
        controller = Managed(steward, WORKLOAD, on_start=self.show.head)
        run = drive("steward", "Steward", controller, own, run_plan, self.show.row)
        controller.finish()
        return run

    def comparisons(self, own: Trainer, run_plan: RunPlan, profiled: Sequence[Run], steward: Run) -> list[Run]:
        """Run the training at static allocations, with the same neighbour.

        The best static one in hindsight is the smallest that meets the deadline by all measurements so far; if it
        misses the deadline, the next larger one is run, up to three.
        """
        self.show.step("The same training at static allocations, beside the same neighbour")
        chosen = careful_static(_measured(profiled), run_plan.iterations, run_plan.deadline)
        careful = self.static(own, run_plan, "careful", f"fixed by hand, {chosen} %", chosen)
        largest = self.static(own, run_plan, "largest", f"largest, {MAXIMUM} %", MAXIMUM)
        results = _measured([*profiled, steward, careful, largest])
        percent = best_static(results, run_plan.iterations, run_plan.deadline)
        best = largest
        for tried in GRID[GRID.index(percent) :][:TRIES]:
            label = f"best static in hindsight, {tried} %"
            if tried == MAXIMUM:
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
        self.show.step("Summary" if simulated else "Summary: every figure was measured in this demo")
        files = pictures(runs, self.options.output)
        figures = self.options.output / "demo.json"
        record = _record(runs, simulated=simulated)
        rows = {run.name: [_row(row) for row in run.rows] for run in runs}
        figures.write_text(json.dumps({**record, "rows": rows}, indent=1))
        self.show.say(f"picture and figures: {', '.join(str(path) for path in [*files, figures])}")
        self.show.say(f"the whole demo took {time.monotonic() - self.started:.0f} s")
        self.show.summary(runs, simulated=simulated)
        if self.options.as_json:
            json.dump(record, sys.stdout, indent=1)
            print(flush=True)


def _measured(runs: Sequence[Run]) -> Profile:
    return Profile(row.measured for run in runs for row in run.rows)


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
            "saved": None if run.name == "steward" else saved(runs[0].measured, run.measured)._asdict(),
        }
        for run in runs
    ]
    return {
        "deadline_seconds": runs[0].deadline,
        "simulated": simulated,
        "neighbour_from_iteration": disturbed_iterations(len(runs[0].rows)).start,
        "price_per_cpu_second": PRICE_PER_CPU_SECOND,
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


COLUMNS = (("iteration", 9), ("phase", 5), ("cpu %", 5), ("seconds", 7), ("predicted", 11), ("elapsed", 7), ("next", 8))
WIDE = 110
"""Width in characters from which reasons are printed beside figures."""
INDENT = 11


class TrainingShow(Show):
    """Also prints the profile, the live table and the summary of runs."""

    def profile(self, runs: Sequence[Run]) -> None:
        """Print mean seconds, total seconds and cost of the profile's runs, by allocation."""
        rows = []
        for run in runs:
            train, save = (
                [row.measured.seconds for row in run.rows if row.measured.phase == phase] for phase in ("train", "save")
            )
            percent = run.rows[0].measured.percent
            rows.append(
                (f"{percent:g}", f"{mean(train):.2f}", f"{mean(save):.2f}", f"{run.seconds:.1f}", f"{run.cost:.3f}")
            )
        self.table(("cpu %", "s per training iteration", "s per saving one", "s in all", "cost"), rows)

    def head(self, opening: Advice) -> None:
        """Print the live table's head and the first decision."""
        self.console.print(self._table(head=True))
        self.say(f"[dim]first: {opening.percent:g} % ({opening.source}): {opening.reason}[/]")

    def row(self, row: Row) -> None:
        """Print one iteration of the live table."""
        table = self._table(head=False)
        change = row.decided.percent - row.measured.percent
        decision = f"→ {row.decided.percent:.0f}" if change else "keep"
        band = "" if row.advice.low is None else f"{row.advice.low:.2f}–{row.advice.high:.2f}"
        mark = "[red]*[/]" if row.measured.disturbed else " "
        colour = "" if row.within is not False else "[yellow]"
        cells = [
            f"{row.measured.iteration}{mark}",
            row.measured.phase,
            f"{row.measured.percent:.0f}",
            f"{colour}{row.measured.seconds:.2f}",
            band,
            f"{row.elapsed:.1f}",
            decision,
        ]
        reason = Text.assemble((f"{row.decided.source}:", "dim"), f" {row.decided.reason}")
        table.add_row(*cells, *([reason] if self._wide else []))
        self.console.print(table)
        if not self._wide:
            self.console.print(Padding(reason, (0, 0, 0, INDENT)))

    @property
    def _wide(self) -> bool:
        """Whether reasons are printed beside figures."""
        return self.console.width >= WIDE

    def _table(self, *, head: bool) -> Table:
        table = Table(box=None, show_header=head, padding=(0, 1), expand=self._wide, pad_edge=True)
        for name, width in COLUMNS:
            table.add_column(name, width=width, justify="right", no_wrap=True)
        if self._wide:
            table.add_column("reason", ratio=1)
        return table

    def summary(self, runs: Sequence[Run], *, simulated: bool) -> None:
        """Print the outcome of each run, Steward's savings, and its changes of the allocation."""
        steward, others = runs[0], runs[1:]
        if simulated:
            self.say("[bold red]All figures are simulated.[/]")
        self.table(
            ("", "elapsed", f"deadline {steward.deadline:.1f} s", "CPU-s", "cost"), [outcome(run) for run in runs]
        )
        if others:
            price = money(PRICE_PER_CPU_SECOND)
            self.say(f"Cost is reserved CPU-seconds × {price}. Steward's cost, with 95 % intervals:")
        for other in others:
            self.say(compared(steward, other))
        for line in changes(steward.rows):
            self.console.print(Padding(Text(line), (0, 0, 0, 3)))


def outcome(run: Run) -> Sequence[str]:
    """A run's row of the summary: label, seconds, seconds by which the deadline was met or missed,
    CPU-seconds, cost.
    """
    by = abs(run.deadline - run.seconds)
    met = f"[green]met by {by:.1f} s[/]" if run.met else f"[red]MISSED by {by:.1f} s[/]"
    return run.label, f"{run.seconds:.1f} s", met, f"{run.reserved:.2f}", money(run.cost)


def compared(steward: Run, other: Run) -> str:
    """Steward's saving against another run in words, with 95 % interval, and whether that run met the deadline."""
    result = saved(steward.measured, other.measured)
    if result.share >= 0:
        text = f"{result.share:.0%} less ({result.low:.0%} to {result.high:.0%}) than {other.label}"
    else:
        text = f"{-result.share:.0%} more ({-result.high:.0%} to {-result.low:.0%}) than {other.label}"
    if not other.met:
        return f"{text}, which missed the deadline"
    if not steward.met:
        return f"{text}, which met the deadline: it was the better choice"
    return text if result.share > 0 else f"{text}: it was as good or better"


def changes(rows: Sequence[Row]) -> list[str]:
    """Allocations by iteration, and for each kind of iteration the first reason of a change, in sentences."""
    allocations = " ".join(f"{row.measured.percent:g}" for row in rows)
    lines = [f"Allocation by iteration, %: {allocations}"]
    groups: dict[tuple[str, bool], list[tuple[Row, Row]]] = {}
    for before, row in pairwise(rows):
        if row.measured.percent != before.measured.percent:
            groups.setdefault((row.measured.phase, row.measured.disturbed), []).append((before, row))
    for (phase, disturbed), group in groups.items():
        numbers = ", ".join(str(row.measured.iteration) for _, row in group)
        before, row = group[0]
        beside = " beside the neighbour" if disturbed else ""
        start = f"{row.measured.percent:g} cpu"
        clauses = row.advice.reason.split("; ")
        why = next((clause for clause in clauses if clause.startswith(start)), row.advice.reason)
        lines.append(
            f"Changed for {phase} iterations {numbers}{beside}. First {before.measured.percent:g} %, then {why}"
        )
    return lines


def within(rows: Sequence[Row]) -> str:
    """Number of iterations within their predicted interval, as “n of m”; “–” without predictions."""
    known = [row.within for row in rows if row.within is not None]
    return f"{sum(known)} of {len(known)}" if known else "–"


def pictures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write ``demo.png`` and the self-contained ``demo.html``; both paths. The first run is Steward's."""
    return save_pictures(charts(runs), folder / "demo.png")


def charts(runs: Sequence[Run]) -> list[Figure]:
    """Charts of seconds per iteration with the predicted interval, of allocations, and of elapsed seconds."""
    disturbed = [row.measured.iteration for row in runs[0].rows if row.measured.disturbed]
    beside = Beside(stress=(disturbed[0] - 0.5, disturbed[-1] + 0.5) if disturbed else None)
    return [
        timeline.comparison_chart(
            "Seconds per iteration",
            "seconds",
            _series(runs, lambda row: row.measured.seconds),
            "The band is what Steward predicted for its own run (90 %).",
            beside._replace(band=_band(runs[0])),
        ),
        timeline.comparison_chart(
            "CPU allocation",
            "CPU, % of a core",
            _series(runs, lambda row: row.measured.percent),
            "Shaded: a neighbour takes CPU under the same limit.",
            beside,
            steps=True,
        ),
        timeline.comparison_chart(
            "Elapsed time vs. deadline",
            "elapsed seconds",
            _series(runs, lambda row: row.elapsed),
            "Dashed: the deadline.",
            beside._replace(target=runs[0].deadline),
        ),
    ]


def _series(runs: Sequence[Run], of: Callable[[Row], float]) -> list[Series]:
    return [Series(run.label, [Point(row.measured.iteration, round(of(row), 4)) for row in run.rows]) for run in runs]


def _band(run: Run) -> list[Expected]:
    return [
        Expected(row.measured.iteration, row.advice.low, row.advice.high)
        for row in run.rows
        if row.advice.low is not None and row.advice.high is not None
    ]

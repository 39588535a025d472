"""Output of the demo: headings, progress, live table, summary."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from statistics import mean

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.charts.text import money
from app.cli.remote.train import Bar, follow, progress, remaining
from app.demo.api import Json
from app.demo.drive import Advice, Row, Run
from app.demo.plan import PRICE_PER_CPU_SECOND, saved

COLUMNS = (("iteration", 9), ("phase", 5), ("cpu %", 5), ("seconds", 7), ("predicted", 11), ("elapsed", 7), ("next", 8))
WIDE = 110
"""Width in characters from which reasons are printed beside figures."""
INDENT = 11


class Show:
    """Prints the demo's output on a console."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._step = 0

    def step(self, title: str) -> None:
        """Print a numbered heading."""
        self._step += 1
        self.console.print(f"\n[bold cyan]{self._step}. {title}[/]")

    def say(self, text: str) -> None:
        """Print an indented line, with Rich markup."""
        self.console.print(f"   {text}", highlight=False)

    def bar(self, title: str) -> AbstractContextManager[Bar]:
        """Context manager: a progress bar from 0 to 1, with words beside it."""
        return progress(self.console, f"   {title}")

    def follow(self, title: str, events: Iterable[Json]) -> Json:
        """Show a job's progress from its events, and return the job at its end."""
        return follow(self.console, f"   {title}", events, remaining)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table whose first column has names and others figures."""
        table = Table(box=None, padding=(0, 1))
        for number, title in enumerate(head):
            table.add_column(title, justify="right" if number else "left", no_wrap=not number)
        for row in rows:
            table.add_row(*row)
        self.console.print(Padding(table, (0, 0, 0, 3)))

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
    found = saved(steward.measured, other.measured)
    if found.share >= 0:
        text = f"{found.share:.0%} less ({found.low:.0%} to {found.high:.0%}) than {other.label}"
    else:
        text = f"{-found.share:.0%} more ({-found.high:.0%} to {-found.low:.0%}) than {other.label}"
    if not other.met:
        return f"{text}, which missed the deadline"
    if not steward.met:
        return f"{text}, which met the deadline: it was the better choice"
    return text if found.share > 0 else f"{text}: it was as good or better"


def changes(rows: Sequence[Row]) -> list[str]:
    """Allocations by iteration, and for each kind of iteration the first reason of a change, in sentences."""
    allocations = " ".join(f"{row.measured.percent:g}" for row in rows)
    lines = [f"Allocation by iteration, %: {allocations}"]
    groups: dict[tuple[str, bool], list[tuple[Row, Row]]] = {}
    for before, row in pairwise(rows):
        if row.measured.percent != before.measured.percent:
            groups.setdefault((row.measured.phase, row.measured.disturbed), []).append((before, row))
    for (phase, disturbed), found in groups.items():
        numbers = ", ".join(str(row.measured.iteration) for _, row in found)
        before, row = found[0]
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

"""What the demo prints: headings, progress of jobs, the live table, the summary."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.cli.remote.progress_bar import Bar, follow, progress, remaining
from app.demo.api import Json
from app.demo.drive import Advice, Row, Run
from app.demo.plan import Execution, seconds_by_percent

COLUMNS = (("iteration", 9), ("cpu %", 6), ("seconds", 7), ("predicted", 11), ("projected", 9), ("decision", 10))
WIDE = 110
"""Characters of a terminal on which a reason has room beside the figures."""
INDENT = 11
AS_DEAR = 0.01  # more CPU than another run's, as a share of it, is no more


class Show:
    """Prints the demo's output on a console."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._step = 0

    def step(self, title: str) -> None:
        """A heading: what is done next."""
        self._step += 1
        self.console.print(f"\n[bold cyan]{self._step}. {title}[/]")

    def say(self, text: str) -> None:
        """A line of text."""
        self.console.print(f"   {text}", highlight=False)

    def bar(self, title: str) -> AbstractContextManager[Bar]:
        """Progress from 0 to 1, with what is to be said beside it."""
        return progress(self.console, f"   {title}")

    def follow(self, title: str, events: Iterable[Json]) -> Json:
        """Draw a job's progress from its events; the job at its end."""
        return follow(self.console, f"   {title}", events, remaining)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table, the first of whose columns are names."""
        table = Table(box=None, padding=(0, 1))
        for number, title in enumerate(head):
            table.add_column(title, justify="right" if number else "left", no_wrap=not number)
        for row in rows:
            table.add_row(*row)
        self.console.print(Padding(table, (0, 0, 0, 3)))

    def profile(self, executions: Sequence[Execution]) -> None:
        """The samples, by allocation."""
        table = Table(box=None, padding=(0, 2), show_header=True)
        for name in ("cpu %", "seconds per iteration, quickest run", "CPU-seconds reserved per iteration"):
            table.add_column(name, justify="right")
        for percent, seconds in seconds_by_percent(executions).items():
            table.add_row(f"{percent:g}", f"{seconds:.2f}", f"{percent / 100 * seconds:.2f}")
        self.console.print(table)

    def head(self, opening: Advice) -> None:
        """The live table's head, and the first decision."""
        self.console.print(self._table(head=True))
        self.say(f"[dim]first: {opening.percent:g} % ({opening.source}): {opening.reason}[/]")

    def row(self, row: Row) -> None:
        """One iteration of the live table."""
        table = self._table(head=False)
        change = row.decided.percent - row.measured.percent
        decision = f"{change:+.0f} → {row.decided.percent:.0f}" if change else "hold"
        band = "" if row.advice.low is None else f"{row.advice.low:.2f}–{row.advice.high:.2f}"
        mark = "[red]*[/]" if row.disturbed else " "
        colour = "" if row.within is not False else "[yellow]"
        cells = [
            f"{row.measured.iteration}{mark}",
            f"{row.measured.percent:.0f}",
            f"{colour}{row.measured.seconds:.2f}",
            band,
            f"{row.projected:.1f}",
            decision,
        ]
        reason = Text.assemble((f"{row.decided.source}:", "dim"), f" {row.decided.reason}")
        table.add_row(*cells, *([reason] if self._wide else []))
        self.console.print(table)
        if not self._wide:
            self.console.print(Padding(reason, (0, 0, 0, INDENT)))

    @property
    def _wide(self) -> bool:
        """Whether reasons stand beside the figures, not below them."""
        return self.console.width >= WIDE

    def _table(self, *, head: bool) -> Table:
        table = Table(box=None, show_header=head, padding=(0, 1), expand=self._wide, pad_edge=True)
        for name, width in COLUMNS:
            table.add_column(name, width=width, justify="right", no_wrap=True)
        if self._wide:
            table.add_column("reason", ratio=1)
        return table

    def summary(self, runs: Sequence[Run]) -> None:
        """The runs side by side."""
        table = Table(title=None, title_justify="left")
        for name in ("", *(run.name for run in runs)):
            table.add_column(name, justify="right" if name else "left")
        for label, cells in figures(runs):
            table.add_row(label, *cells)
        self.console.print(table)
        for line in verdict(runs):
            self.say(line)


def figures(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    """The summary's lines: a label, and one figure per run."""
    return [
        ("deadline", [f"{run.deadline:.1f} s" for run in runs]),
        ("wall clock, measured", [f"{run.seconds:.1f} s" for run in runs]),
        ("deadline met", ["[green]yes[/]" if run.met else "[red]no[/]" for run in runs]),
        ("CPU-seconds reserved", [f"{run.reserved:.1f}" for run in runs]),
        ("CPU-seconds used by the training", [f"{run.used:.1f}" for run in runs]),
        ("within the predicted 90 % band", [within(run.rows) for run in runs]),
        ("… of the undisturbed iterations", [within([r for r in run.rows if not r.disturbed]) for run in runs]),
        ("test accuracy at the end", [f"{run.rows[-1].measured.accuracy:.1%}" for run in runs]),
    ]


def verdict(runs: Sequence[Run]) -> list[str]:
    """What the runs say for and against deciding, in words: the first is Steward's, the others are static."""
    if len(runs) == 1:
        return []
    steward, statics = runs[0], runs[1:]
    return [_kept(steward), *(_compared(static, steward) for static in statics)]


def _kept(run: Run) -> str:
    left = run.deadline - run.seconds
    return (
        f"{run.name} {'met' if run.met else 'missed'} the deadline by {abs(left):.1f} s, for {run.reserved:.1f} CPU-s"
    )


def _compared(static: Run, steward: Run) -> str:
    """A static run beside Steward's; whether it was as good is said."""
    more = static.reserved / steward.reserved - 1
    how = f"{_kept(static)} ({more:+.0%})"
    if static.met and (more <= AS_DEAR or not steward.met):
        return f"{how}: in this run it was as good as deciding, or better"
    return how


def within(rows: Sequence[Row]) -> str:
    """How many iterations took as long as predicted."""
    known = [row.within for row in rows if row.within is not None]
    return f"{sum(known)} of {len(known)}" if known else "–"

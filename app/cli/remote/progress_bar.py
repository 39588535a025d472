"""Progress as a bar on a terminal, however narrow, and as a line now and then where nobody watches."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from app.cli.failures import Json

NARROWEST, WIDEST = 10, 40
LINES = 10
"""How many lines the whole has where it is told in lines."""


class Bar:
    """Progress of one thing: a bar that is drawn anew, or lines."""

    def __init__(self, console: Console, title: str, drawn: Progress | None) -> None:
        self._begun = time.monotonic()
        self._console, self._title, self._drawn = console, title, drawn
        self._task = drawn.add_task(title, total=1.0, words="") if drawn is not None else None
        self._lines = -1

    def left(self, completed: float) -> str:
        """About how long it still takes, if it goes on as it has; nothing where that can't be known yet."""
        taken = time.monotonic() - self._begun
        if completed <= 0 or taken < 1:
            return ""
        return f"about {taken * (1 - completed) / completed:,.0f} s left"

    def update(self, completed: float, words: str = "") -> None:
        """How far it is, 0 to 1, and what is to be said beside it."""
        if self._drawn is not None and self._task is not None:
            self._drawn.update(self._task, completed=completed, words=Text(words).plain)
        elif int(completed * LINES + 1e-9) > self._lines:
            self._lines = int(completed * LINES + 1e-9)
            line = f"{self._title} {completed:4.0%}" + (f"  {words}" if words else "")
            self._console.print(Text(line), soft_wrap=True)


@contextmanager
def progress(console: Console, title: str) -> Iterator[Bar]:
    """A bar from 0 to 1. What is said beside it is cut where the line ends; the bar is not."""
    if not console.is_terminal:
        yield Bar(console, title, None)
        return
    words = TextColumn("{task.fields[words]}", markup=False, table_column=Column(ratio=1, no_wrap=True))
    bar = BarColumn(max(NARROWEST, min(WIDEST, console.width // 4)))
    name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    columns = (name, bar, TaskProgressColumn(), TimeElapsedColumn(), words)
    with Progress(*columns, console=console, expand=True) as drawn:
        yield Bar(console, title, drawn)


def follow(console: Console, title: str, events: Iterable[Json], words: Callable[[Json], str]) -> Json:
    """Draw a job's events as they come, each with `words` beside the bar; the last of them."""
    last: Json = {}
    with progress(console, title) as bar:
        for last in events:
            bar.update(last.get("progress") or 0.0, words(last))
    return last


def remaining(event: Json) -> str:
    """State, and about how long it still takes."""
    left = event.get("eta_seconds")
    return str(event["state"]) + ("" if left is None or event["state"] != "running" else f", about {left:.0f} s left")

"""A job's progress as a bar on the terminal."""

from collections.abc import Callable, Iterable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from app.cli.remote.service import Json


def follow(console: Console, title: str, events: Iterable[Json], words: Callable[[Json], str]) -> Json:
    """Draw a job's events as they come, each with `words` beside the bar; the last of them."""
    last: Json = {}
    told = TextColumn("{task.fields[told]}", markup=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(40), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, told, console=console) as progress:
        task = progress.add_task(title, total=1.0, told="")
        for last in events:
            progress.update(task, completed=last.get("progress") or 0.0, told=Text(words(last)).plain)
    return last


def remaining(event: Json) -> str:
    """State, and about how long it still takes."""
    left = event.get("eta_seconds")
    return str(event["state"]) + ("" if left is None or event["state"] != "running" else f", about {left:.0f} s left")

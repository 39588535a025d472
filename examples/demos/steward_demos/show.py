"""What demonstrations print and draw: headings, progress, tables; charts as PNG and HTML."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from app.charts import figures as style
from app.charts.figures import SCHEMA, Figure
from app.cli.remote.service import Json, RefusedError, UnreachableError
from app.cli.remote.train import Bar, follow, progress, remaining
from steward_demos.processes import ChildError


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


WIDTH, PANEL = 760, 170
SCALE = 1.5


def stack_charts(figures: Sequence[Figure]) -> Json:
    """One Vega-Lite definition of charts below one another, with their texts."""
    panels = [
        {name: part for name, part in one.spec.items() if name != "$schema"}
        | {"width": WIDTH, "height": PANEL, "title": {"text": one.title, "subtitle": one.caption}}
        for one in figures
    ]
    independent = {"scale": {"color": "independent"}}
    config = {**style.config(), "background": "white"}
    return {"$schema": SCHEMA, "vconcat": panels, "resolve": independent, "config": config}


def save_pictures(figures: Sequence[Figure], png: Path) -> list[Path]:
    """Write the charts as PNG and, beside it, as a self-contained HTML file; both paths."""
    import vl_convert

    spec = stack_charts(figures)
    png.parent.mkdir(parents=True, exist_ok=True)
    html = png.with_suffix(".html")
    png.write_bytes(vl_convert.vegalite_to_png(spec, scale=SCALE))
    html.write_text(vl_convert.vegalite_to_html(spec, bundle=True))
    return [png, html]


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

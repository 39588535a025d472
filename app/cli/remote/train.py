"""`steward train`: requests a training, follows it, and prints or draws the agent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from app.charts.text import decimals, moment, percent
from app.cli.child import draw_agent
from app.cli.failures import Json, exit_status
from app.cli.options import DONE, INTERRUPTED, REFUSED, UNMET
from app.cli.remote.outcomes import outcomes_table
from app.cli.remote.output import print_parts
from app.cli.remote.service import Json as ServiceJson
from app.cli.remote.service import RefusedError, Service, UnreachableError

# Progress as a bar on a terminal, otherwise as a few lines.


NARROWEST, WIDEST = 10, 40
LINES = 10
"""Number of lines for the whole progress without a terminal."""


class Bar:
    """Progress of one task: a bar on a terminal, or lines."""

    def __init__(self, console: Console, title: str, drawn: Progress | None) -> None:
        self._begun = time.monotonic()
        self._console, self._title, self._drawn = console, title, drawn
        self._task = drawn.add_task(title, total=1.0, words="") if drawn is not None else None
        self._lines = -1

    def remaining_time(self, completed: float) -> str:
        """Estimated remaining time in words, at constant pace; empty before 1 s or without progress."""
        taken = time.monotonic() - self._begun
        if completed <= 0 or taken < 1:
            return ""
        return f"about {taken * (1 - completed) / completed:,.0f} s left"

    def update(self, completed: float, words: str = "") -> None:
        """Show the completed share, 0 to 1, with words beside it."""
        if self._drawn is not None and self._task is not None:
            self._drawn.update(self._task, completed=completed, words=Text(words).plain)
        elif int(completed * LINES + 1e-9) > self._lines:
            self._lines = int(completed * LINES + 1e-9)
            line = f"{self._title} {completed:4.0%}" + (f"  {words}" if words else "")
            self._console.print(Text(line), soft_wrap=True)


@contextmanager
def progress(console: Console, title: str) -> Iterator[Bar]:
    """Context manager: a progress bar from 0 to 1; words beside it are truncated at the line's end."""
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
    """Show a job's events on a progress bar, with `words` beside it, and return the last event."""
    last: Json = {}
    with progress(console, title) as bar:
        for last in events:
            bar.update(last.get("progress") or 0.0, words(last))
    return last


def remaining(event: Json) -> str:
    """State and estimated remaining time of a job, in words, from an event (JSON)."""
    left = event.get("eta_seconds")
    return str(event["state"]) + ("" if left is None or event["state"] != "running" else f", about {left:.0f} s left")


# ``steward train``: have a running service train an agent, follow it, and print how it went and what came of it.


@dataclass(frozen=True)
class Options:
    """Options of ``steward train``; ``request``: body of the request, without members that are None; ``plot``: file for
    a drawing, None: none."""

    url: str
    workload: str
    request: dict[str, Any]
    as_json: bool = False
    require_promoted: bool = False
    plot: Path | None = None


def run(options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Run a training and print the agent to `output`, progress and errors to `notes` (None: standard streams).

    Returns 0 done, 1 refused or failed, 3 unreachable, 4 not promoted though required, 5 not found, 6 not authorised,
    130 interrupted.
    """
    output, notes = output or Console(), notes or Console(stderr=True)
    try:
        with Service(options.url) as service:
            result = _await_training(service, options, notes)
            # The trained agent from the service; None if no window of an online training brought a better one
            version = result["agent"]
            agent = None if version is None else service.call("GET", f"{_agents(options)}/{version}")
    except KeyboardInterrupt:
        notes.print("interrupted: the training is cancelled")
        return INTERRUPTED
    except (RefusedError, UnreachableError) as error:
        notes.print(Text(f"steward: {error}", "red"), soft_wrap=True)
        return exit_status(error)
    if agent is None:
        notes.print(Text(f"no window brought a better agent; of the last one: {result['last']['reason']}"))
        return UNMET if options.require_promoted else DONE
    if options.as_json:
        print_parts(output, [json.dumps(agent)])
    else:
        show(agent, output)
    if not draw_report(agent, options.plot, notes):
        return REFUSED
    return DONE if agent["promoted"] or not options.require_promoted else UNMET


def draw_report(agent: ServiceJson, file: Path | None, notes: Console) -> bool:
    """Draw an agent's report to a file, if given; False if that fails."""
    if file is None:
        return True
    if draw_agent(agent, file):
        return False
    notes.print(Text(f"report: {file}"))
    return True


def _await_training(service: Service, options: Options, notes: Console) -> ServiceJson:
    """Request a training and return its job's result; Ctrl-C cancels the job and is raised again.

    Raises:
        RefusedError, UnreachableError: a request or the job fails.
    """
    request = {name: value for name, value in options.request.items() if value is not None}
    job = service.call("POST", _agents(options), json=request)
    try:
        result: ServiceJson = follow(notes, "train", service.follow(job["id"]), words)["result"]
    except KeyboardInterrupt:
        with suppress(RefusedError):  # it has ended meanwhile
            service.call("POST", f"/jobs/{job['id']}/cancel")
        raise
    return result


def _agents(options: Options) -> str:
    return f"/workloads/{options.workload}/agents"


def words(event: ServiceJson) -> str:
    """Text of a job's event for the progress bar: state, phase, algorithm, and figures of the last chunk."""
    parts = [remaining(event), event.get("phase", "")]
    if event.get("phase") == "learning":
        several = event.get("trials", 1) > 1
        parts[1] = f"{event['algorithm']} seed {event['seed']}" if several else event["algorithm"]
        parts += [text.format(event[name]) for name, text in FIGURES.items() if event.get(name) is not None]
    if event.get("last"):
        parts.append(f"window {event['windows']}: {event['last']['verdict']}")
    return ", ".join(part for part in parts if part)


FIGURES = {
    "episode_return": "training return {:.3f}",
    "loss": "loss {:.4f}",
    "exploration": "exploration {:.3f}",
    "steps_per_second": "{:,.0f} steps/s",
}
"""Figures of an event that are shown, with their formats."""


def show(agent: ServiceJson, output: Console) -> None:
    """Print an agent: the contest of its training, and its verdict."""
    report = agent["report"]
    if len(report.get("bracket", ())) > 1:
        output.print(bracket(report["bracket"]))
    output.print(Text(f"agent {agent['version']}: {agent['algorithm']}, {_promotion(agent)}", "bold"))
    if agent.get("standing_reason"):
        output.print(Text(agent["standing_reason"], "bold"))
    if agent.get("instead"):
        output.print(Text(f"current policy: {agent['instead']}"))
    judged = _moment(agent.get("created_at"))
    verdict = Text(f"verdict when its training ended{f', {judged}' if judged else ''}: {report['reason']}")
    counted = [outcomes_table(report["outcomes"])] if report.get("outcomes") else []
    past = bool(agent.get("standing_reason"))  # then no figure stands before the date of the verdict that it is of
    output.print(*([verdict, *counted] if past else [*counted, verdict]), sep="\n")
    output.print(Text(f"return {_interval(report['return'])}{_gap(report)}"))
    if report.get("headroom"):
        output.print(Text(headroom(report["headroom"])))
    if alone := _unguarded_return(report):
        output.print(Text(alone))


HEADROOM_WIDTH = 40
HEADROOM_PARTS = (("gain", "█"), ("left", "▒"), ("beyond", "░"))
"""Parts of the bar and their characters: return that tuning, knowledge of the run, and hindsight of all chance add."""


def headroom(room: ServiceJson) -> str:
    """The return that could be gained over the served heuristic, as a bar and in words, and the share the agent won."""
    sizes = {name: max(room[name]["mean"], 0.0) for name, _ in HEADROOM_PARTS if room[name] is not None}
    whole = sizes["gain"] + max(sizes["left"], sizes.get("beyond", 0.0))
    sizes["beyond"] = whole - sizes["gain"] - sizes["left"]
    marks = (mark * round(HEADROOM_WIDTH * sizes[name] / (whole or 1.0)) for name, mark in HEADROOM_PARTS)
    won = room.get("share_won")
    share = f"\nthe agent won {_share(won)} of what knowing {room['knows']} would give" if won else ""
    return f"headroom {''.join(marks)} {room['text']}{share}"


def _share(won: ServiceJson) -> str:
    mean, low, high = (percent(won[part], 0) for part in ("mean", "low", "high"))
    return f"{mean} (95 % interval {low} to {high})"


def _unguarded_return(report: ServiceJson) -> str:
    """In words: return of the best trained network without the guard that replaces it; empty if there is none."""
    result = report.get("learned")
    if result is None:
        return ""
    return f"{result['algorithm']} by itself, seed {result['seed']}: return {_interval(result['return'])}{_gap(result)}"


def _promotion(agent: ServiceJson) -> str:
    """In words, since when the agent is champion, or until when it was; "never promoted" if it never was."""
    since, until = (_moment(agent.get(name)) for name in ("champion_since", "champion_until"))
    if agent["champion"]:
        return f"champion since {since}" if since else "champion"
    return f"was champion until {until}" if until else "never promoted"


def _moment(text: str | None) -> str:
    return moment(None if text is None else datetime.fromisoformat(text))


def _interval(result: ServiceJson) -> str:
    mean, low, high = (decimals(result[part], 5) for part in ("mean", "low", "high"))
    return f"{mean} (95 % interval {low} to {high})"


def _gap(report: ServiceJson) -> str:
    gap = report.get("gap_to_optimum")
    return "" if gap is None else f", {percent(gap, 2)} from the exact optimum"


def bracket(rows: list[ServiceJson]) -> Table:
    """Table of a training's trials: share of budget, steps, best validation return, and why each ended."""
    table = Table()
    for name, right in (("algorithm", False), ("seed", True), ("budget", True), ("steps", True), ("score", True)):
        table.add_column(name, justify="right" if right else "left")
    table.add_column("ended")
    for row in rows:
        ended = row["ended"] or ("chosen" if row["chosen"] else "completed")
        value = row["score"]
        cells = [
            row["algorithm"],
            row["seed"],
            percent(row["share"], 0),
            f"{row['steps']:,}",
            None if value is None else decimals(value, 5),
            ended,
        ]
        style = "bold green" if row["chosen"] else ""
        table.add_row(*(Text("–" if cell is None else str(cell), style) for cell in cells))
    return table

"""``steward evaluate``: requests an evaluation, follows it, saves its HTML report, and prints the verdicts."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.charts.text import moment
from app.cli.failures import exit_status
from app.cli.options import DONE, INTERRUPTED, LEVELS, UNMET, Format, visible
from app.cli.remote import train
from app.cli.remote.outcomes import by_level
from app.cli.remote.output import console, document, print_parts
from app.cli.remote.request import meant
from app.cli.remote.service import Json, RefusedError, Service, UnreachableError

CELL, SHORTEST = len("-0.1234 ✓"), 12


@dataclass(frozen=True)
class Options:
    """Options of ``steward evaluate``; ``request``: body of the request; ``out``: file for the HTML report;
    ``require``: lowest robustness class of the agents, None: any."""

    url: str
    request: dict[str, Any]
    out: Path
    as_json: bool = False
    require: str | None = None


def run(options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Request an evaluation, write its HTML report, and print its tables to `output`, progress and errors to `notes`.

    Returns 0 done, 1 refused or failed, 3 unreachable, 4 below ``require``, 5 not found, 6 not authorised, 130
    interrupted. Consoles None: standard streams. Raises OSError if the report can't be written.
    """
    output, notes = output or Console(), notes or Console(stderr=True)
    try:
        with Service(options.url) as service:
            evaluation = _request_evaluation(service, options, notes)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_bytes(service.download(f"/evaluations/{evaluation['id']}/report"))
    except KeyboardInterrupt:
        notes.print("interrupted: the evaluation is cancelled")
        return INTERRUPTED
    except (RefusedError, UnreachableError) as error:
        notes.print(Text(f"steward: {error}", "red"), soft_wrap=True)
        return exit_status(error)
    show(evaluation, output, as_json=options.as_json)
    notes.print(Text(f"report: {options.out}"))
    return DONE if reaches_class(evaluation, options.require) else UNMET


def again(url: str, evaluation: str, form: Format | None = None, *, as_json: bool) -> None:
    """Print an earlier evaluation, as tables if ``form`` is None; raises RefusedError if the service refuses (as if
    there is none), and UnreachableError if it doesn't respond."""
    with Service(url) as service:
        path = "/evaluations"
        result = service.call("GET", f"{path}/{meant(service, path, 'id', evaluation)}")
    if form in (None, "table", "wide"):
        show(result, Console(), as_json=as_json)
    else:
        print_parts(console(), document(result, form, result["id"]))


def _request_evaluation(service: Service, options: Options, notes: Console) -> Json:
    """Request an evaluation and return it when finished; Ctrl-C cancels its job and is raised again.

    Raises:
        RefusedError, UnreachableError: a request or the job fails.
    """
    job = service.call("POST", "/evaluations", json=options.request)
    try:
        ended = train.follow(notes, "evaluate", service.follow(job["id"]), words)
    except KeyboardInterrupt:
        with suppress(RefusedError):  # it has ended meanwhile
            service.call("POST", f"/jobs/{job['id']}/cancel")
        raise
    return service.call("GET", f"/evaluations/{ended['result']['evaluation']}")


def words(event: Json) -> str:
    """Text of a job's event for the progress bar: remaining time, phase, level and policy."""
    where = " ".join(str(event[key]) for key in ("phase", "level", "policy") if event.get(key))
    return ", ".join(part for part in (train.remaining(event), where) if part)


def show(result: Json, output: Console, *, as_json: bool = False) -> None:
    """Print an evaluation: as JSON, or as tables."""
    if as_json:
        print_parts(output, [json.dumps(result)])
        return
    report = result["report"]
    if report.get("outcomes"):
        output.print(by_level(report, [level for level in report["levels"] if level["level"] in LEVELS]))
    output.print(returns(report, output.width))
    time = datetime.fromisoformat(result["created_at"]) if "created_at" in result else None
    for verdict in result["verdicts"]:
        past = "" if verdict.get("current", True) else ", by an earlier version of the judge: evaluate it again"
        text = f"agent {verdict['agent']}: {verdict['level'] or 'no class'}{past}"
        output.print(Text.assemble((text, "bold"), f" ({moment(time)})" if time else ""))
        output.print(Text(visible(verdict["reason"])))


def returns(report: Json, width: int) -> Table:
    """Table of policies' mean returns by level, with agents' passed and reached levels; ``width`` in characters."""
    levels = [level for level in report["levels"] if level["level"] in LEVELS]
    table = Table(
        title=Text(f"Mean return on {report['workload']}"), title_justify="left", box=None, padding=(0, 1, 0, 0)
    )
    room = width - (CELL + 1) * len(levels) - len("level") - 2
    table.add_column("policy", no_wrap=True, max_width=max(room, SHORTEST))  # names give way, not figures and marks
    for level in levels:
        table.add_column(level["level"], no_wrap=True)
    table.add_column("level", no_wrap=True)
    agents = {candidate["name"]: candidate for candidate in report["candidates"]}
    for policy in report["policies"]:
        name = policy["name"]
        passed = {level["level"]: level["passed"] for level in agents.get(name, {"levels": []})["levels"]}
        cells = [_cell(level, name, passed.get(level["level"])) for level in levels]
        shown = Text(visible(name), "bold" if name in agents else "")
        table.add_row(shown, *cells, agents.get(name, {}).get("class", ""))
    return table


def _cell(level: Json, name: str, passed: bool | None) -> Text:
    scores = level["policies"].get(name)
    if scores is None or scores["return"] is None:
        return Text("–")
    mark = {True: " ✓", False: " ✗", None: "  "}[passed]
    colour = {True: "green", False: "red", None: ""}[passed]
    return Text(f"{scores['return']['mean']:7.4f}{mark}", colour)


def reaches_class(result: Json, required: str | None) -> bool:
    """Whether every agent's class in an evaluation (JSON) is at least ``required``; True for None."""
    if required is None:
        return True
    levels = [verdict["level"] for verdict in result["verdicts"]]
    return all(level is not None and LEVELS.index(level) >= LEVELS.index(required) for level in levels)

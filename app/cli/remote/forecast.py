"""``steward forecast``: prints or draws the forecast of a workload's domain model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.charts.text import number, percent
from app.cli.child import draw_forecast
from app.cli.failures import RefusedError, UnreachableError, exit_status
from app.cli.operations import NEWEST, Column
from app.cli.options import DONE, REFUSED, Format, visible
from app.cli.remote.output import document, list_parts, print_parts
from app.cli.remote.request import meant
from app.cli.remote.service import Json, Service


@dataclass(frozen=True)
class Options:
    """Options of ``steward forecast``; ``model``: its version, None: the newest; ``plot``: file for a drawing, None:
    none; ``form``: output format, None: a table."""

    url: str
    workload: str
    model: int | None = None
    plot: Path | None = None
    as_json: bool = False
    form: Format | None = None


def run(options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Print the forecast to `output` and errors to `notes` (None: standard streams). Returns 0 done, 1 refused or not
    drawn, 3 unreachable, 5 not found, 6 not authorised."""
    output, notes = output or Console(), notes or Console(stderr=True)
    try:
        with Service(options.url) as service:
            path = f"/workloads/{options.workload}/models"
            answer = service.call(
                "GET", f"{path}/{meant(service, path, 'version', str(options.model or NEWEST))}/forecast"
            )
    except (RefusedError, UnreachableError) as error:
        notes.print(Text(f"steward: {error}", "red"), soft_wrap=True)
        return exit_status(error)
    if options.as_json:
        print_parts(output, [json.dumps(answer)])
    elif options.form in ("json", "yaml"):
        print_parts(output, document(answer, options.form))
    elif options.form in ("csv", "name"):
        columns = [Column.parse(name) for name in answer["rows"][0]] if answer["rows"] else []
        print_parts(output, list_parts(columns, answer["rows"], options.form, output.width))
    else:
        output.print(forecast_table(answer))
    return DONE if _draw_forecast(answer, options.plot, notes) else REFUSED


def forecast_table(answer: Json) -> Table:
    """Table of a forecast (the API's JSON), with a row per series and horizon."""
    title = f"Expected of {answer['workload']} by model {answer['model']}, {percent(answer['level'], 0)} intervals"
    table = Table(title=Text(title), title_justify="left", box=None, padding=(0, 1, 0, 0))
    for head in ("series", "from (UTC)", "horizon (s)", "mean", "median", "low", "high", "by"):
        table.add_column(head, no_wrap=True)
    for row in answer["rows"]:
        counts = [number(row[name]) for name in ("mean", "median", "low", "high")]
        cells = [row["series"], row["time"], f"{row['horizon_seconds']:,g}", *counts, row["family"]]
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _draw_forecast(answer: Json, file: Path | None, notes: Console) -> bool:
    if file is None:
        return True
    if draw_forecast(answer, file):
        return False
    notes.print(Text(f"forecast: {file}"))
    return True

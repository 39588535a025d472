"""``steward samples`` on the command line: files of samples beside what is said of the noun."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.nouns.catalogue import SAMPLES
from app.cli.nouns.commands import Workload, executions, group
from app.cli.options import SERVICE, AsJson, Url

Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Files, plain or gzip.")]
Format = Annotated[
    Literal["csv", "ndjson", "json", "swf", "wfformat"] | None,
    typer.Option("--format", help="File format. [default: by the file's suffix]"),
]
Execution = Annotated[
    str | None, typer.Option(help="Name of one execution, or the name to give a trace.", autocompletion=executions)
]


def register(cli: typer.Typer) -> None:
    """Add the commands about samples to the ``steward`` command."""
    samples = group(SAMPLES)
    cli.add_typer(samples)
    samples.command("create")(upload)
    samples.command()(export)


def upload(
    workload: Workload,
    files: Files,
    execution: Execution = None,
    format_: Format = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip and report invalid lines.")] = False,
    as_json: AsJson = False,
    url: Url = SERVICE,
) -> None:
    """Upload sample files; stored samples are left unchanged.

    Exit status: 0 done, 1 refused, 2 usage error, 3 service unreachable, 5 not found, 6 not authorized,
    130 interrupted.
    """
    from app.cli.remote.perform import upload as run

    query = {"execution": execution} if execution is not None else {}
    run(url, workload, files, format_, query | ({"skip_bad": "true"} if skip_bad else {}), as_json=as_json)


def export(
    workload: Workload,
    out: Annotated[Path | None, typer.Option(dir_okay=False, help="File to write. [default: standard output]")] = None,
    execution: Execution = None,
    format_: Format = None,
    url: Url = SERVICE,
) -> None:
    """Export samples in a format that can be uploaded again.

    Traces are exported one at a time, selected by --execution.

    Exit status: 0 done, 1 refused, 2 usage error, 3 service unreachable, 5 not found, 6 not authorized,
    130 interrupted.
    """
    from app.cli.remote.perform import export as run

    run(url, workload, out, format_, execution)

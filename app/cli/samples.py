"""``steward samples`` on the command line: files of samples beside what is said of the noun."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.nouns.catalogue import SAMPLES
from app.cli.nouns.commands import Workload, group
from app.cli.options import SERVICE, AsJson, Url

Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Files, plain or gzip.")]
Format = Annotated[
    Literal["csv", "ndjson", "json", "swf", "wfformat"] | None,
    typer.Option("--format", help="Of the file. [default: what its name ends in]"),
]
Execution = Annotated[str | None, typer.Option(help="Name of one execution; of a trace, what to call it.")]


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
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that can't be right.")] = False,
    as_json: AsJson = False,
    url: Url = SERVICE,
) -> None:
    """Upload files of samples; what is stored already is left as it is.

    Exit status: 0 done, 1 refused, 2 misused, 3 no service there, 5 no such workload, 6 not allowed, 130 interrupted.
    """
    from app.cli.remote.nouns.files import upload as run

    query = {"execution": execution} if execution is not None else {}
    run(url, workload, files, format_, query | ({"skip_bad": "true"} if skip_bad else {}), as_json=as_json)


def export(
    workload: Workload,
    out: Annotated[Path | None, typer.Option(dir_okay=False, help="File to write. [default: standard output]")] = None,
    execution: Execution = None,
    format_: Format = None,
    url: Url = SERVICE,
) -> None:
    """Write samples in a format that can be uploaded again.

    Traces are written one by one, named by --execution.

    Exit status: 0 done, 1 refused, 2 misused, 3 no service there, 5 no such workload, 6 not allowed, 130 interrupted.
    """
    from app.cli.remote.nouns.files import export as run

    run(url, workload, out, format_, execution)

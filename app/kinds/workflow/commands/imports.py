"""Registration of ``steward import``; its implementation is imported only when the command runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.imports import group
from app.cli.options import SERVICE, Url

Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Files, plain or gzip.")]
Processors = Annotated[
    int | None, typer.Option(min=1, help="Processors of the largest node; larger tasks are refused.")
]
Export = Annotated[Path | None, typer.Option(help="File to convert the input to; gzip if it ends in .gz.")]
To = Annotated[Literal["swf", "wfformat"] | None, typer.Option(help="Format of that file. [default: the input's]")]
Workload = Annotated[str | None, typer.Option(help="Workload of kind workflow to upload samples to.")]
Name = Annotated[str | None, typer.Option(help="Name of the sample. [default: the file's name]")]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON list, one entry per file, not text.")]


def register(cli: typer.Typer) -> None:
    """Add the trace imports to the ``steward`` command."""
    imports = group(cli)
    imports.command()(swf)
    imports.command()(sacct)
    imports.command()(wfformat)


def swf(
    files: Files,
    clip: Annotated[bool, typer.Option("--clip", help="Cap run times at their estimates.")] = False,
    sort: Annotated[bool, typer.Option("--sort", help="Sort jobs by submission time.")] = False,
    preceding: Annotated[bool, typer.Option("--preceding", help="Treat preceding jobs as parents.")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip and report invalid lines.")] = False,
    processors: Processors = None,
    export: Export = None,
    to: To = None,
    workload: Workload = None,
    name: Name = None,
    url: Url = SERVICE,
    json: Json = False,
) -> None:
    """Read batch logs in Standard Workload Format.

    Exit status: 0 done, 1 file or request refused, 2 usage error, 3 service unreachable, 130 interrupted.
    """
    from app.kinds.workflow.commands.import_traces import Options, run

    options = {"clip": clip, "sort": sort, "preceding": preceding, "skip_bad": skip_bad}
    raise typer.Exit(run(Options("swf", files, options, processors, export, to or "swf", workload, name, url, json)))


def sacct(
    files: Files,
    clip: Annotated[bool, typer.Option("--clip", help="Cap run times at their limits.")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip and report invalid lines.")] = False,
    processors: Processors = None,
    export: Export = None,
    to: To = None,
    workload: Workload = None,
    name: Name = None,
    url: Url = SERVICE,
    json: Json = False,
) -> None:
    """Read Slurm's accounts: sacct --allusers --parsable2.

    Exit status: 0 done, 1 file or request refused, 2 usage error, 3 service unreachable, 130 interrupted.
    """
    from app.kinds.workflow.commands.import_traces import Options, run

    options = {"clip": clip, "skip_bad": skip_bad}
    raise typer.Exit(run(Options("sacct", files, options, processors, export, to or "swf", workload, name, url, json)))


def wfformat(
    files: Files,
    processors: Processors = None,
    export: Export = None,
    to: To = None,
    workload: Workload = None,
    name: Name = None,
    url: Url = SERVICE,
    json: Json = False,
) -> None:
    """Read workflows in WfFormat 1.4 or 1.5 (WfCommons).

    Exit status: 0 done, 1 file or request refused, 2 usage error, 3 service unreachable, 130 interrupted.
    """
    from app.kinds.workflow.commands.import_traces import Options, run

    raise typer.Exit(
        run(Options("wfformat", files, {}, processors, export, to or "wfformat", workload, name, url, json))
    )

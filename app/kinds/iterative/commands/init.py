"""Registration of ``steward init``; its implementation is imported only when the command runs."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import MISUSED

Log = Annotated[
    Path | None,
    typer.Option("--from", exists=True, dir_okay=False, help="Infer the spec from this CSV file, plain or gzip."),
]


def register(cli: typer.Typer) -> None:
    """Add the command ``steward init`` to ``cli``."""
    cli.command()(init)


def init(
    name: Annotated[str | None, typer.Argument(help="Name of the workload. [default: prompt]")] = None,
    log: Log = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Iterations of a run. [default: prompt, or as the longest execution]")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(min=1e-3, help="Deadline of a run, in seconds. [default: prompt, or inferred]")
    ] = None,
    out: Annotated[Path, typer.Option(dir_okay=False, help="File to write.")] = Path("workload.json"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Also print the spec to standard output.")] = False,
) -> None:
    """Write a workload's spec, interactively or from a log.

    For kind iterative, such as a training; the log holds samples.

    Exit status: 0 done, 2 usage error (invalid log or answer, or the file exists), 130 interrupted.
    """
    from app.kinds.contract.inputs import InvalidInput
    from app.kinds.iterative.commands.write import CommandArguments, write

    try:
        write(CommandArguments(name, log, iterations, deadline), out, force=force, as_json=as_json)
    except InvalidInput as error:
        for issue in error.errors:
            where = f"{issue.pointer.removeprefix('/')}: " if issue.pointer else ""
            typer.echo(f"steward init: {where}{issue.message}", err=True)
        raise typer.Exit(MISUSED) from error

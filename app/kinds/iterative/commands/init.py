"""``steward init`` on the command line; what it does is imported when it is asked for."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import MISUSED

Log = Annotated[
    Path | None,
    typer.Option("--from", exists=True, dir_okay=False, help="CSV file of samples, plain or gzip: guess, ask nothing."),
]


def register(cli: typer.Typer) -> None:
    """Add it to the ``steward`` command."""
    cli.command()(init)


def init(
    name: Annotated[str | None, typer.Argument(help="Name of the workload. [default: asked for]")] = None,
    log: Log = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Iterations of a run. [default: asked for, or as the longest execution]")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(min=1e-3, help="Seconds that a run may take. [default: asked for, or guessed]")
    ] = None,
    out: Annotated[Path, typer.Option(dir_okay=False, help="File to write.")] = Path("workload.json"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the spec on standard output, too.")] = False,
) -> None:
    """Write the spec of a workload, by asking or from a log.

    Of kind iterative, such as a training; the log is one of samples.

    Exit status: 0 done, 2 misused (the log or an answer can't be right, or the file is there already), 130 interrupted.
    """
    from app.kinds.contract.inputs import InvalidInput
    from app.kinds.iterative.commands.write import Given, write

    try:
        write(Given(name, log, iterations, deadline), out, force=force, as_json=as_json)
    except InvalidInput as error:
        for issue in error.errors:
            where = f"{issue.pointer.removeprefix('/')}: " if issue.pointer else ""
            typer.echo(f"steward init: {where}{issue.message}", err=True)
        raise typer.Exit(MISUSED) from error

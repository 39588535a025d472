"""``steward import jobs`` on the command line; what it does is imported when it is asked for."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import SERVICE, Url

Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="CSV or NDJSON, plain or gzip.")]
Spec = Annotated[Path, typer.Option(exists=True, dir_okay=False, help="JSON: nodes, queues.")]
Check = Annotated[bool, typer.Option("--check", help="Only read the files and tell what is in them.")]


def register(cli: typer.Typer) -> None:
    """Add the import of jobs to the ``steward`` command."""
    imports = typer.Typer(no_args_is_help=True)
    cli.add_typer(imports, name="import")
    imports.callback()(_imports)
    imports.command()(jobs)


def _imports() -> None:
    """Read logs of your own, check and upload them."""


def jobs(files: Files, spec: Spec, check: Check = False, url: Url = SERVICE) -> None:
    """Read logs of jobs, measured steps and learning curves.

    Their cluster is registered, they are uploaded, and a model is fitted.

    Exit status: 0 done, 1 a file or the service refused, 2 misused, 3 no service there, 130 interrupted.
    """
    from app.cli.remote.sample_import import Options, run
    from app.kinds.cluster.commands.import_jobs import JOBS

    raise typer.Exit(run(JOBS, Options(files, spec, check, url)))

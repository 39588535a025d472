"""``steward import jobs`` on the command line; what it does is imported when it is asked for."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import SERVICE, Url

Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="CSV or NDJSON, plain or gzip.")]
Spec = Annotated[Path, typer.Option(exists=True, dir_okay=False, help="JSON file: nodes, queues.")]
Check = Annotated[bool, typer.Option("--check", help="Only read the files and summarize them.")]


def register(cli: typer.Typer) -> None:
    """Add the import of jobs to the ``steward`` command."""
    imports = typer.Typer(no_args_is_help=True)
    cli.add_typer(imports, name="import")
    imports.callback()(_imports)
    imports.command()(jobs)


def _imports() -> None:
    """Read, check and upload logs."""


def jobs(files: Files, spec: Spec, check: Check = False, url: Url = SERVICE) -> None:
    """Import logs of jobs, measured steps and learning curves.

    Registers the cluster, uploads the logs and fits a model.

    Exit status: 0 done, 1 file or request refused, 2 usage error, 3 service unreachable, 130 interrupted.
    """
    from app.cli.remote.sample_import import Options, run
    from app.kinds.cluster.commands.import_jobs import JOBS

    raise typer.Exit(run(JOBS, Options(files, spec, check, url)))

"""``steward import requests`` on the command line; what it does is imported when it is asked for."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import SERVICE, Url

Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="CSV or NDJSON, plain or gzip.")]
Spec = Annotated[Path, typer.Option(exists=True, dir_okay=False, help="JSON file: variants, servers, users.")]
Check = Annotated[bool, typer.Option("--check", help="Only read the files and summarize them.")]


def register(cli: typer.Typer) -> None:
    """Add the import of requests to the ``steward`` command."""
    imports = typer.Typer(no_args_is_help=True)
    cli.add_typer(imports, name="import")
    imports.callback()(_imports)
    imports.command()(requests)


def _imports() -> None:
    """Read, check and upload logs."""


def requests(files: Files, spec: Spec, check: Check = False, url: Url = SERVICE) -> None:
    """Import logs of requests and measured batches.

    Registers the workload, uploads the logs and fits a model.

    Exit status: 0 done, 1 file or request refused, 2 usage error, 3 service unreachable, 130 interrupted.
    """
    from app.cli.remote.sample_import import Options, run
    from app.kinds.inference.commands.import_requests import REQUESTS

    raise typer.Exit(run(REQUESTS, Options(files, spec, check, url)))

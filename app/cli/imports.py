"""``steward import``: commands that kinds add for files of samples."""

from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer

from app.cli.options import SERVICE, Url

EXIT = "Exit status: 0 done, 1 file or request refused, 2 usage error, 3 service unreachable, 130 interrupted."
Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="CSV or NDJSON, plain or gzip.")]
Check = Annotated[bool, typer.Option("--check", help="Only read the files and summarize them.")]


def group(cli: typer.Typer) -> typer.Typer:
    """The group ``import``, added to the ``steward`` command."""
    imports = typer.Typer(no_args_is_help=True)
    cli.add_typer(imports, name="import", help="Read, check and upload logs.")
    return imports


def add_import(cli: typer.Typer, name: str, what: str, spec_help: str, text: str) -> None:
    """Add ``steward import NAME``, described by ``text``; ``what``: its ``sample_import.Import`` as ``module:name``."""

    def command(
        files: Files,
        spec: Annotated[Path, typer.Option(exists=True, dir_okay=False, help=spec_help)],
        check: Check = False,
        url: Url = SERVICE,
    ) -> None:
        from app.cli.remote.sample_import import Options, run

        raise typer.Exit(run(resolve_name(what), Options(files, spec, check, url)))

    group(cli).command(name, help=f"{text}\n\n{EXIT}")(command)

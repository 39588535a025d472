"""Registration of ``steward import requests``; its implementation is imported only when the command runs."""

import typer

from app.cli.imports import add_import


def register(cli: typer.Typer) -> None:
    """Add the subcommand ``steward import requests`` to ``cli``."""
    add_import(
        cli,
        "requests",
        "app.kinds.inference.commands.import_requests:REQUESTS",
        "JSON file: variants, servers, users.",
        "Import logs of requests and measured batches.\n\nRegisters the workload, uploads the logs and fits a model.",
    )

"""``steward import requests`` on the command line; what it does is imported when it is asked for."""

import typer

from app.cli.imports import add_import


def register(cli: typer.Typer) -> None:
    """Add the import of requests to the ``steward`` command."""
    add_import(
        cli,
        "requests",
        "app.kinds.inference.commands.import_requests:REQUESTS",
        "JSON file: variants, servers, users.",
        "Import logs of requests and measured batches.\n\nRegisters the workload, uploads the logs and fits a model.",
    )

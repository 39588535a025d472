"""``steward import jobs`` on the command line; what it does is imported when it is asked for."""

import typer

from app.cli.imports import add_import


def register(cli: typer.Typer) -> None:
    """Add the import of jobs to the ``steward`` command."""
    add_import(
        cli,
        "jobs",
        "app.kinds.cluster.commands.import_jobs:JOBS",
        "JSON file: nodes, queues.",
        "Import logs of jobs, measured steps and learning curves.\n\n"
        "Registers the cluster, uploads the logs and fits a model.",
    )

"""Registration of ``steward import jobs``; its implementation is imported only when the command runs."""

import typer

from app.cli.imports import add_import


def register(cli: typer.Typer) -> None:
    """Add the subcommand ``steward import jobs`` to ``cli``."""
    add_import(
        cli,
        "jobs",
        "app.kinds.cluster.commands.import_jobs:JOBS",
        "JSON file: nodes, queues.",
        "Import logs of jobs, measured steps and learning curves.\n\n"
        "Registers the cluster, uploads the logs and fits a model.",
    )

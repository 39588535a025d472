"""`steward db prune`: what would go as a table, or a process of its own that archives and deletes it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import typer
from rich.console import Console

from app import startup
from app.cli.nouns.contract import Column
from app.cli.remote.nouns.tables import table
from app.database.engine import Database
from app.processes import child_command
from app.retention.prune import plan

COLUMNS = (Column("workload", "workload"), Column("what", "noun"), Column("rows", "rows"))


def say(data: Path | None, *, as_json: bool) -> int:
    """Print what would be deleted now."""
    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    database = Database(settings.database_url, settings)
    try:
        found = plan(database, settings)
    finally:
        database.dispose()
    if as_json:
        for one in found:
            typer.echo(json.dumps(one._asdict()))
    elif found:
        Console().print(table(COLUMNS, [one._asdict() for one in found]))
    else:
        typer.echo("nothing would be deleted")
    return 0


def go(data: Path | None) -> int:
    """Archive and delete; the exit status."""
    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    folder = {"STEWARD_DATA_DIR": str(settings.data_dir)}
    return subprocess.run(child_command("workers.prune"), check=False, env={**os.environ, **folder}).returncode

"""`steward db prune`: what would go as a table, or a process of its own that archives and deletes it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import typer

from app import startup
from app.database.engine import Database
from app.processes import child_command
from app.retention.prune import Due, plan


def say(data: Path | None) -> int:
    """Print what would be deleted now."""
    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    database = Database(settings.database_url, settings)
    try:
        found = plan(database, settings)
    finally:
        database.dispose()
    typer.echo(table(found))
    return 0


def table(found: list[Due]) -> str:
    """One line per workload and noun."""
    if not found:
        return "nothing would be deleted"
    wide = max(len("workload"), *(len(one.workload) for one in found))
    rows = [f"{one.workload or '-':{wide}}  {one.noun:16}  {one.rows:>12,}" for one in found]
    return "\n".join([f"{'workload':{wide}}  {'what':16}  {'rows':>12}", *rows])


def go(data: Path | None) -> int:
    """Archive and delete; the exit status."""
    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    folder = {"STEWARD_DATA_DIR": str(settings.data_dir)}
    return subprocess.run(child_command("workers.prune"), check=False, env={**os.environ, **folder}).returncode

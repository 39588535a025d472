"""``steward db``: commands that manage the database."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import AsJson, DataDir


def register(cli: typer.Typer) -> None:
    """Add the group ``db`` to the ``steward`` command."""
    database = typer.Typer(help="Manage the database.", no_args_is_help=True)
    cli.add_typer(database, name="db")
    database.callback()(_database)
    database.command()(upgrade)
    database.command()(prune)
    database.command()(backup)
    database.command()(restore)


def prune(
    data: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: print one JSON document per line.")] = False,
) -> None:
    """Archive and delete expired data. Workers do so automatically."""
    from app.cli.server.data import go, say

    raise typer.Exit(say(data, as_json=as_json) if dry_run else go(data))


def backup(
    file: Annotated[Path, typer.Argument(help="File to write.")],
    data: DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Back up the database to a file.

    A consistent snapshot; the service may keep running.
    """
    from app.cli.server.data import backup as run

    run(data, file, force=force, as_json=as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="File written by `steward db backup`.")],
    data: DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Replace all data in the database.")] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty database.

    Stop the service first; the backup is migrated to this version.

    Exit status: 0 done, 2 failed: the database is in use or not empty, or the file is damaged or too new, for example.
    """
    from app.cli.server.data import restore as run

    run(data, file, force=force, as_json=as_json)


def _database() -> None:
    """Manage the database: migrate, back up and restore it."""


def upgrade(data: DataDir = None) -> None:
    """Migrate the database to this version.

    An embedded database is created.
    """
    from app import startup
    from app.cli.server.data import migrate

    settings = startup.load_settings(data_dir=data)
    startup.check_folder(settings.data_dir)
    startup.check_database(settings, creates=True)
    migrate(settings)

"""``steward db``: the database's tables."""

from typing import Annotated

import typer

from app.cli.options import DataDir


def register(cli: typer.Typer) -> None:
    """Add the commands about the database to the ``steward`` command."""
    database = typer.Typer(help="The database.", no_args_is_help=True)
    cli.add_typer(database, name="db")
    database.callback()(_database)
    database.command()(upgrade)
    database.command()(prune)


def prune(
    data: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Archive and delete what is older than it is kept. Workers do so by themselves."""
    from app.cli.server.prune import go, say

    raise typer.Exit(say(data) if dry_run else go(data))


def _database() -> None:
    """The database."""


def upgrade(data: DataDir = None) -> None:
    """Bring the database's tables to this version; creates the embedded one."""
    from app import startup
    from app.cli.server.migrations import migrate

    settings = startup.load_settings(data_dir=data)
    startup.check_folder(settings.data_dir)
    startup.check_database(settings, creates=True)
    migrate(settings)

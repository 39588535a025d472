"""``steward db``: the database's tables."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import AsJson, DataDir


def register(cli: typer.Typer) -> None:
    """Add the commands about the database to the ``steward`` command."""
    database = typer.Typer(help="The database.", no_args_is_help=True)
    cli.add_typer(database, name="db")
    database.callback()(_database)
    database.command()(upgrade)
    database.command()(downgrade)
    database.command()(prune)
    database.command()(backup)
    database.command()(restore)


def prune(
    data: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: a JSON document on a line.")] = False,
) -> None:
    """Archive and delete what is older than it is kept. Workers do so by themselves."""
    from app.cli.server.prune import go, say

    raise typer.Exit(say(data, as_json=as_json) if dry_run else go(data))


def backup(
    file: Annotated[Path, typer.Argument(help="File to write.")],
    data: DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write all that the database holds to a file.

    As of one moment, while it is used.
    """
    from app.cli.server.backups import backup as run

    run(data, file, force=force, as_json=as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="File that `steward db backup` wrote.")],
    data: DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Replace all that the database holds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put what a backup holds into an empty database.

    While nothing serves; it is brought to this version.
    """
    from app.cli.server.backups import restore as run

    run(data, file, force=force, as_json=as_json)


def _database() -> None:
    """The database."""


def upgrade(data: DataDir = None) -> None:
    """Bring the database's tables to this version.

    The embedded one is created.
    """
    from app import startup
    from app.cli.server.migrations import migrate

    settings = startup.load_settings(data_dir=data)
    startup.check_folder(settings.data_dir)
    startup.check_database(settings, creates=True)
    migrate(settings)


def downgrade(data: DataDir = None) -> None:
    """Take the tables back by one migration.

    For the release before this one, while nothing serves.
    """
    from app import startup
    from app.cli.server import lock
    from app.cli.server.migrations import migrate

    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    holder = lock.holder(settings.data_dir)
    if holder is not None:
        raise startup.StartupError(f"nothing was changed: process {holder} serves {settings.data_dir}; stop it first")
    migrate(settings, back=True)
    typer.echo("the tables are back by one migration; `steward db upgrade` brings them to this release again")

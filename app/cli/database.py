"""``steward db``: the database's tables."""

import typer

from app.cli.options import DataDir


def register(cli: typer.Typer) -> None:
    """Add the commands about the database to the ``steward`` command."""
    database = typer.Typer(help="The database.", no_args_is_help=True)
    cli.add_typer(database, name="db")
    database.callback()(_database)
    database.command()(upgrade)


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

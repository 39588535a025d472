"""The `steward` command. Nothing heavy is imported before a command needs it: `steward --help` is instant.

Commands of other rooms stand in modules of their own, which offer `register(cli: typer.Typer)` and import what they
need inside their commands; they are listed in `ROOMS`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from app.settings import Settings

ROOMS = (
    "app.cli.demo",
    "app.cli.evaluations",
    "app.cli.agents",
    "app.cli.imports",
    "app.cli.simulate",
)

cli = typer.Typer(
    name="steward",
    help="Steward: allocation as a service.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
database_cli = typer.Typer(help="The database.", no_args_is_help=True)
cli.add_typer(database_cli, name="db")

DataDir = Annotated[Path | None, typer.Option("--data", help="Folder for everything that the embedded mode keeps.")]


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one. [default: 8080]")] = None,
    data: DataDir = None,
    workers: Annotated[int | None, typer.Option(min=0, help="Worker processes; 0 for none. [default: 1]")] = None,
) -> None:
    """Migrate the database, then run the API and its workers until SIGTERM."""
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: small products gain nothing by threads
    from app.cli import serve as snapshot
    from app.settings import Settings

    given = {"host": host, "port": port, "data_dir": data, "workers": workers}
    settings = Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    try:
        snapshot.serve(settings)
    except snapshot.OpenAddress as error:
        typer.echo(f"steward serve: {error}", err=True)
        raise typer.Exit(2) from error


@cli.command()
def worker(
    data: DataDir = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Processes that work. [default: 1]")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only tell, by exit status, whether a worker of this host is alive.")
    ] = False,
) -> None:
    """Run a worker by itself: as many as needed, on any host that reaches database and broker."""
    import os
    import sys

    from app.settings import Settings

    settings = Settings(data_dir=data) if data is not None else Settings()
    if check:
        raise typer.Exit(0 if _worker_is_alive(settings) else 1)
    os.environ["STEWARD_DATA_DIR"] = str(settings.data_dir)
    processes = str(concurrency or max(1, settings.workers))
    os.execv(sys.executable, [sys.executable, "-m", "workers", "--concurrency", processes])  # noqa: S606


def _worker_is_alive(settings: Settings) -> bool:
    from app.database import seen
    from app.database.engine import Database
    from app.processes import node_name

    database = Database(settings.database_url, settings)
    try:
        with database.reading() as session:
            return seen.seen_lately(session, settings.worker_seen_seconds, f"{node_name()}/") is not None
    finally:
        database.dispose()


@cli.command()
def health() -> None:
    """Tell, by exit status, whether the API of these settings answers on this machine."""
    from urllib.error import URLError
    from urllib.request import urlopen

    from app.settings import Settings

    settings = Settings()
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    try:
        urlopen(f"http://{host}:{settings.port}/healthz", timeout=4).close()
    except (URLError, TimeoutError, ConnectionError) as error:
        typer.echo(f"steward health: {error}", err=True)
        raise typer.Exit(1) from error


@database_cli.command("upgrade")
def database_upgrade(data: DataDir = None) -> None:
    """Bring the database's tables to this version; creates the embedded one."""
    from app.settings import Settings
    from migrations.runner import upgrade

    settings = Settings(data_dir=data) if data is not None else Settings()
    upgrade(settings.database_url)


for _room in ROOMS:
    import_module(_room).register(cli)


def main() -> None:
    """The entry point of the command."""
    cli()


if __name__ == "__main__":
    main()

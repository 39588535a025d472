"""``steward serve``, ``steward worker`` and ``steward health``: the service's processes."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import DataDir, address, without_userinfo

if TYPE_CHECKING:
    from app.settings import Settings


def register(cli: typer.Typer) -> None:
    """Add the commands to the ``steward`` command."""
    for command in (serve, worker, health):
        cli.command()(command)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 picks a free one. [default: 8080]")] = None,
    data: DataDir = None,
    workers: Annotated[int | None, typer.Option(min=0, help="Worker processes; 0 for none. [default: 1]")] = None,
) -> None:
    """Run the API and its workers until SIGTERM.

    The database is migrated first.

    Exit status: 0 stopped, 2 could not start (the message names the setting), 130 interrupted during startup.
    """
    import os

    from app import startup

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: small products gain nothing by threads
    settings = startup.load_settings(host=host, port=port, data_dir=data, workers=workers)
    from app.cli.server.serve import serve as run

    run(settings)


def worker(
    data: DataDir = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Worker processes. [default: 1]")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether a worker on this host is alive: exit with 0 or 1.")
    ] = False,
) -> None:
    """Run a standalone worker.

    Run any number, on any host that reaches the database and the broker.

    Exit status: 0 stopped (or alive), 1 not alive, 2 could not start (the message names the setting).
    """
    import os
    import sys

    from app import startup

    settings = startup.load_settings(data_dir=data)
    if check:
        raise typer.Exit(0 if _worker_is_alive(settings) else 1)
    startup.check_learning("steward worker")
    os.environ["STEWARD_DATA_DIR"] = str(settings.data_dir)
    processes = str(concurrency or max(1, settings.workers))
    os.execv(sys.executable, [sys.executable, "-m", "workers", "--concurrency", processes])  # noqa: S606


def _worker_is_alive(settings: Settings) -> bool:
    """Whether a worker of this host was seen recently; False, with the error on standard error, if unknown.

    Creates neither a folder nor a database.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from app import startup
    from app.database import leases
    from app.database.engine import Database
    from app.processes import node_name

    try:
        startup.check_database(settings, creates=False)
    except startup.StartupError as error:
        typer.echo(f"steward worker: {error}", err=True)
        return False
    database = Database(settings.database_url, settings)
    try:
        with database.reading() as session:
            return leases.seen_lately(session, settings.worker_seen_seconds, f"{node_name()}/") is not None
    except SQLAlchemyError as error:
        typer.echo(f"steward worker: {startup.first_line(getattr(error, 'orig', error))}", err=True)
        return False
    finally:
        database.dispose()


def health(
    url: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_URL",
            callback=lambda url: url and address(url),
            help="Address of the service; by default that of this host's settings.",
        ),
    ] = None,
) -> None:
    """Check whether an API responds (default: the local one)."""
    from app import startup
    from app.cli.server import probe

    place = url.rstrip("/") if url else probe.address()
    try:
        answer = probe.get(place, "/healthz", verifies=url is not None)
    except (OSError, ValueError) as error:
        if not url:
            startup.load_settings()  # raises StartupError if one is invalid, which may be why
        typer.echo(f"steward health: {without_userinfo(place)} does not answer: {error}", err=True)
        raise typer.Exit(1) from error
    if answer.status != HTTPStatus.OK:
        typer.echo(f"steward health: {answer.status}", err=True)
        raise typer.Exit(1)

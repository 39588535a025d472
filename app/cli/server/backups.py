"""`steward db backup` and `steward db restore`."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import psutil
import typer

from app import startup
from app.cli.server import lock
from app.cli.server.growth import growing
from app.cli.server.migrations import migrate
from app.database.backups import postgresql, sqlite
from app.database.backups.contents import BackupError, Contents, partial
from app.database.engine import normalised_url
from app.settings import Settings
from app.startup import StartupError


def backup(data: Path | None, file: Path, *, force: bool, as_json: bool) -> None:
    """Write all that the database holds to a file.

    Raises:
        StartupError: it was not done; why, and what helps.
    """
    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    url = normalised_url(settings.database_url)
    try:
        embedded = url.get_backend_name() == "sqlite"
        with growing("backup", [partial(file)], Path(url.database or "").stat().st_size if embedded else None):
            if embedded:
                found = sqlite.backup(Path(url.database or ""), file, force=force)
            else:
                found = postgresql.backup(url, file, force=force)
    except BackupError as error:
        raise StartupError(f"no backup was made: {error}") from error
    size = file.stat().st_size
    if as_json:
        document = {"file": str(file), "bytes": size, "revision": found.revision, "rows": dict(found.rows)}
        typer.echo(json.dumps(document))
        return
    typer.echo(f"{file}: {size:,} bytes, revision {found.revision}{_counted(found)}")


def _counted(found: Contents) -> str:
    return "".join(f"\n  {table:18}{rows:>12,} rows" for table, rows in found.rows.items() if rows)


def restore(data: Path | None, file: Path, *, force: bool, as_json: bool) -> None:
    """Put what a file holds into the database, and bring it to this version.

    Raises:
        StartupError: it was not done; why, and what helps.
    """
    settings = startup.load_settings(data_dir=data)
    startup.check_folder(settings.data_dir)
    holder = lock.holder(settings.data_dir)
    if holder is not None:
        raise StartupError(f"nothing was restored: process {holder} serves {settings.data_dir}; stop it first")
    try:
        _restore(settings, file, force)
    except BackupError as error:
        raise StartupError(f"nothing was restored: {error}") from error
    migrate(settings)
    if as_json:
        typer.echo(json.dumps({"file": str(file)}))
    else:
        typer.echo(f"{file} is restored; `steward serve` goes on from it")


def _restore(settings: Settings, file: Path, force: bool) -> None:
    url = normalised_url(settings.database_url)
    embedded = url.get_backend_name() == "sqlite"
    if embedded is not _is_of_sqlite(file):
        ours, its = ("SQLite", "PostgreSQL") if embedded else ("PostgreSQL", "SQLite")
        raise BackupError(f"{file} is a backup of {its}, and STEWARD_DATABASE_URL names {ours}")
    _check_revision(file, sqlite.check(file) if embedded else postgresql.check(file))
    filled = sqlite.is_filled(Path(url.database or "")) if embedded else postgresql.is_filled(url)
    if filled and not force:
        raise BackupError("the database is not empty; name another, or replace all that it holds with --force")
    if embedded:
        database = Path(url.database or "")
        _check_unused(database)
        with growing("restore", [database, database.with_name(f"{database.name}-wal")], file.stat().st_size):
            sqlite.restore(file, database)
    else:
        others = postgresql.users(url)
        if others:
            raise BackupError(f"{others} connections use the database: stop all API processes and workers first")
        with growing("restore", [], None):
            postgresql.restore(file, url, clean=filled)


def _check_unused(database: Path) -> None:
    """What others have in memory would not be what is stored any more."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
            if process.pid != os.getpid() and any(Path(one.path) == database for one in process.open_files()):
                raise BackupError(f"process {process.pid} uses {database}; stop it first")


def _is_of_sqlite(file: Path) -> bool:
    try:
        with file.open("rb") as handle:
            begin = handle.read(len(sqlite.MAGIC))
    except OSError as error:
        raise BackupError(f"{file}: {error.strerror}") from error
    if begin != sqlite.MAGIC and not begin.startswith(postgresql.MAGIC):
        raise BackupError(f"{file} is no backup of Steward's")
    return begin == sqlite.MAGIC


def _check_revision(file: Path, found: Contents) -> None:
    from migrations.runner import is_known

    if not is_known(found.revision):
        raise BackupError(
            f"{file} was made by another version of Steward (revision {found.revision}), which this one does not "
            "know: restore it with that version"
        )

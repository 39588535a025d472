"""Commands on the data folder and the database: lock, migration, backup, pruning, audit."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, TYPE_CHECKING

import psutil
import typer
from rich.console import Console

from app import startup
from app.cli.operations import Column
from app.cli.remote.output import console, list_parts
from app.cli.remote.train import progress
from app.database import backup_postgresql, backup_sqlite
from app.database.backup_sqlite import BackupError, Contents, partial
from app.database.engine import Database, normalised_url
from app.processes import child_command
from app.settings import Settings
from app.startup import EXIT_STATUS, StartupError, first_line, without_password

if TYPE_CHECKING:
    from app.audit.service import AuditRead

# A data folder is locked by one `steward serve` with workers; the kernel releases the lock when the process ends.


NAME = "serve.lock"
ENDING_SECONDS, LOOK_SECONDS = 15.0, 0.2
"""Seconds within which a stopping service releases the folder, and between attempts to lock it."""


@contextmanager
def exclusive(
    folder: Path, say: Callable[[str], None] = print, patience_seconds: float = ENDING_SECONDS
) -> Iterator[None]:
    """Context manager: lock the folder, waiting for its present holder; the lock file contains the process id.

    Args:
        folder: the service's data folder.
        say: called with a message if another process holds the lock.
        patience_seconds: longest wait in seconds.

    Raises:
        StartupError: another process still holds the lock, or the file system doesn't support locks.
    """
    with (folder / NAME).open("a+") as file:
        if not _is_locked(file):
            say(f"waits up to {patience_seconds:g} s for process {holder(folder)}, which serves {folder}, to end")
            until = time.monotonic() + patience_seconds
            while not _is_locked(file):
                if time.monotonic() > until:
                    raise StartupError(
                        f"STEWARD_DATA_DIR={str(folder)!r}: process {holder(folder)} serves it already; stop that one, "
                        "choose another folder (--data), or start one more API beside it: "
                        "steward serve --workers 0 --port …"
                    )
                time.sleep(LOOK_SECONDS)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _is_locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StartupError(
            f"STEWARD_DATA_DIR: {file.name!r} can't be locked ({error.strerror}); choose a folder on a local disk"
        ) from error
    return True


def holder(folder: Path) -> str | None:
    """Id of the process that holds the folder's lock; None if there is none."""
    try:
        with (folder / NAME).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or "another"
    except OSError:  # there is no such file, or files can't be locked there
        return None
    return None


# Migrations run in a child process, so that the API doesn't keep Alembic in memory.


def migrate(settings: Settings) -> None:
    """Migrate the database to this version, in a child process; raises StartupError if the migration fails."""
    linux = sys.platform == "linux"
    start: type[BaseProcess] = multiprocessing.context.ForkProcess if linux else multiprocessing.context.SpawnProcess
    context = multiprocessing.get_context()
    problems = context.SimpleQueue()
    process = start(target=_change, args=(settings.database_url, problems), name="migrations")
    process.start()
    process.join()
    if process.exitcode != 0:
        problem = f"ended with status {process.exitcode}" if problems.empty() else problems.get()
        text = f"STEWARD_DATABASE_URL={without_password(settings.database_url)!r}"
        raise StartupError(f"{text}: the tables can't be brought to this version: {problem}")


def _change(url: str, problems: multiprocessing.SimpleQueue[str]) -> None:
    """Body of the migrating process; it ignores Ctrl-C, which would interrupt a migration."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic.util import CommandError
    from sqlalchemy.exc import SQLAlchemyError

    from migrations.runner import upgrade

    try:
        upgrade(url)
    except RuntimeError as error:  # rows would refer to nothing
        problems.put(first_line(error))
        sys.exit(EXIT_STATUS)
    except (SQLAlchemyError, OSError) as error:
        problems.put(f"{first_line(getattr(error, 'orig', None) or error)}; is there space, and may it be written to?")
        sys.exit(EXIT_STATUS)
    except CommandError as error:
        problems.put(f"{first_line(error)}; another version of Steward made it: run that one, or name another")
        sys.exit(EXIT_STATUS)


# Progress of a file that another program writes.


GROWTH_LOOK_SECONDS = 0.5


@contextmanager
def growing(
    title: str,
    files: Sequence[Path],
    expected: int | None,
    notes: Console | None = None,
    look: float = GROWTH_LOOK_SECONDS,
) -> Iterator[None]:
    """Context manager: show a progress bar by the size of files that another program writes.

    Args:
        title: text beside the bar.
        files: files whose sizes are added; they may not exist yet.
        expected: final size in bytes; None: unknown.
        notes: console for the bar; None: standard error.
        look: seconds between two updates.
    """
    ended = threading.Event()
    with progress(notes or Console(stderr=True), title) as bar:

        def watch() -> None:
            while not ended.wait(look):
                size = sum(map(_size, files))
                done = min(size / expected, 1.0) if expected else 0.0
                bar.update(done, ", ".join(filter(None, (f"{size / 1e6:,.1f} MB", bar.remaining_time(done)))))

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _size(file: Path) -> int:
    with suppress(OSError):
        return file.stat().st_size
    return 0


# `steward db backup` and `steward db restore`.


def backup(data: Path | None, file: Path, *, force: bool, as_json: bool) -> None:
    """Write a backup of the database to a file and print a summary.

    ``data``: the service's data folder, None: by the settings; ``force``: replace an existing file; ``as_json``: print
    JSON.

    Raises:
        StartupError: it fails; with reason and remedy.
    """
    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    url = normalised_url(settings.database_url)
    try:
        embedded = url.get_backend_name() == "sqlite"
        with growing("backup", [partial(file)], Path(url.database or "").stat().st_size if embedded else None):
            if embedded:
                result = backup_sqlite.backup(Path(url.database or ""), file, force=force)
            else:
                result = backup_postgresql.backup(url, file, force=force)
    except BackupError as error:
        raise StartupError(f"no backup was made: {error}") from error
    size = file.stat().st_size
    if as_json:
        document = {"file": str(file), "bytes": size, "revision": result.revision, "rows": dict(result.rows)}
        typer.echo(json.dumps(document))
        return
    typer.echo(f"{file}: {size:,} bytes, revision {result.revision}{_row_counts(result)}")


def _row_counts(contents: Contents) -> str:
    return "".join(f"\n  {table:18}{rows:>12,} rows" for table, rows in contents.rows.items() if rows)


def restore(data: Path | None, file: Path, *, force: bool, as_json: bool) -> None:
    """Restore a backup into the database, migrate it, and print a summary.

    ``data``: the service's data folder, None: by the settings; ``force``: replace existing data; ``as_json``: print
    JSON.

    Raises:
        StartupError: it fails; with reason and remedy.
    """
    settings = startup.load_settings(data_dir=data)
    startup.check_folder(settings.data_dir)
    serving = holder(settings.data_dir)
    if serving is not None:
        raise StartupError(f"nothing was restored: process {serving} serves {settings.data_dir}; stop it first")
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
    result = backup_sqlite.check(file) if embedded else backup_postgresql.check(file)
    from migrations.runner import is_known

    if not is_known(result.revision):
        raise BackupError(
            f"{file} was made by another version of Steward (revision {result.revision}), which this one does not "
            "know: restore it with that version"
        )
    if not embedded:  # an embedded one may be damaged
        startup.check_database(settings, creates=True)
    filled = backup_sqlite.is_filled(Path(url.database or "")) if embedded else backup_postgresql.is_filled(url)
    if filled and not force:
        raise BackupError("the database is not empty; name another, or replace all that it holds with --force")
    if embedded:
        database = Path(url.database or "")
        # Check that no other process has the database file open
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
                if process.pid != os.getpid() and any(Path(one.path) == database for one in process.open_files()):
                    raise BackupError(f"process {process.pid} uses {database}; stop it first")
        with growing("restore", [database, database.with_name(f"{database.name}-wal")], file.stat().st_size):
            backup_sqlite.restore(file, database)
    else:
        others = backup_postgresql.users(url)
        if others:
            raise BackupError(f"{others} connections use the database: stop all API processes and workers first")
        with growing("restore", [], None):
            backup_postgresql.restore(file, url, clean=filled)


def _is_of_sqlite(file: Path) -> bool:
    try:
        with file.open("rb") as handle:
            begin = handle.read(len(backup_sqlite.MAGIC))
    except OSError as error:
        raise BackupError(f"{file}: {error.strerror}") from error
    if begin != backup_sqlite.MAGIC and not begin.startswith(backup_postgresql.MAGIC):
        raise BackupError(f"{file} is not a backup made by `steward db backup`")
    return begin == backup_sqlite.MAGIC


# `steward db prune`: a table of what is due, or a child process that archives and deletes it.


COLUMNS = (Column("workload", "workload"), Column("what", "noun"), Column("rows", "rows"))


def say(data: Path | None, *, as_json: bool) -> int:
    """Print what pruning would delete now; returns 0. Raises StartupError if the database is unavailable."""
    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    from app.retention.service import plan  # it brings every kind, which other commands do without

    database = Database(settings.database_url, settings)
    try:
        result = plan(database, settings)
    finally:
        database.dispose()
    if as_json:
        for one in result:
            typer.echo(json.dumps(one._asdict()))
    elif result:
        output = console()
        output.print(*list_parts(COLUMNS, [one._asdict() for one in result], "table", output.width))
    else:
        typer.echo("nothing would be deleted")
    return 0


def go(data: Path | None) -> int:
    """Archive and delete expired data in a child process; returns its exit status. Raises StartupError before it."""
    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    folder = {"STEWARD_DATA_DIR": str(settings.data_dir)}
    return subprocess.run(child_command("workers.prune"), check=False, env={**os.environ, **folder}).returncode


# ``steward audit``: audit entries as a table.


AUDIT_COLUMNS = (
    Column("age", "at"),
    Column("tenant", "tenant"),
    Column("by", "actor"),
    Column("action", "action"),
    Column("target", "target"),
)


def show(entries: Sequence[AuditRead], most: int) -> None:
    """Print audit entries as a table, and a note if there are ``most`` entries, the limit."""
    output = console()
    rows = [entry.model_dump(mode="json") for entry in entries]
    output.print(*list_parts(AUDIT_COLUMNS, rows, "table", output.width))
    if len(entries) == most:
        output.print(f"the first {most:,}; --limit says of how many", highlight=False)

"""Backups of SQLite, and the parts that backups of both databases share."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

# Shared by backups of both databases.


class BackupError(Exception):
    """A backup or restore failed, and nothing was changed; the message has reason and remedy."""


class Contents(NamedTuple):
    """Content of a backup.

    Attributes:
        revision: migration revision of its tables.
        rows: number of rows by table; empty if not counted.
    """

    revision: str
    rows: Mapping[str, int]


def partial(file: Path) -> Path:
    """Temporary path, beside ``file``, that this process writes before it replaces the file."""
    return file.with_name(f".{file.name}.{os.getpid()}")


@contextmanager
def written(file: Path, *, force: bool) -> Iterator[Path]:
    """Context manager: a temporary path, which replaces ``file`` atomically and durably at the end.

    Raises:
        BackupError: the file exists and ``force`` is False, or it can't be written; ``file`` is unchanged then.
    """
    if file.exists() and not force:
        raise BackupError(f"{file} is there already; choose another name, or replace it with --force")
    if not file.absolute().parent.is_dir():
        raise BackupError(f"{file}: folder {file.parent} does not exist")
    beside = partial(file)
    try:
        yield beside
        with beside.open("rb") as handle:
            os.fsync(handle.fileno())
        beside.replace(file)
    except OSError as error:
        raise BackupError(f"{file}: {error.strerror or error}") from error
    finally:
        for suffix in ("", "-wal", "-shm"):  # reading it makes files beside it
            beside.with_name(beside.name + suffix).unlink(missing_ok=True)
    handle_of_folder = os.open(file.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(handle_of_folder)
    finally:
        os.close(handle_of_folder)


# Backups of SQLite by its online backup: a consistent snapshot that blocks no writer.
#
# A backup ends with the digest of its pages, which SQLite ignores: SQLite's own checks find
# damaged structure, but not damaged values.


MAGIC = b"SQLite format 3\0"
SEAL, DIGEST_CHARACTERS, PIECE = b"\nsteward backup, sha256:", 64, 1 << 20


def backup(database: Path, file: Path, *, force: bool = False) -> Contents:
    """Copy a database to a file and check it; ``force``: an existing file is replaced.

    Raises:
        BackupError: a file can't be read or written, exists without ``force``, or the copy is damaged.
    """
    with written(file, force=force) as partial:
        _copy(database, partial)
        result = check(partial)
        _seal(partial)
        return result


def restore(file: Path, database: Path) -> None:
    """Replace a database's content atomically by that of a checked file; raises BackupError if it can't be written."""
    database.parent.mkdir(parents=True, exist_ok=True)
    _copy(file, database)


def check(file: Path) -> Contents:
    """Check a backup and return its content; a copy made by other means has no digest to check.

    Raises:
        BackupError: it is no backup, or is damaged.
    """
    _check_seal(file)
    try:
        with closing(_reading(file)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")  # whatever its tables call is no function of ours
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
            problems += [f"a row of {row[0]} without its {row[2]}" for row in connection.execute(_BROKEN)]
            problems += [f"{kind} {name}, which is not Steward's" for kind, name in connection.execute(_FOREIGN)]
            if problems:
                raise BackupError(f"{file} is damaged: {'; '.join(map(str, problems))}")
            names = [
                row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE name = 'alembic_version'")
            ]
            result = connection.execute("SELECT version_num FROM alembic_version").fetchone() if names else None
            if result is None:
                raise BackupError(f"{file} is a database, but none of Steward's")
            return Contents(str(result[0]), _rows(connection))
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the driver can't even read what SQLite says of some
        raise BackupError(f"{file} is not a backup of SQLite: {error}") from error


_FOREIGN = """SELECT type, name FROM sqlite_master
WHERE type IN ('trigger', 'view') OR (type = 'table' AND sql LIKE 'CREATE VIRTUAL%') LIMIT 5"""
"""Query for triggers, views and virtual tables, which could execute code after a restore."""
_BROKEN = 'SELECT "table", rowid, parent FROM pragma_foreign_key_check LIMIT 5'


def is_filled(database: Path) -> bool:
    """Whether a database file has any table; False if it is empty or missing."""
    if not database.exists() or database.stat().st_size == 0:
        return False
    with closing(_reading(database)) as connection:
        return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def _seal(file: Path) -> None:
    """Append the SHA-256 of the file's pages after the last page."""
    digest = _digest(file, file.stat().st_size)
    with file.open("ab") as handle:
        handle.write(SEAL + digest)


def _check_seal(file: Path) -> None:
    try:
        size = file.stat().st_size - len(SEAL) - DIGEST_CHARACTERS
        with file.open("rb") as handle:
            handle.seek(max(size, 0))
            end = handle.read()
        if end.startswith(SEAL) and end.removeprefix(SEAL) != _digest(file, size):
            raise BackupError(f"{file} is damaged: it is not what was written (its digest is another)")
    except OSError as error:
        raise BackupError(f"{file}: {error.strerror}") from error


def _digest(file: Path, size: int) -> bytes:
    """SHA-256 of the first ``size`` bytes of a file, in hexadecimal digits."""
    digest, left = hashlib.sha256(), size
    with file.open("rb") as handle:
        while left and (piece := handle.read(min(left, PIECE))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest().encode()


def _reading(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a database in one step, without blocking writers in WAL mode; raises BackupError if that fails."""
    try:
        with closing(_reading(source)) as reading, closing(sqlite3.connect(target, timeout=60.0)) as writing:
            reading.backup(writing, pages=-1)
    except sqlite3.Error as error:
        raise BackupError(f"{source} can't be copied to {target}: {error}") from error


def _rows(connection: sqlite3.Connection) -> dict[str, int]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    names = [row[0] for row in tables if row[0] != "alembic_version"]
    return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in sorted(names)}  # noqa: S608 - names of its own tables # nosec B608

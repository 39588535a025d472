"""Backups of PostgreSQL by its programs `pg_dump`, which reads a consistent snapshot, and `pg_restore`."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from app.database.backup_sqlite import BackupError, Contents, written

MAGIC = b"PGDMP"
MOST_BYTES = 1 << 20
"""Bytes that are read of a dump's text to find its revision."""
READING_SECONDS, READING_BYTES = 3, 100_000
"""Processor seconds that a check may take: a fixed part, and one more per that many bytes."""


def backup(url: URL, file: Path, *, force: bool = False) -> Contents:
    """Dump a database to a file, and read the dump to check it; ``force``: an existing file is replaced. Raises
    BackupError if the file exists, or a program is missing or fails."""
    with written(file, force=force) as partial:
        _run(url, "pg_dump", ["--format=custom", "--no-owner", "--no-privileges", f"--file={partial}"])
        return check(partial)


def restore(file: Path, url: URL, *, clean: bool) -> None:
    """Restore a checked dump into a database, in one transaction.

    Args:
        clean: whether existing tables are dropped first.

    Raises:
        BackupError: the program is missing or fails.
    """
    cleaning = ["--clean", "--if-exists"] if clean else []
    _run(url, "pg_restore", ["--single-transaction", "--exit-on-error", "--no-owner", *cleaning, str(file)])


def check(file: Path) -> Contents:
    """Read a dump to its end and return its content.

    Raises:
        BackupError: it is no dump of Steward's, or is damaged, or `pg_restore` is missing.
    """
    program = _program("pg_restore")
    seconds = READING_SECONDS + file.stat().st_size // READING_BYTES
    _do([program, "--file=/dev/null", str(file)], {}, seconds)
    # First ``MOST_BYTES`` of a program's output, within ``seconds`` of CPU time; a dump may expand a thousandfold
    with subprocess.Popen(
        [program, "--data-only", "--table=alembic_version", "--file=-", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        _bound(process, seconds)
        text = process.stdout.read(MOST_BYTES) if process.stdout is not None else b""
        process.kill()
    begin = text.decode(errors="replace")
    match = re.search(r"^COPY public\.alembic_version .*\n(\S+)\n\\\.$", begin, re.MULTILINE)
    if match is None:
        raise BackupError(f"{file} is a dump of PostgreSQL, but none of Steward's")
    return Contents(match[1], {})


def is_filled(url: URL) -> bool:
    """Whether a database has any table; raises BackupError if it doesn't respond."""
    engine = create_engine(url)
    try:
        return bool(inspect(engine).get_table_names())
    except SQLAlchemyError as error:
        raise BackupError(f"the database does not answer: {str(error).splitlines()[0]}") from error
    finally:
        engine.dispose()


LOOKS, LOOK_SECONDS = 20, 0.1


def users(url: URL) -> int:
    """Number of other connections to a database; raises BackupError if it doesn't respond."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            for _ in range(LOOKS):  # a connection that has just been closed is counted for a moment
                number = int(connection.scalar(text(_USERS)) or 0)
                if not number:
                    break
                time.sleep(LOOK_SECONDS)
            return number
    except SQLAlchemyError as error:
        raise BackupError(f"the database does not answer: {str(error).splitlines()[0]}") from error
    finally:
        engine.dispose()


_USERS = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"""


def _run(url: URL, name: str, options: Sequence[str]) -> None:
    """Run a program on a database, with the password in the environment; raises BackupError if it fails."""
    plain = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    secret = {} if url.password is None else {"PGPASSWORD": str(url.password)}
    _do([_program(name), "--no-password", f"--dbname={plain}", *options], secret)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise BackupError(f"{name} is not on PATH: install PostgreSQL's client programs, of the server's version")
    return path


def _do(command: Sequence[str], environment: dict[str, str], seconds: int | None = None) -> None:
    environment = {**os.environ, **environment}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment) as process:
        if seconds is not None:
            _bound(process, seconds)
        errors = process.communicate()[1]
    if process.returncode == -signal.SIGXCPU:
        raise BackupError(f"{command[-1]} is damaged: it isn't read to its end in {seconds} s of a processor")
    if process.returncode != 0:  # what it quotes of a damaged dump may be anything
        error_lines = errors.decode(errors="replace").strip().splitlines() or [
            f"ended with status {process.returncode}"
        ]
        raise BackupError(error_lines[0])


def _bound(process: subprocess.Popen[bytes], seconds: int) -> None:
    """Limit a program's CPU time in seconds, because some damaged dumps make `pg_restore` loop."""
    if sys.platform == "linux":
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds + 1))

"""Checks at the start of a process; each problem is one line with setting, value and remedy.

`serve`, `worker` and `db` run them first, and exit with status 2 if one fails.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from app import installed

if TYPE_CHECKING:
    from app.settings import Settings

EXIT_STATUS = 2
BACKENDS = ("sqlite", "postgresql")


class StartupError(Exception):
    """Steward can't start; the message is one line with setting, value and remedy."""


def load_settings(**options: Any) -> Settings:
    """Settings from the environment and the command line (None: not given); raises StartupError if one is invalid."""
    from pydantic import ValidationError

    from app.settings import Settings

    overrides = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise StartupError("; ".join(_refusal(dict(issue), overrides) for issue in error.errors())) from error


def _refusal(issue: dict[str, Any], options: dict[str, Any]) -> str:
    from app.settings import Settings

    text = str(issue["msg"]).removeprefix("Value error, ")
    if not issue["loc"]:  # of several settings, which the message names
        return text
    name = str(issue["loc"][0])
    field, message = Settings.model_fields[name], text[0].lower() + text[1:]
    value = f"={issue['input']!r}" if field.repr else ""  # others are secrets
    return f"{variable(name, options)}{value}: {message} ({(field.description or '').rstrip('.')})"


def variable(name: str, options: dict[str, Any] | None = None) -> str:
    """Name of a setting as the user gave it: of its option, or of its environment variable."""
    return f"--{name.removesuffix('_dir')}" if name in (options or {}) else f"STEWARD_{name.upper()}"


def check(settings: Settings, *, creates: bool) -> None:
    """Check kinds, traces, folder, database and broker URL.

    Args:
        creates: whether the embedded database may be created.

    Raises:
        StartupError: a check fails.
        NotInstalledError: this distribution is not installed.
    """
    installed.declared()
    check_kinds()
    check_traces(settings)
    check_folder(settings.data_dir)
    check_database(settings, creates=creates)
    check_broker_url(settings)
    if settings.files_as_broker:
        check_folder(settings.broker_dir)


def check_traces(settings: Settings) -> None:
    """Check that OpenTelemetry is installed if traces are enabled; raises StartupError if it isn't."""
    if settings.traces and installed.missing("otel"):
        remedy = installed.command("otel")
        raise StartupError(f"STEWARD_TRACES=true: what exports spans is not installed; {remedy}, or leave it out")


def check_kinds() -> None:
    """Check that all installed kinds can be loaded; raises StartupError if one can't, or there is none."""
    try:
        import app.kinds.registry  # noqa: F401 - it looks for them
    except RuntimeError as error:
        raise StartupError(first_line(error)) from error


def check_folder(folder: Path) -> None:
    """Create the data folder if missing, and check that it is writable; raises StartupError if it isn't."""
    probe = folder / f".writable-{uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            probe.write_bytes(b"\0" * 4096)
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        remedy = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "choose a folder you may write"
        raise StartupError(f"STEWARD_DATA_DIR={str(folder)!r}: {_reason(error)}; {remedy} there (--data)") from error


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def check_database(settings: Settings, *, creates: bool) -> None:
    """Check the database's URL and connection; raises StartupError if the check fails.

    Args:
        creates: whether a missing embedded database is no error.
    """
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    from app.database.engine import Database, normalised_url

    text = f"STEWARD_DATABASE_URL={without_password(settings.database_url)!r}"
    accepted = "use sqlite:////folder/file.db or postgresql://user:password@host:port/name"
    try:
        url = normalised_url(settings.database_url)
    except (ArgumentError, ValueError) as error:
        raise StartupError(f"{text}: is not a database URL; {accepted}") from error
    if url.get_backend_name() not in BACKENDS or url.drivername not in (*BACKENDS, "postgresql+psycopg"):
        raise StartupError(f"{text}: Steward knows no {url.drivername!r}; {accepted}")
    if url.get_backend_name() == "sqlite" and not creates and not Path(url.database or "").is_file():
        remedy = "`steward serve` or `steward db upgrade` makes it, --data says where"
        raise StartupError(f"{text}: the file does not exist; {remedy}")
    try:
        database = Database(settings.database_url, settings)
        try:
            with database.reading() as session:
                asks = "SELECT 1 FROM sqlite_master" if database.is_sqlite else "SHOW server_encoding"
                if session.connection().exec_driver_sql(asks).scalar() == "SQL_ASCII":  # of initdb without a locale
                    remedy = "make it by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
                    raise StartupError(f"{text}: its encoding is SQL_ASCII, UTF8 is needed; {remedy}")
        finally:
            database.dispose()
    except (SQLAlchemyError, OSError) as error:
        remedy = _database_remedy(url.get_backend_name())
        raise StartupError(f"{text}: {first_line(getattr(error, 'orig', None) or error)}; {remedy}") from error


def _database_remedy(backend: str) -> str:
    if backend == "sqlite":
        return "name a file that is a database of Steward's, or one that it may create"
    return "start PostgreSQL, or correct the URL (host, port, user, password, name)"


def check_broker_url(settings: Settings) -> None:
    """Check syntax and transport of the broker's URL; raises StartupError if it is invalid."""
    from kombu.exceptions import KombuError
    from kombu.transport import resolve_transport
    from kombu.utils.url import parse_url

    try:
        parsed = parse_url(settings.broker_url)
        resolve_transport(parsed["transport"])
    except (KombuError, KeyError, ImportError, ValueError, AttributeError) as error:
        text = f"STEWARD_BROKER_URL={without_password(settings.broker_url)!r}"
        remedy = "use redis://host:port/0, or leave it out for files in the data folder"
        raise StartupError(f"{text}: is not a broker URL; {remedy}") from error  # its own words may hold the password


def broker_problem(settings: Settings) -> str | None:
    """Why the broker doesn't respond, with setting and remedy; None if it responds."""
    from app import queue

    queue.use(settings)
    problem = queue.broker_problem()
    if problem is None:
        return None
    text = f"STEWARD_BROKER_URL={without_password(settings.broker_url)!r}"
    return f"{text}: {first_line(problem)}; start Redis, or correct the URL"


def check_learning(command: str, otherwise: str = "") -> None:
    """Check that the extra `worker` is installed; raises StartupError, whose text ends with `otherwise`."""
    missing = ", ".join(installed.missing("worker"))
    if missing:
        remedy = f"{installed.command('worker')}{otherwise}"
        raise StartupError(f"{command} needs packages that are not installed ({missing}): {remedy}")


def without_password(url: str) -> str:
    """A URL, or text with URLs, without passwords."""
    hidden = re.sub(r"//([^:/@\s]*):\S+@", r"//\1:***@", url)
    return re.sub(r"([?&]\w*password=)[^&\s']+", r"\1***", hidden)


def first_line(error: object) -> str:
    """First line of an error's text; its class if it has none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__

"""The database, its tables, its clock; and room on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from sqlalchemy import inspect, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app import startup
from app.cli.server.doctor.finding import Finding, Status
from app.database.base import utc_now
from app.database.clock import database_time
from app.database.engine import LEAST_FREE_BYTES, Database
from app.settings import Settings

MEBIBYTE, GIBIBYTE = 1 << 20, 1 << 30
LITTLE_FREE_BYTES, LITTLE_FREE_SHARE = GIBIBYTE, 0.05
MANY_CONNECTIONS = 0.8
CLOCK_WARNS, CLOCK_FAILS = 1.0, 30.0
"""Seconds between two clocks; leases are by the database's alone, what people read is not."""


def size(number: float) -> str:
    """Bytes, for people."""
    return f"{number / GIBIBYTE:.1f} GiB" if number >= GIBIBYTE else f"{number / MEBIBYTE:.1f} MiB"


def of_database(database: Database) -> Iterator[Finding]:
    """The database that answers, the version of its tables, and its clock."""
    for name, check in (("database", _server), ("tables", _tables), ("clock", _clock)):
        yield guarded(name, database, check)


def guarded(name: str, database: Database, check: Callable[[Session], Finding]) -> Finding:
    """A check with a session; one that the database does not answer has failed."""
    try:
        with database.reading() as session:
            return check(session)
    except SQLAlchemyError as error:
        said = startup.first_line(getattr(error, "orig", None) or error)
        return Finding(name, "fail", said, "see what is said of the database and its tables")


def _server(session: Session) -> Finding:
    """Which one it is, how large, and whether it takes writes."""
    connection = session.connection()
    url, version = connection.engine.url, ".".join(map(str, connection.dialect.server_version_info or ()))
    if connection.dialect.name == "sqlite":
        return _file(Path(url.database or ""), version)
    many, most, stored, standby = session.execute(
        text(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
            "current_setting('max_connections')::int, pg_database_size(current_database()), pg_is_in_recovery()"
        )
    ).one()
    place = f"{url.host or 'localhost'}:{url.port or 5432}/{url.database}"
    detail = f"PostgreSQL {version} at {place}, {size(stored)}, {many} of {most} connections"
    if standby:
        return Finding("database", "fail", f"{detail}; it is a standby and takes no writes", "name the primary")
    if many > MANY_CONNECTIONS * most:
        remedy = "raise max_connections, or lower STEWARD_DATABASE_POOL_SIZE of every process"
        return Finding("database", "warn", detail, remedy)
    return Finding("database", "ok", detail)


def _file(path: Path, version: str) -> Finding:
    stored = sum(one.stat().st_size for one in (path, path.with_name(f"{path.name}-wal")) if one.is_file())
    return Finding("database", "ok", f"SQLite {version}, {size(stored)}, {path}")


def _tables(session: Session) -> Finding:
    from migrations.runner import head, is_known

    upgrade = "steward db upgrade (steward serve does it when it starts)"
    if not inspect(session.connection()).has_table("alembic_version"):
        return Finding("tables", "fail", "there are none yet", upgrade)
    revision = session.scalar(text("SELECT version_num FROM alembic_version")) or "none"
    if revision == head():
        return Finding("tables", "ok", f"of this release ({revision})")
    if is_known(revision):
        return Finding("tables", "fail", f"of an earlier release ({revision}; this one's are {head()})", upgrade)
    remedy = "end the upgrade: start the release that made them everywhere (docs/how-to/operate.md)"
    return Finding("tables", "warn", f"of a later release ({revision}), unknown to this one", remedy)


def _clock(session: Session) -> Finding:
    before = utc_now()
    theirs = database_time(session)
    return apart(theirs, before, utc_now(), embedded=session.connection().dialect.name == "sqlite")


def apart(theirs: datetime, before: datetime, after: datetime, *, embedded: bool) -> Finding:
    """How far the database's clock is from this machine's, which was read before and after it."""
    if embedded:
        return Finding("clock", "ok", "the database's is this machine's")
    seconds = (theirs - before - (after - before) / 2).total_seconds()
    status: Status = "fail" if abs(seconds) > CLOCK_FAILS else "warn" if abs(seconds) > CLOCK_WARNS else "ok"
    direction = "ahead of" if seconds > 0 else "behind"
    detail = f"the database's is {abs(seconds):.3f} s {direction} this machine's"
    return Finding("clock", status, detail, "" if status == "ok" else "have both keep time by NTP (chrony)")


def disk(settings: Settings) -> Iterator[Finding]:
    """Room where this host's files are: the data folder, and the archive elsewhere."""
    folders = {"disk": settings.data_dir, "archive": settings.archive_folder}
    seen = set[int]()
    for name, folder in folders.items():
        place = next(one for one in (folder, *folder.parents) if one.exists())
        if place.stat().st_dev not in seen:
            seen.add(place.stat().st_dev)
            yield _room(name, place)


def _room(name: str, place: Path) -> Finding:
    total, _, free = shutil.disk_usage(place)
    status: Status = "ok"
    if free < LITTLE_FREE_BYTES or free < LITTLE_FREE_SHARE * total:
        status = "fail" if free < 16 * LEAST_FREE_BYTES else "warn"
    remedy = "" if status == "ok" else "free some space; steward db prune --dry-run tells what is too old"
    return Finding(name, status, f"{size(free)} of {size(total)} free at {place}", remedy)

"""Leases of names, workers that were seen, and rows that are inserted or updated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.database.base import DEFAULT_TENANT, UtcDateTime, utc_now
from app.database.tables import Lease, Worker

# INSERT … ON CONFLICT in the dialect at hand.


def insert(session: Session, table: Any) -> Any:
    """An INSERT that knows `on_conflict_do_nothing` and `on_conflict_do_update`, on SQLite and PostgreSQL."""
    dialect = session.get_bind().dialect.name
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


# The time by which leases, heartbeats and claims expire: the database's, one clock for all hosts.


Clock = Callable[[Session], datetime]
"""The present time, timezone-aware, UTC, as it is told within a unit of work."""


def database_time(session: Session) -> datetime:
    """The database's present time; not that of the transaction's beginning, which may have waited for a lock.

    SQLite runs in this process, and all its users on this host: its clock is this one, to the millisecond only.
    """
    if session.get_bind().dialect.name == "sqlite":
        return utc_now()
    return session.execute(select(func.clock_timestamp(type_=UtcDateTime()))).scalar_one()


# Who is there: heartbeats of worker processes, by the database's clock.


FORGET_AFTER = timedelta(days=1)


def beat(session: Session, name: str, clock: Clock = database_time) -> None:
    """Note that a worker is there; forget those that have long gone."""
    now = clock(session)
    values = {"tenant": DEFAULT_TENANT, "name": name, "started_at": now, "seen_at": now}
    statement = insert(session, Worker).values(**values)
    session.execute(statement.on_conflict_do_update(index_elements=[Worker.name], set_={"seen_at": now}))
    session.execute(delete(Worker).where(Worker.seen_at < now - FORGET_AFTER))


def leave(session: Session, name: str) -> None:
    """Note that a worker has gone."""
    session.execute(delete(Worker).where(Worker.name == name))


def known(session: Session) -> Sequence[Worker]:
    """All workers that have not signed off; the one that was seen last comes first."""
    return session.scalars(select(Worker).order_by(Worker.seen_at.desc())).all()


def alive(session: Session, seconds: float, clock: Clock = database_time) -> int:
    """How many workers were seen within the last so many seconds."""
    since = clock(session) - timedelta(seconds=seconds)
    return session.scalar(select(func.count()).where(Worker.seen_at > since)) or 0


def seen_lately(session: Session, seconds: float, prefix: str = "", clock: Clock = database_time) -> str | None:
    """Name of a worker seen within the last so many seconds (whose name begins so), if there is one."""
    since = clock(session) - timedelta(seconds=seconds)
    statement = select(Worker.name).where(Worker.seen_at > since, Worker.name.startswith(prefix, autoescape=True))
    return session.scalar(statement.limit(1))


# Leases of tasks that one process at a time does, by the database's clock.


def hold(session: Session, name: str, owner: str, seconds: float, clock: Clock = database_time) -> bool:
    """Take a task, or go on holding it; false while somebody else does."""
    now = clock(session)
    values = {"owner": owner, "expires_at": now + timedelta(seconds=seconds)}
    statement = insert(session, Lease).values(name=name, tenant=DEFAULT_TENANT, **values)
    free = or_(Lease.owner == owner, Lease.expires_at < now)
    statement = statement.on_conflict_do_update(index_elements=[Lease.name], set_=values, where=free)
    return session.scalar(statement.returning(Lease.name)) is not None


def release(session: Session, name: str, owner: str) -> None:
    """Let a task go."""
    session.execute(delete(Lease).where(Lease.name == name, Lease.owner == owner))

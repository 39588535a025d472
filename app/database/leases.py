"""Leases of tasks, heartbeats of workers, and portable upserts."""

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
    """An INSERT into a table with `on_conflict_do_nothing` and `on_conflict_do_update`, for SQLite or PostgreSQL."""
    dialect = session.get_bind().dialect.name
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


# Leases, heartbeats and claims expire by the database's clock, the same for all hosts.


Clock = Callable[[Session], datetime]
"""Function from a session to the present time in UTC."""


def database_time(session: Session) -> datetime:
    """The database's present time in UTC, not that of the transaction's start; for SQLite this host's."""
    if session.get_bind().dialect.name == "sqlite":
        return utc_now()
    return session.execute(select(func.clock_timestamp(type_=UtcDateTime()))).scalar_one()


# Heartbeats of worker processes, by the database's clock.


FORGET_AFTER = timedelta(days=1)


def beat(session: Session, name: str, clock: Clock = database_time) -> None:
    """Record a worker's heartbeat, and delete workers not seen for a day; without commit."""
    now = clock(session)
    values = {"tenant": DEFAULT_TENANT, "name": name, "started_at": now, "seen_at": now}
    statement = insert(session, Worker).values(**values)
    session.execute(statement.on_conflict_do_update(index_elements=[Worker.name], set_={"seen_at": now}))
    session.execute(delete(Worker).where(Worker.seen_at < now - FORGET_AFTER))


def leave(session: Session, name: str) -> None:
    """Delete a worker that has ended, without commit; no effect if it is unknown."""
    session.execute(delete(Worker).where(Worker.name == name))


def registered_workers(session: Session) -> Sequence[Worker]:
    """All registered workers, the last seen first."""
    return session.scalars(select(Worker).order_by(Worker.seen_at.desc())).all()


def alive(session: Session, seconds: float, clock: Clock = database_time) -> int:
    """Number of workers seen within the last ``seconds``."""
    since = clock(session) - timedelta(seconds=seconds)
    return session.scalar(select(func.count()).where(Worker.seen_at > since)) or 0


def seen_lately(session: Session, seconds: float, prefix: str = "", clock: Clock = database_time) -> str | None:
    """Name of a worker with this prefix seen within the last ``seconds``; None if there is none."""
    since = clock(session) - timedelta(seconds=seconds)
    statement = select(Worker.name).where(Worker.seen_at > since, Worker.name.startswith(prefix, autoescape=True))
    return session.scalar(statement.limit(1))


# Leases of tasks for one process at a time, by the database's clock.


def hold(session: Session, name: str, owner: str, seconds: float, clock: Clock = database_time) -> bool:
    """Take or renew the lease of the task ``name`` for ``seconds``; False if another process holds it."""
    now = clock(session)
    values = {"owner": owner, "expires_at": now + timedelta(seconds=seconds)}
    statement = insert(session, Lease).values(name=name, tenant=DEFAULT_TENANT, **values)
    free = or_(Lease.owner == owner, Lease.expires_at < now)
    statement = statement.on_conflict_do_update(index_elements=[Lease.name], set_=values, where=free)
    return session.scalar(statement.returning(Lease.name)) is not None


def release(session: Session, name: str, owner: str) -> None:
    """Release the lease of a task, if this owner holds it, else without effect."""
    session.execute(delete(Lease).where(Lease.name == name, Lease.owner == owner))

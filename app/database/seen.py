"""Who is there: heartbeats of worker processes, by the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.database.base import DEFAULT_TENANT
from app.database.clock import Clock, database_time
from app.database.tables import Worker
from app.database.upsert import insert

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

"""Leases of tasks that one process at a time does, by the database's clock."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, or_
from sqlalchemy.orm import Session

from app.database.base import DEFAULT_TENANT
from app.database.clock import Clock, database_time
from app.database.tables import Lease
from app.database.upsert import insert


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

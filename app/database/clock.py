"""The time by which leases, heartbeats and claims expire: the database's, one clock for all hosts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database.base import UtcDateTime, utc_now

Clock = Callable[[Session], datetime]
"""The present time, timezone-aware, UTC, as it is told within a unit of work."""


def database_time(session: Session) -> datetime:
    """The database's present time; not that of the transaction's beginning, which may have waited for a lock.

    SQLite runs in this process, and all its users on this host: its clock is this one, to the millisecond only.
    """
    if session.get_bind().dialect.name == "sqlite":
        return utc_now()
    return session.execute(select(func.clock_timestamp(type_=UtcDateTime()))).scalar_one()

"""SQL of keys and run tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import CursorResult, func, select, update
from sqlalchemy.orm import Session

from app.database.tables import Key, RunToken
from app.http.pagination import PageRequest, Slice, paginate


class Fingerprint(NamedTuple):
    """How many keys were ever made, and how many are revoked: it differs whenever a key was made or revoked."""

    made: int
    revoked: int


# Made once, as it is asked twice a second; two counts of rows, for which SQLite reads no row where an index will do.
_COUNT = select(func.count()).select_from(Key)
_FINGERPRINT = select(_COUNT.scalar_subquery(), _COUNT.where(Key.revoked_at.is_not(None)).scalar_subquery())


def fingerprint(session: Session) -> Fingerprint:
    """Of all keys that there are."""
    return Fingerprint(*session.execute(_FINGERPRINT).one())


def valid(session: Session) -> Sequence[Key]:
    """All keys that aren't revoked; some of them may have expired."""
    return session.scalars(select(Key).where(Key.revoked_at.is_(None))).all()


def add(session: Session, row: Key | RunToken) -> None:
    """A new key or token."""
    session.add(row)
    session.flush()


def find(session: Session, tenant: str, key: str) -> Key | None:
    """One key."""
    return session.scalar(select(Key).where(Key.tenant == tenant, Key.id == key))


def listed(session: Session, tenant: str, request: PageRequest) -> Slice[Key]:
    """A tenant's keys, newest first."""
    statement = select(Key).where(Key.tenant == tenant)
    return paginate(session, statement, [Key.created_at, Key.id], request, descending=True)


def every(session: Session) -> Sequence[Key]:
    """The keys of all tenants, for who runs the service."""
    return session.scalars(select(Key).order_by(Key.tenant, Key.created_at, Key.id)).all()


def revoke(session: Session, tenant: str | None, key: str, now: datetime) -> bool:
    """Revoke a key, of any tenant with None; whether it was valid until now."""
    statement = update(Key).where(Key.id == key, Key.revoked_at.is_(None)).values(revoked_at=now)
    if tenant is not None:
        statement = statement.where(Key.tenant == tenant)
    statement = statement.execution_options(synchronize_session=False)
    return cast("CursorResult[Any]", session.execute(statement)).rowcount == 1


def run_tokens(session: Session, identifiers: Sequence[str]) -> Sequence[RunToken]:
    """The tokens of these ids."""
    return session.scalars(select(RunToken).where(RunToken.id.in_(identifiers))).all()

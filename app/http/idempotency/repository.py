"""SQL of idempotency keys. A key without a status belongs to a request in flight."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, delete, update
from sqlalchemy.orm import Session

from app.database.tables import IdempotencyKey
from app.database.upsert import insert


def claim(session: Session, tenant: str, key: str, token: str, digest: str, now: datetime) -> bool:
    """Take a key that nobody holds."""
    values = {"tenant": tenant, "key": key, "claim": token, "digest": digest, "created_at": now}
    statement = insert(session, IdempotencyKey).values(**values).on_conflict_do_nothing()
    return session.scalar(statement.returning(IdempotencyKey.key)) is not None


def find(session: Session, tenant: str, key: str) -> IdempotencyKey | None:
    """The row of a key."""
    return session.get(IdempotencyKey, (tenant, key), populate_existing=True)


def store(session: Session, tenant: str, key: str, token: str, answer: dict[str, Any]) -> bool:
    """Keep the answer (`status`, `body`, `headers`); false when the key is no longer held under this token."""
    statement = (
        update(IdempotencyKey)
        .where(IdempotencyKey.tenant == tenant, IdempotencyKey.key == key, IdempotencyKey.claim == token)
        .values(**answer)
    )
    return cast("CursorResult[Any]", session.execute(statement)).rowcount == 1


def release(session: Session, tenant: str, key: str, token: str) -> None:
    """Give a key back whose request came to nothing."""
    held = (IdempotencyKey.tenant == tenant, IdempotencyKey.key == key, IdempotencyKey.claim == token)
    session.execute(delete(IdempotencyKey).where(*held, IdempotencyKey.status.is_(None)))


def forget(session: Session, tenant: str, key: str, token: str) -> None:
    """Drop what is kept under a key, unless another request has taken it since."""
    held = (IdempotencyKey.tenant == tenant, IdempotencyKey.key == key, IdempotencyKey.claim == token)
    session.execute(delete(IdempotencyKey).where(*held).execution_options(synchronize_session=False))


def purge(session: Session, before: datetime) -> None:
    """Forget keys older than that."""
    session.execute(delete(IdempotencyKey).where(IdempotencyKey.created_at < before))

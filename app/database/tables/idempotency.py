"""Idempotency keys: what a creating request was answered, so that its repeat is answered the same."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import DEFAULT_TENANT, Base, CreatedMixin


class IdempotencyKey(CreatedMixin, Base):
    """A key that a caller sent; without `status` its request is still in flight."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index("ix_idempotency_keys_created_at", "created_at"),)

    tenant: Mapped[str] = mapped_column(String(63), primary_key=True, default=DEFAULT_TENANT)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    claim: Mapped[str] = mapped_column(String(32))
    """Random token of the request that holds the key."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of method, path and body."""
    status: Mapped[int | None]
    body: Mapped[dict[str, Any] | None]
    headers: Mapped[dict[str, Any] | None]

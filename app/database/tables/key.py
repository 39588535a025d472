"""API keys and the tokens of runs: what is kept of a secret is its hash."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, TenantMixin


class Key(TenantMixin, CreatedMixin, Base):
    """An API key. Rows are never deleted: a service that once had a key asks for one for ever."""

    __tablename__ = "keys"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(120))
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of its secret, 256 random bits, which needs no slow hash."""
    scopes: Mapped[list[Any]]
    created_by: Mapped[str] = mapped_column(String(255))
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None] = mapped_column(index=True)  # counted twice a second


class RunToken(TenantMixin, CreatedMixin, Base):
    """A token of one run; void once the key that asked for it is revoked."""

    __tablename__ = "run_tokens"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    run_id: Mapped[str] = mapped_column(Identifier, ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    digest: Mapped[str] = mapped_column(String(64))
    key_id: Mapped[str | None] = mapped_column(String(16))
    """The key that asked for it; none where another credential did."""

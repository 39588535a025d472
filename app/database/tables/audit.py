"""The audit: who changed what, when."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, IdMixin, TenantMixin


class AuditEntry(IdMixin, TenantMixin, CreatedMixin, Base):
    """One change; it is written in the transaction that makes the change."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_tenant_created_at_id", "tenant", "created_at", "id"),)

    actor: Mapped[str] = mapped_column(String(255))
    """`key:<id>`, `subject:<issuer's name>`, `run:<id>`, `anybody` (no keys are asked for), or a process: `command`."""
    action: Mapped[str] = mapped_column(String(64))
    target: Mapped[str] = mapped_column(String(255))
    address: Mapped[str | None] = mapped_column(String(64))
    """From where the request came, as the server or a proxy that is trusted says."""
    detail: Mapped[dict[str, Any] | None]

"""Jobs: work for the workers. This table is the truth; the broker only wakes workers up."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, IdMixin, TenantMixin


class Job(IdMixin, TenantMixin, CreatedMixin, Base):
    """A job. Who holds its lease is (`owner`, `fence`) until `lease_expires_at`; each new lease has a higher fence,
    and every write of a worker names the fence it holds."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_tenant_created_at_id", "tenant", "created_at", "id"),
        Index("ix_jobs_state_lease_expires_at", "state", "lease_expires_at"),
    )

    type: Mapped[str] = mapped_column(String(16))
    """'fit', 'train', 'trial' or 'evaluate'."""
    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"), index=True)
    request: Mapped[dict[str, Any]]
    priority: Mapped[int] = mapped_column(default=0, server_default="0")
    """Of a tenant's jobs that wait, those of a higher one begin first."""
    state: Mapped[str] = mapped_column(String(16), default="queued")
    """queued, running, waiting (for jobs of its family or a time; nobody holds it), succeeded, failed or cancelled."""
    progress: Mapped[float] = mapped_column(default=0.0)
    eta_seconds: Mapped[float | None]
    attempts: Mapped[int] = mapped_column(default=0)
    error: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]
    checkpoint: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    owner: Mapped[str | None] = mapped_column(String(255))
    fence: Mapped[int] = mapped_column(default=0)
    lease_expires_at: Mapped[datetime | None]
    enqueued_at: Mapped[datetime | None]
    """When it was last announced to the broker."""
    not_before: Mapped[datetime | None]
    """When a job that waits for a time goes on."""
    traceparent: Mapped[str | None] = mapped_column(String(55))
    """The span of whoever asked for it (W3C Trace Context), which the worker's goes on from."""
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]

"""Executions: samples of past runs of a workload."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, IdMixin, TenantMixin


class Execution(IdMixin, TenantMixin, CreatedMixin, Base):
    """One execution; what `data` is depends on the kind of the workload, and stands in its codec (`app.samples`)."""

    __tablename__ = "executions"
    __table_args__ = (
        UniqueConstraint("workload_id", "name"),
        Index("ix_executions_workload_id_created_at_id", "workload_id", "created_at", "id"),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(255))
    """The client's own identifier of the execution."""
    digest: Mapped[str] = mapped_column(String(64))
    iterations: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    summary: Mapped[dict[str, Any] | None]
    """What lists tell of `data`, as its kind gives it; null: stored before there were summaries, and not listed since.
    """
    source: Mapped[str] = mapped_column(String(16), default="upload")
    """'upload' or 'run'."""

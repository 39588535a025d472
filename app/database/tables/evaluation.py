"""Evaluations: agents judged by the evaluation protocol."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, IdMixin, TenantMixin


class Evaluation(IdMixin, TenantMixin, CreatedMixin, Base):
    """One evaluation; `page` is its report for people, an HTML document compressed by zlib."""

    __tablename__ = "evaluations"
    __table_args__ = (
        Index("ix_evaluations_workload_id_created_at_id", "workload_id", "created_at", "id"),
        Index("ix_evaluations_tenant_created_at_id", "tenant", "created_at", "id"),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    spec_version: Mapped[int]
    model_version: Mapped[int]
    request: Mapped[dict[str, Any]]
    """As asked for, with agents and model resolved to versions."""
    verdicts: Mapped[list[Any]]
    """Of each agent: its version, its class, and why it is no higher."""
    report: Mapped[dict[str, Any]] = mapped_column(deferred=True)
    page: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)

"""Promotions: which agent answered since when, and which one before it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, IdMixin, TenantMixin


class Promotion(IdMixin, TenantMixin, CreatedMixin, Base):
    """A change of a workload's champion in one role; null versions stand for the heuristics."""

    __tablename__ = "promotions"
    __table_args__ = (Index("ix_promotions_workload_id_created_at", "workload_id", "created_at"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    role: Mapped[str] = mapped_column(String(63))
    agent_version: Mapped[int | None]
    previous: Mapped[int | None]
    reason: Mapped[str] = mapped_column(String(1024))
    made_by: Mapped[str] = mapped_column(String(16), default="request")
    """request, training or drift."""
    figures: Mapped[dict[str, Any] | None]

"""Iterations: what a run reported, and what it was told."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, Identifier, TenantMixin, utc_now


class Iteration(TenantMixin, Base):
    """One reported iteration of a run with the decision it was answered with."""

    __tablename__ = "iterations"

    run_id: Mapped[str] = mapped_column(Identifier, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str] = mapped_column(String(64))
    report: Mapped[dict[str, Any]]
    decision: Mapped[dict[str, Any]]
    reported_at: Mapped[datetime] = mapped_column(default=utc_now)

"""Adaptations: what was done about a drift that was noticed, step by step."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, IdMixin, TenantMixin


class Adaptation(IdMixin, TenantMixin, CreatedMixin, Base):
    """One answer to a drift; a workload has one at a time that goes on."""

    __tablename__ = "adaptations"
    __table_args__ = (UniqueConstraint("workload_id", "going_on"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    going_on: Mapped[bool | None]
    """True, or none once it is over: so that only one is True."""
    state: Mapped[str] = mapped_column(String(16))
    """fitting, training, shadow, watched; at its end kept, rolled_back, rejected, superseded or failed."""
    request: Mapped[dict[str, Any]]
    """How the workload said that drifts are to be answered, when it began."""
    run_id: Mapped[str] = mapped_column(Identifier)
    """The run that noticed."""
    notice: Mapped[dict[str, Any]]
    job_id: Mapped[str | None] = mapped_column(Identifier)
    """Whose end is waited for."""
    model_version: Mapped[int | None]
    agent_version: Mapped[int | None]
    """Who is tried."""
    predecessor: Mapped[int | None]
    """Who answered when it began; none for a heuristic."""
    marks: Mapped[dict[str, Any]]
    """By run, the iteration that was to be reported next when the shadow began."""
    steps: Mapped[list[Any]]
    """What was done when, why, and on which figures."""
    finished_at: Mapped[datetime | None]

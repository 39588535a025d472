"""Job events: what a job told about itself, in order."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, TenantMixin


class JobEvent(TenantMixin, CreatedMixin, Base):
    """One event of a job; sequence counts from 1."""

    __tablename__ = "job_events"

    job_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    data: Mapped[dict[str, Any]]

"""Leases: tasks that one process at a time does, and which one it is."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, TenantMixin


class Lease(TenantMixin, Base):
    """Who does a task, until when by the database's time."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    owner: Mapped[str] = mapped_column(String(255))
    expires_at: Mapped[datetime]

"""Workers: who is there to learn, and when each was last seen."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, TenantMixin


class Worker(TenantMixin, Base):
    """A worker process's heartbeat."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime] = mapped_column(index=True)

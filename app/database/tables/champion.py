"""Champions: which agent of a workload answers in which role."""

from __future__ import annotations

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, Identifier, TenantMixin


class Champion(TenantMixin, Base):
    """The agent that answers in one role of a workload; without a row, a heuristic does."""

    __tablename__ = "champions"

    workload_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True
    )
    role: Mapped[str] = mapped_column(String(63), primary_key=True)
    version: Mapped[int]

"""Exogenous rows: what is forecast from outside of a workload, as it was issued."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Double, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, Identifier, TenantMixin


class ExogenousRow(TenantMixin, Base):
    """What an issue of a series says of one time."""

    __tablename__ = "exogenous"

    workload_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True
    )
    series: Mapped[str] = mapped_column(String(63), primary_key=True)
    time: Mapped[datetime] = mapped_column(primary_key=True)
    issued_at: Mapped[datetime] = mapped_column(primary_key=True)
    mean: Mapped[float] = mapped_column(Double)
    low: Mapped[float] = mapped_column(Double)
    high: Mapped[float] = mapped_column(Double)

"""Domain models: fitted versions of a workload's response to its resources."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, LargeBinary, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, IdMixin, TenantMixin


class DomainModel(IdMixin, TenantMixin, CreatedMixin, Base):
    """One fitted model; `table` is the exported dense table (safetensors)."""

    __tablename__ = "domain_models"
    __table_args__ = (UniqueConstraint("workload_id", "version"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    version: Mapped[int]
    spec_version: Mapped[int]
    report: Mapped[dict[str, Any]]
    table: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)

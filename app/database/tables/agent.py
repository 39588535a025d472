"""Agents: trained versions of a workload's policy."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, IdMixin, TenantMixin


class Agent(IdMixin, TenantMixin, CreatedMixin, Base):
    """One trained agent; `artifact` is the exported policy (JSON header and safetensors arrays)."""

    __tablename__ = "agents"
    __table_args__ = (UniqueConstraint("workload_id", "version"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    version: Mapped[int]
    spec_version: Mapped[int]
    model_version: Mapped[int]
    algorithm: Mapped[str] = mapped_column(String(63))
    seed: Mapped[int]
    report: Mapped[dict[str, Any]]
    artifact: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    promoted: Mapped[bool] = mapped_column(default=False)
    """Whether it has ever been made the one that answers."""

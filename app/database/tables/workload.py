"""Workloads: what is allocated for, as registered."""

from __future__ import annotations

from typing import Any

from sqlalchemy import String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, IdMixin, TenantMixin


class Workload(IdMixin, TenantMixin, CreatedMixin, Base):
    """A registered workload; `revision` grows with whatever changes its decisions, so that caches can poll it."""

    __tablename__ = "workloads"
    __table_args__ = (UniqueConstraint("tenant", "name"),)

    name: Mapped[str] = mapped_column(String(63))
    kind: Mapped[str] = mapped_column(String(63))
    spec: Mapped[dict[str, Any]]
    spec_version: Mapped[int] = mapped_column(default=1)
    champion: Mapped[int | None]
    """Version of the agent that answers; null: the heuristics do."""
    revision: Mapped[int] = mapped_column(default=1)

"""Workloads: what is allocated for, as registered."""

from __future__ import annotations

from typing import Any

from sqlalchemy import String, UniqueConstraint
from sqlalchemy.orm import Mapped, attribute_keyed_dict, mapped_column, relationship

from app.database.base import Base, CreatedMixin, IdMixin, TenantMixin
from app.database.tables.champion import Champion


class Workload(IdMixin, TenantMixin, CreatedMixin, Base):
    """A registered workload; `revision` grows with whatever changes its decisions, so that caches can poll it."""

    __tablename__ = "workloads"
    __table_args__ = (UniqueConstraint("tenant", "name"),)

    name: Mapped[str] = mapped_column(String(63))
    kind: Mapped[str] = mapped_column(String(63))
    spec: Mapped[dict[str, Any]]
    spec_version: Mapped[int] = mapped_column(default=1)
    revision: Mapped[int] = mapped_column(default=1)
    drift: Mapped[dict[str, Any] | None]
    """How drifts are to be answered, as `app.drift.schemas` has it; none: they are only noticed."""
    retention: Mapped[dict[str, Any] | None]
    """How long what hangs on it is kept, as `app.retention.schemas` has it; none: as the settings say."""
    deleted_agent: Mapped[int | None]
    deleted_model: Mapped[int | None]
    """The newest versions that were deleted; their numbers are not given again."""
    champions: Mapped[dict[str, Champion]] = relationship(
        collection_class=attribute_keyed_dict("role"),
        cascade="all, delete-orphan",
        passive_deletes=True,
        lazy="selectin",
        order_by=Champion.role,
    )
    """By role."""

    def champion(self, role: str) -> int | None:
        """Version of the agent that answers in a role; None: a heuristic does."""
        found = self.champions.get(role)
        return None if found is None else found.version

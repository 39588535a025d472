"""Runs: live executions that Steward decides for."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, IdMixin, TenantMixin

DRIFTED = text("drifts > 0")  # no parameter in it, or no database would see that the index below fits
ENDED = text("finished_at IS NOT NULL")
JUDGED = text("outcome IN ('met', 'missed', 'failed')")


class Run(IdMixin, TenantMixin, CreatedMixin, Base):
    """A live run; `state_vector` is the packed state after the last reported iteration."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_workload_id_created_at_id", "workload_id", "created_at", "id"),
        Index("ix_runs_tenant_created_at_id", "tenant", "created_at", "id"),
        Index("ix_runs_tenant_state_created_at_id", "tenant", "state", "created_at", "id"),
        Index("ix_runs_drifted", "workload_id", "created_at", "id", sqlite_where=DRIFTED, postgresql_where=DRIFTED),
        Index("ix_runs_workload_id_shadow_version", "workload_id", "shadow_version"),
        Index("ix_runs_outcome_tenant_created_at_id", "outcome", "tenant", "created_at", "id"),
        Index("ix_runs_finished_at", "finished_at", sqlite_where=ENDED, postgresql_where=ENDED),
        Index("ix_runs_judged", "workload_id", "finished_at", "id", sqlite_where=JUDGED, postgresql_where=JUDGED),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    spec_version: Mapped[int]
    agent_version: Mapped[int | None]
    shadow_version: Mapped[int | None]
    """Agent that is consulted too."""
    state: Mapped[str] = mapped_column(String(16), default="running")
    """running, finished, failed or cancelled."""
    outcome: Mapped[str] = mapped_column(String(16), default="on_track", server_default="on_track")
    """on_track or at_risk while it runs; met, missed, failed, cancelled or completed when it has ended."""
    outcome_reason: Mapped[str | None]
    expected_seconds: Mapped[float | None]
    """Seconds that its first iteration was predicted to take; none where nothing predicts it."""
    quiet: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether its next report need not come before something happens: it is never stale."""
    start: Mapped[dict[str, Any]]
    """What it was started with, as its kind has it."""
    state_vector: Mapped[list[Any]]
    next_iteration: Mapped[int] = mapped_column(default=0)
    decision: Mapped[dict[str, Any]]
    """The decision the run was started with."""
    finished_at: Mapped[datetime | None]
    kept_from: Mapped[int | None]
    """The first iteration that is stored, where earlier ones were deleted by age, or were not this run's."""
    drift: Mapped[dict[str, Any] | None]
    """What the test for drifts keeps, and what it has noticed; none before the first report that tells of one."""
    drifts: Mapped[int] = mapped_column(default=0)
    """How many it has noticed."""


RULED = Run.start["policy"].as_string().is_not(None)
"""Of runs that name the rule that decides for them."""

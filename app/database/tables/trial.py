"""Trials: the learners of one training, each a job of its own, that compete for one agent."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, CreatedMixin, Identifier, TenantMixin


class Trial(TenantMixin, CreatedMixin, Base):
    """One trial. Its job's row holds lease, state and the learner's checkpoint; this one how it stands."""

    __tablename__ = "trials"

    job_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    parent_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    """The training that it belongs to."""
    number: Mapped[int]
    algorithm: Mapped[str] = mapped_column(String(64))
    seed: Mapped[int]
    until: Mapped[float]
    """The share of its budget at which it rests and is compared."""
    rungs: Mapped[int] = mapped_column(default=0)
    """How many comparisons it has reached."""
    share: Mapped[float] = mapped_column(default=0.0)
    """How much of its budget it has used."""
    score: Mapped[float | None]
    """Mean return of the best policy that it had at a comparison, on the validation episodes."""
    ended: Mapped[str | None] = mapped_column(String(1024))
    """Why it was stopped; none while it goes on, and where it went to its end."""
    report: Mapped[dict[str, Any] | None]
    artifact: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """That best policy; forgotten once the training has ended."""

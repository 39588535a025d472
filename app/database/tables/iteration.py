"""Iterations: what a run reported, and what it was told."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import ForeignKey, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import DEFAULT_TENANT, Base, Identifier, utc_now
from app.database.packing import packed, unpacked, unpacked_size


class Iteration(Base):
    """One reported iteration of a run with the decision it was answered with, both in `packed`."""

    __tablename__ = "iterations"

    run_id: Mapped[str] = mapped_column(Identifier, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    tenant: Mapped[str] = mapped_column(String(63), default=DEFAULT_TENANT)
    digest: Mapped[str] = mapped_column(String(64))
    packed: Mapped[bytes] = mapped_column(LargeBinary)
    reported_at: Mapped[datetime] = mapped_column(default=utc_now)

    @classmethod
    def of(cls, run: str, iteration: int, report: Any, decision: Any, **values: Any) -> Iteration:
        """A row of a report and a decision, both anything that JSON can hold."""
        pack = packed(run, msgspec.json.encode(report), msgspec.json.encode(decision))
        return cls(run_id=run, iteration=iteration, packed=pack, **values)

    @property
    def size(self) -> int:
        """Bytes of both, as JSON."""
        return unpacked_size(self.packed)

    @property
    def report(self) -> dict[str, Any]:
        """The report."""
        return self._unpacked(0)

    @property
    def decision(self) -> dict[str, Any]:
        """The decision that answered it."""
        return self._unpacked(1)

    def _unpacked(self, which: int) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(unpacked(self.run_id, self.packed)[which])
        return found

"""Iterations: what a run reported, and what it was told."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import ForeignKey, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import DEFAULT_TENANT, Base, Identifier, utc_now
from app.database.packing import unpacked, unpacked_size


class Iteration(Base):
    """One reported iteration of a run with the decision it was answered with; both in `packed`, or each plain."""

    __tablename__ = "iterations"

    run_id: Mapped[str] = mapped_column(Identifier, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    tenant: Mapped[str] = mapped_column(String(63), default=DEFAULT_TENANT)
    digest: Mapped[str] = mapped_column(String(64))
    plain_report: Mapped[dict[str, Any]] = mapped_column("report", default=dict)
    plain_decision: Mapped[dict[str, Any]] = mapped_column("decision", default=dict)
    """As releases before have them; empty where they are packed."""
    packed: Mapped[bytes | None] = mapped_column(LargeBinary)
    reported_at: Mapped[datetime] = mapped_column(default=utc_now)

    @property
    def size(self) -> int:
        """Bytes of both, as JSON."""
        if self.packed is None:
            return len(msgspec.json.encode((self.plain_report, self.plain_decision)))
        return unpacked_size(self.packed)

    @property
    def report(self) -> dict[str, Any]:
        """What was reported."""
        return self.plain_report if self.packed is None else self._unpacked(0)

    @report.setter
    def report(self, given: dict[str, Any]) -> None:
        self._make_plain()
        self.plain_report = given

    @property
    def decision(self) -> dict[str, Any]:
        """What was answered."""
        return self.plain_decision if self.packed is None else self._unpacked(1)

    @decision.setter
    def decision(self, given: dict[str, Any]) -> None:
        self._make_plain()
        self.plain_decision = given

    def _unpacked(self, which: int) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(unpacked(self.run_id, self.packed or b"")[which])
        return found

    def _make_plain(self) -> None:
        if self.packed is not None:
            self.plain_report, self.plain_decision = self._unpacked(0), self._unpacked(1)
            self.packed = None

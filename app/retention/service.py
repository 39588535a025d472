"""Retention settings, and the deletion of expired data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from sqlalchemy import ColumnElement, delete, false, func, or_, select
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.database import leases
from app.database.engine import Database
from app.database.leases import Clock, database_time
from app.database.tables import AuditEntry, IdempotencyKey, Workload
from app.http import idempotency
from app.kinds.contract.inputs import stored
from app.retention import batches as due
from app.retention.batches import Batch, Retention, RetentionRead, batches
from app.settings import Settings
from app.workloads import service as workloads


def effective(own: Mapping[str, Any] | None, settings: Settings) -> Retention:
    """A workload's retention times in days: its own (None: none), completed by the service's settings."""
    defaults = {name: getattr(settings, f"retention_{name}") for name in Retention.model_fields}
    return Retention.model_validate({**defaults, **(own or {})})


def workloads_with_retention(database: Database, settings: Settings) -> list[tuple[Workload, Retention]]:
    """Workloads of all tenants with any retention time, and their retention."""
    with database.reading() as session:
        rows = session.scalars(select(Workload).order_by(Workload.created_at, Workload.id)).all()
    each = [(workload, effective(workload.retention, settings)) for workload in rows]
    # Whether any retention time is set
    return [
        (workload, retention)
        for workload, retention in each
        if any(days is not None for days in retention.model_dump().values())
    ]


def get_retention(database: Database, settings: Settings, tenant: str, name: str) -> RetentionRead:
    """API representation of a workload's retention.

    Raises:
        NotFound: there is no such workload.
        BrokenRow: the stored retention is invalid.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
    with stored(f"retention of {workload.name!r}"):
        return RetentionRead(
            workload=workload.name,
            given=Retention.model_validate(workload.retention or {}),
            effective=effective(workload.retention, settings),
        )


def put(database: Database, settings: Settings, tenant: str, name: str, retention: Retention) -> RetentionRead:
    """Replace a workload's own retention times; raises NotFound if there is no such workload."""
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        workload.retention = retention.model_dump(exclude_unset=True) or None
        audit.add(session, tenant, "retention.put", f"workload {workload.name}", workload.retention)
    return get_retention(database, settings, tenant, name)


# Deletion of due rows: batch by batch, each archived first, by one process at a time.
#
# A batch is on disk in the archive before it is deleted, in a short transaction that checks that this
# process still has the lease: after a crash nothing is lost, and the rest is repeated.


TASK = "prune"
HELD_SECONDS = 60.0


class Archive(Protocol):
    """Store of rows before their deletion."""

    def keep(self, workload: Workload, batch: Batch) -> None:
        """Write a batch durably, replacing an earlier copy; raises OSError if it can't be written."""
        ...


class NoArchive:
    """An archive that stores nothing."""

    def keep(self, workload: Workload, batch: Batch) -> None:
        """Do nothing: the batch is deleted without a copy."""


class HeldElsewhere(Exception):
    """Another process has the lease of pruning."""


class Due(NamedTuple):
    """Number of rows of a noun that are due for deletion in a workload, whose name is empty for rows of no workload."""

    workload: str
    noun: str
    rows: int


def plan(database: Database, settings: Settings, clock: Clock = database_time) -> list[Due]:
    """Number of rows that pruning would delete now, by noun and workload."""
    results = []
    for workload, retention in workloads_with_retention(database, settings):
        with database.reading() as session:
            counts = due.counts(session, workload.id, due.ages(retention, clock(session)))
        results += [Due(workload.name, noun, rows) for noun, rows in counts.items() if rows]
    with database.reading() as session:
        now = clock(session)
        conditions = {
            "idempotency keys": IdempotencyKey.created_at < now - timedelta(seconds=settings.idempotency_seconds),
            "audit entries": _old_audit(session, settings, now),
        }
        for noun, old in conditions.items():
            if rows := session.scalar(select(func.count()).where(old)):
                results.append(Due("", noun, rows))
    return results


def _old_audit(session: Session, settings: Settings, now: datetime) -> ColumnElement[bool]:
    """SQL condition: audit entries about runs or jobs that are older than the longest retention of any workload."""
    own = session.scalars(select(Workload.retention)).all()
    each = [effective(retention, settings) for retention in (None, *own)]
    old: list[ColumnElement[bool]] = []
    for noun, actions in due.AUDITED.items():
        days = [getattr(one, f"{noun}_days") for one in each]
        if None not in days:
            old.append(AuditEntry.action.in_(actions) & (AuditEntry.created_at < now - timedelta(days=max(days))))
    return or_(false(), *old)


class Pruning:
    """One round of pruning.

    Args:
        database: the service's database.
        settings: the service's retention times.
        archive: stores rows before their deletion.
        owner: name of this process, for the lease.
        clock: time of a database session.
    """

    def __init__(
        self, database: Database, settings: Settings, archive: Archive, owner: str, clock: Clock = database_time
    ) -> None:
        self._database, self._settings, self._archive = database, settings, archive
        self._owner, self._clock = owner, clock

    def run(self) -> Mapping[tuple[str, str], int]:
        """Archive and delete all due rows; returns the number of deleted rows by workload and noun.

        Raises:
            HeldElsewhere: another process has the lease.
            OSError: the archive can't be written; only archived rows were deleted.
        """
        self._hold()
        gone: Counter[tuple[str, str]] = Counter()
        try:
            for workload, retention in workloads_with_retention(self._database, self._settings):
                with self._database.reading() as session:
                    ages = due.ages(retention, self._clock(session))
                for batch in batches(self._database.reading, workload, ages):
                    gone[workload.name, batch.noun] += self._go(workload, batch)
            self._forget_audit()
            self._forget_keys()
        finally:
            with self._database.session() as session:
                leases.release(session, TASK, self._owner)
        return gone

    def _go(self, workload: Workload, batch: Batch) -> int:
        if not batch.rows:
            return 0
        self._archive.keep(workload, batch)
        with self._database.session() as session:
            self._still(leases.hold(session, TASK, self._owner, HELD_SECONDS, self._clock))
            return batch.delete(session)

    def _hold(self) -> None:
        with self._database.session() as session:
            self._still(leases.hold(session, TASK, self._owner, HELD_SECONDS, self._clock))

    def _still(self, needed: bool) -> None:
        if not needed:
            raise HeldElsewhere("another process is deleting")

    def _forget_audit(self) -> None:
        """Delete entries about runs and jobs that were deleted by hand, or with their workload."""
        gone = due.ROWS
        while gone == due.ROWS:
            with self._database.session() as session:
                self._still(leases.hold(session, TASK, self._owner, HELD_SECONDS, self._clock))
                old = _old_audit(session, self._settings, self._clock(session))
                ids = session.scalars(select(AuditEntry.id).where(old).limit(due.ROWS)).all()
                session.execute(delete(AuditEntry).where(AuditEntry.id.in_(ids)))
                gone = len(ids)

    def _forget_keys(self) -> None:
        with self._database.session() as session:
            before = self._clock(session) - timedelta(seconds=self._settings.idempotency_seconds)
            idempotency.purge(session, before)

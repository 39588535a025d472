"""Deleting what is due: batch by batch, each archived first, by one process at a time.

A batch is on disk in the archive before it is deleted, and is deleted in a short transaction that proves that this
process still holds the task: a crash at any point loses nothing, and what it leaves is done again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple, Protocol

from sqlalchemy import func, select

from app.database import leases
from app.database.clock import Clock, database_time
from app.database.engine import Database
from app.database.tables import IdempotencyKey, Workload
from app.http.idempotency import repository as idempotency
from app.retention import due, service
from app.retention.batches import Batch, batches
from app.settings import Settings

TASK = "prune"
HELD_SECONDS = 60.0

logger = logging.getLogger(__name__)


class Archive(Protocol):
    """Where rows are kept before they are deleted."""

    def keep(self, workload: Workload, batch: Batch) -> None:
        """Have a batch on disk when this returns; one that is there already is written anew.

        Raises:
            OSError: it can't be written.
        """
        ...


class NoArchive:
    """What is deleted is gone."""

    def keep(self, workload: Workload, batch: Batch) -> None:
        """Nothing is kept."""


class HeldElsewhere(Exception):
    """Another process deletes what is due."""


class Due(NamedTuple):
    """Rows of a noun that are due, of one workload; of no workload's, the name is empty."""

    workload: str
    noun: str
    rows: int


def plan(database: Database, settings: Settings, clock: Clock = database_time) -> list[Due]:
    """What would be deleted now."""
    found = []
    for workload, retention in service.concerned(database, settings):
        with database.reading() as session:
            counts = due.counts(session, workload.id, due.ages(retention, clock(session)))
        found += [Due(workload.name, noun, rows) for noun, rows in counts.items() if rows]
    with database.reading() as session:
        old = IdempotencyKey.created_at < clock(session) - timedelta(seconds=settings.idempotency_seconds)
        keys = session.scalar(select(func.count()).select_from(IdempotencyKey).where(old)) or 0
    return [*found, Due("", "idempotency keys", keys)] if keys else found


class Pruning:
    """One round of it.

    Args:
        owner: name of this process, under which it holds the task.
    """

    def __init__(
        self, database: Database, settings: Settings, archive: Archive, owner: str, clock: Clock = database_time
    ) -> None:
        self._database, self._settings, self._archive = database, settings, archive
        self._owner, self._clock = owner, clock

    def run(self) -> Mapping[tuple[str, str], int]:
        """Delete all that is due; by workload and noun, how many rows went.

        Raises:
            HeldElsewhere: another process does it; what this one began is done or left to it.
            OSError: the archive can't be written; nothing was deleted that is not in it.
        """
        self._hold()
        gone: Counter[tuple[str, str]] = Counter()
        try:
            for workload, retention in service.concerned(self._database, self._settings):
                with self._database.reading() as session:
                    ages = due.ages(retention, self._clock(session))
                for batch in batches(self._database.reading, workload, ages):
                    gone[workload.name, batch.noun] += self._go(workload, batch)
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

    def _still(self, held: bool) -> None:
        if not held:
            raise HeldElsewhere("another process deletes what is due")

    def _forget_keys(self) -> None:
        """Keys of requests that nobody will repeat any more."""
        with self._database.session() as session:
            before = self._clock(session) - timedelta(seconds=self._settings.idempotency_seconds)
            idempotency.purge(session, before)

"""Reports with their decisions, as they are written: in one transaction, or each by itself where one is at fault."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

import msgspec
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from app.database.packing import packed
from app.database.writer import Writer
from app.drift.detector import encoded
from app.kinds.registry import KINDS
from app.runs import outcomes, repository
from app.runs.deciding import Item
from app.runs.repository import Entry, OutrunError

logger = logging.getLogger(__name__)

SERIALISATION = frozenset({"40001", "40P01"})  # SQLSTATEs of transactions that PostgreSQL undid to resolve a conflict


def written(writer: Writer, ready: Sequence[Item], now: datetime) -> dict[str, Exception | None]:
    """Commit; gives the runs that were written (None), or whose report can't be; the others have been outrun."""
    entries, faults = _entries(ready)
    return faults | (_outcome(writer, entries, now) if entries else {})


def entry(item: Item) -> Entry:
    """What is written of an item that is decided."""
    live = item.live
    stored = KINDS[live.kind].engine.serialise(item.answered.state)
    run, iteration = item.pending.run, item.pending.iteration
    drift = None if item.drift is live.drift else (msgspec.Raw(encoded(item.drift)), len(item.drift.notices))
    risk, quiet = item.risk, item.answered.quiet
    outcome = None if (risk, quiet) == (live.risk, live.quiet) else (*outcomes.live(risk), quiet)
    both = packed(run, item.encoded, item.answered.decision)
    return Entry(run, iteration, live.tenant, item.digest, stored, both, drift, outcome)


def _entries(ready: Sequence[Item]) -> tuple[list[Entry], dict[str, Exception | None]]:
    """What is written of them; and, by run, why nothing can be of one."""
    entries: list[Entry] = []
    faults: dict[str, Exception | None] = {}
    for item in ready:
        try:
            entries.append(item.entry or entry(item))
        except Exception as error:
            logger.exception("run %s: iteration %d can't be written", item.live.id, item.pending.iteration)
            faults[item.live.id] = error
    return entries, faults


def _outcome(writer: Writer, entries: Sequence[Entry], now: datetime) -> dict[str, Exception | None]:
    """All in one transaction, or else, where one may be at fault, each by itself."""
    try:
        return dict.fromkeys(_commit(writer, entries, now))
    except DBAPIError as error:
        if len(entries) == 1 or not _is_of_one(error):
            raise
    outcome: dict[str, Exception | None] = {}
    for entry in entries:
        try:
            outcome |= dict.fromkeys(_commit(writer, [entry], now))
        except DBAPIError as error:
            outcome[entry.run] = error
    return outcome


def _commit(writer: Writer, entries: Sequence[Entry], now: datetime) -> set[str]:
    """The runs that were written; the others have been outrun."""
    try:
        with writer.batch() as connection:
            return repository.append(connection, entries, now)
    except OutrunError:
        with writer.transaction() as connection:
            return repository.append_current(connection, entries, now)


def _is_of_one(error: DBAPIError) -> bool:
    """Whether one report of several may be at fault, so that the others are worth trying by themselves."""
    if isinstance(error, DataError | IntegrityError):
        return True
    return getattr(error.orig, "sqlstate", None) in SERIALISATION

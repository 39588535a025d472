"""Decide and store a batch of reports; the cache of live runs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec
from sqlalchemy import Row
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from app.database.engine import Writer
from app.database.packing import pack_iteration, unpack_iteration
from app.database.tables import Run
from app.drift.detector import NOTHING, Drift, Report, encode_drift, new_notices, observe_residuals, restore_drift
from app.kinds.contract.engine import EncodedDecision, Pending, Shadow, Snapshot
from app.kinds.engine import Compiled
from app.kinds.registry import KINDS
from app.runs import outcomes, repository
from app.runs.repository import RUNNING, Entry, OutrunError

# Live runs that a process caches between reports.
#
# A cached run may be out of date, because another process may have stored a report: the write checks that it was
# current.


LARGEST_CACHE = 64 << 20  # bytes
LARGEST_STARTED = 16 << 20
SLIGHT = 1_024  # bytes: smaller changes of a cached run's weight are ignored
OVERHEAD = 8_000  # bytes of a run beside its state, mostly of its drift test
BYTES_OF_JSON = 6  # bytes of memory that an object takes per byte of its JSON


class Live(msgspec.Struct, eq=False):
    """A run after its last stored report, as the process caches it.

    Attributes:
        following: number of the next iteration to be reported.
        kind_state: its state, in its kind's representation.
        start: its start parameters.
        digest, decision: hash of the last report, and the decision on it (JSON); empty before the first.
        shadow: the agent that decides beside the champion; None: none.
        drift: state of the sequential drift test.
        risk: why it is at risk of missing a target; empty while it is on track.
        quiet: whether no report is due until an event happens.
        changes: number of changes of ``start``.
        weight: bytes of memory that do not change between reports.
    """

    id: str
    tenant: str
    workload: str
    workload_id: str
    state: str
    following: int
    kind_state: Any
    start: dict[str, Any]
    kind: str
    digest: str
    decision: bytes
    shadow: Shadow | None
    drift: Drift = NOTHING
    risk: str = ""
    quiet: bool = False
    changes: int = 0
    weight: int = OVERHEAD

    def __post_init__(self) -> None:
        self.weight = OVERHEAD + (BYTES_OF_JSON * len(msgspec.json.encode(self.start)) if self.start else 0)

    @property
    def running(self) -> bool:
        """Whether the run accepts reports."""
        return self.state == RUNNING


def from_stored(row: Row[Any], shadow: Shadow | None = None) -> Live:
    """A live run from ``row`` of ``repository.deciding_row``; ``shadow``: the agent beside it, None: none."""
    return Live(
        id=row.id,
        tenant=row.tenant,
        workload=row.name,
        workload_id=row.workload_id,
        state=row.state,
        following=row.next_iteration,
        kind_state=KINDS[row.kind].engine.restore(row.state_vector),
        start=row.start,
        kind=row.kind,
        digest=row.digest or "",
        decision=_last_decision(row),
        shadow=shadow,
        drift=restore_drift(row.drift),
        risk=row.outcome_reason or "" if row.outcome == "at_risk" else "",
        quiet=row.quiet,
        changes=row.changes,
    )


def from_start(run: Run, snapshot: Snapshot) -> Live:
    """A live run of a workload that has just been started, without a shadow."""
    kind = snapshot.spec.kind
    return Live(
        id=run.id,
        tenant=run.tenant,
        workload=snapshot.name,
        workload_id=run.workload_id,
        state=run.state,
        following=run.next_iteration,
        kind_state=KINDS[kind].engine.restore(run.state_vector),
        start=run.start,
        kind=kind,
        digest="",
        decision=b"",
        shadow=None,
        risk=run.outcome_reason or "",
        quiet=run.quiet,
    )


def _last_decision(row: Row[Any]) -> bytes:
    if row.digest is None:  # before the first iteration
        return b""
    return unpack_iteration(row.id, row.packed)[1]


class LiveCache:
    """The most recently reported runs by id, up to ``size`` bytes; a run larger than half of that isn't cached."""

    def __init__(self, size: int = LARGEST_CACHE) -> None:
        self._size, self.weight = size, 0
        self._runs: OrderedDict[str, Live] = OrderedDict()
        self._weights: dict[str, int] = {}

    def get(self, run: str) -> Live | None:
        """The cached run, marked as recently used; None if it isn't cached."""
        live = self._runs.get(run)
        if live is not None:
            self._runs.move_to_end(run)
        return live

    def put(self, live: Live) -> None:
        """Cache a run; the least recently used runs are evicted while the total exceeds ``size``."""
        weight = _weight(live)
        if weight > self._size // 2:
            self.drop(live.id)
            return
        self.weight += weight - self._weights.get(live.id, 0)
        self._runs[live.id], self._weights[live.id] = live, weight
        self._runs.move_to_end(live.id)
        while self.weight > self._size:
            self.drop(next(iter(self._runs)))

    def reweigh(self, live: Live) -> None:
        """Update the weight of a cached run whose state has changed; no effect if it isn't cached."""
        if self._runs.get(live.id) is live and abs(_weight(live) - self._weights[live.id]) > SLIGHT:
            self.put(live)

    def drop(self, run: str) -> None:
        """Remove a run from the cache; no effect if it isn't there."""
        if self._runs.pop(run, None) is not None:
            self.weight -= self._weights.pop(run)


class StartedRuns:
    """Runs started by this process without a report yet, so that their first report needs no database query.

    Thread-safe: worker threads add runs, event loops remove them.
    """

    def __init__(self, size: int = LARGEST_STARTED) -> None:
        self._lock, self._runs = threading.Lock(), LiveCache(size)

    def put(self, live: Live) -> None:
        """Cache a run whose start was committed."""
        with self._lock:
            self._runs.put(live)

    def take(self, run: str) -> Live | None:
        """Remove and return the run; None if it isn't cached."""
        with self._lock:
            live = self._runs.get(run)
            self._runs.drop(run)
        return live


def _weight(live: Live) -> int:
    return live.weight + KINDS[live.kind].engine.weight(live.kind_state) + len(live.decision)


# Waiting reports are decided together, with one policy evaluation per workload, and tested for drift.
#
# An error of one report is raised to its own caller only.


logger = logging.getLogger(__name__)
UNDECIDED = EncodedDecision(b"", None)


class Verdict(Enum):
    """Why a report was not written and has to be tried again."""

    CHANGED = "the run has moved on in this process"
    OUTRUN = "another process has moved the run on"


class Item(msgspec.Struct, eq=False):
    """A report that waits to be decided and written.

    Attributes:
        pending: the report as the kind's engine takes it; ``encoded`` as JSON, with its hash ``digest``.
        future: receives the decision (JSON), or a Verdict if the report was not written.
        commit: called just before the write; from then on the request must not be answered as cancelled.
        answer: the decision and the run's next state; ``drift`` the state of the drift test.
        entry: the row to write, if ``decide_aside`` has made it; None otherwise.
    """

    live: Live
    compiled: Compiled
    pending: Pending
    digest: str
    encoded: bytes
    future: asyncio.Future[bytes | Verdict]
    commit: Callable[[], None]
    answer: EncodedDecision = UNDECIDED
    drift: Drift = NOTHING
    entry: Entry | None = None

    @property
    def risk(self) -> str:
        """Why the run is at risk after this decision; unchanged if the engine can't tell."""
        return self.live.risk if self.answer.risk is None else self.answer.risk


def decide_items(items: Sequence[Item], now: datetime) -> list[Item]:
    """Decide items, with one policy evaluation per workload, and return those that succeeded.

    Futures of the others get their exception.
    """
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(id(item.compiled), []).append(item)
    return [item for group in groups.values() for item in _group(group, now)]


def _group(items: Sequence[Item], now: datetime) -> Sequence[Item]:
    """Decide the undecided items of one workload, and return the items that succeeded."""
    waiting = [item for item in items if item.answer is UNDECIDED]
    failed = set[int]()
    if waiting:
        engine = KINDS[waiting[0].live.kind].engine
        answers = engine.answer(waiting[0].compiled, [item.pending for item in waiting], now)
        for item, answered in zip(waiting, answers, strict=True):
            if isinstance(answered, Exception):
                _fail(item, answered)
                failed.add(id(item))
            else:
                item.answer = answered
    left = [item for item in items if id(item) not in failed]
    return [item for item in left if item.entry is not None or _is_watched(item, now)]


def _is_watched(item: Item, now: datetime) -> bool:
    try:
        _watch(item, now)
    except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
        _fail(item, error)
        return False
    return True


def _fail(item: Item, error: Exception) -> None:
    """Log an item's error, and set it as the exception of the item's future."""
    logger.error("run %s: iteration %d can't be decided", item.live.id, item.pending.iteration, exc_info=error)
    item.future.set_exception(error)


def _watch(item: Item, now: datetime) -> None:
    """Update the drift test with a report's residuals, and add new drift notices to the decision."""
    answered, before = item.answer, item.live.drift
    residuals = answered.residuals
    if residuals is None:
        item.drift = before
        return
    snapshot = item.compiled.snapshot
    report = Report(item.pending.iteration, snapshot.model_version, now, snapshot.answering)
    item.drift = observe_residuals(before, residuals, report)
    notices = new_notices(before, item.drift)
    if notices:
        logger.warning("run %s: %s", item.live.id, "; ".join(notice.text for notice in notices))
        encoded = b'%b,"drift":%b}' % (answered.decision[:-1], msgspec.json.encode(notices))
        item.answer = msgspec.structs.replace(answered, decision=encoded)


def decide_aside(item: Item, now: datetime) -> None:
    """Read and decide one expensive report, in a worker thread.

    If the run's state changes meanwhile, the decision is discarded when it is to be written.
    Raises InvalidInput or Contradiction if the report doesn't fit the run.
    """
    engine, pending = KINDS[item.live.kind].engine, item.pending
    report = engine.read(item.compiled, pending.state, pending.iteration, pending.report)
    [answered] = engine.answer(item.compiled, [msgspec.structs.replace(pending, report=report)], now)
    if isinstance(answered, Exception):
        raise answered
    item.answer = answered
    _watch(item, now)


# Reports and decisions are written in one transaction, or one by one if one of them makes the transaction fail.


SERIALISATION = frozenset({"40001", "40P01"})  # SQLSTATEs of transactions that PostgreSQL undid to resolve a conflict


def written(writer: Writer, ready: Sequence[Item], now: datetime) -> dict[str, Exception | None]:
    """Write the decided items; returns, by run id, None for a run written or the exception of one that can't be.

    Runs missing from the result were advanced by another process. Raises DBAPIError for other errors.
    """
    entries, faults = _entries(ready)
    return faults | (_outcome(writer, entries, now) if entries else {})


def entry(item: Item) -> Entry:
    """The row that stores a decided report."""
    live = item.live
    stored = KINDS[live.kind].engine.serialise(item.answer.state)
    run, iteration = live.id, item.pending.iteration
    drift = None if item.drift is live.drift else (msgspec.Raw(encode_drift(item.drift)), len(item.drift.notices))
    risk, quiet = item.risk, item.answer.quiet
    outcome = None if (risk, quiet) == (live.risk, live.quiet) else (*outcomes.running_outcome(risk), quiet)
    both = pack_iteration(run, item.encoded, item.answer.decision)
    spending = item.answer.spending
    spent = None if spending is None else (spending.cost, spending.seconds, spending.next_cost, spending.next_seconds)
    return Entry(run, iteration, live.tenant, item.digest, stored, both, drift, outcome, spent, live.changes)


def _entries(ready: Sequence[Item]) -> tuple[list[Entry], dict[str, Exception | None]]:
    """The rows to write, and the exceptions of reports that can't be serialised, by run id."""
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
    """Write all rows in one transaction, or each in its own if one may be invalid; returns None or an exception by run
    id, without runs that another process advanced. Raises DBAPIError for errors that aren't of a single row."""
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
    """Write rows in one transaction and return the ids of the runs written; other runs had been advanced elsewhere."""
    try:
        with writer.batch() as connection:
            return repository.append(connection, entries, now)
    except OutrunError:
        with writer.transaction() as connection:
            return repository.append_current(connection, entries, now)


def _is_of_one(error: DBAPIError) -> bool:
    """Whether the error may come from a single row, so that writing rows one by one can help."""
    if isinstance(error, DataError | IntegrityError):
        return True
    return getattr(error.orig, "sqlstate", None) in SERIALISATION

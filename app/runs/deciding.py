"""A batch of reports: live runs, decisions and the rows that are written."""

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
from app.database.packing import packed, unpacked
from app.database.tables import Run
from app.drift.detector import NOTHING, Drift, Report, encoded, new_notices, observed, restored
from app.kinds.contract.engine import Answered, Pending, Shadow
from app.kinds.engine import Compiled
from app.kinds.registry import KINDS
from app.runs import outcomes, repository
from app.runs.repository import RUNNING, Entry, OutrunError

# Runs as a process keeps them between reports.
#
# What is kept may be out of date, for another process may have taken a report: the write proves that it was current.


LARGEST_CACHE = 64 << 20  # bytes
LARGEST_STARTED = 16 << 20
SLIGHT = 1_024  # bytes that a run may weigh more or less than is reckoned with
OVERHEAD = 8_000  # bytes of a run beside its state: what its test for drifts keeps, above all
BYTES_OF_JSON = 6  # that an object takes, for each that it is written in


class Live(msgspec.Struct, eq=False):
    """A run after its last known report.

    Attributes:
        following: number of the iteration that is reported next.
        kept: its state, as its kind has it.
        start: what it was started with.
        digest, decision: of the last reported iteration; empty before the first.
        shadow: the agent that is consulted too, if there is one.
        drift: what the test for drifts keeps.
        risk: why it is at risk; empty while it is on track.
        quiet: whether its next report need not come before something happens.
        weight: bytes of it that stay the same.
    """

    id: str
    tenant: str
    workload: str
    workload_id: str
    state: str
    following: int
    kept: Any
    start: dict[str, Any]
    kind: str
    digest: str
    decision: bytes
    shadow: Shadow | None
    drift: Drift = NOTHING
    risk: str = ""
    quiet: bool = False
    weight: int = OVERHEAD

    def __post_init__(self) -> None:
        """Weigh what stays the same."""
        self.weight = OVERHEAD + (BYTES_OF_JSON * len(msgspec.json.encode(self.start)) if self.start else 0)

    @property
    def running(self) -> bool:
        """Whether it takes reports."""
        return self.state == RUNNING


def from_stored(found: Row[Any], shadow: Shadow | None = None) -> Live:
    """A run as it stands in the database."""
    return Live(
        id=found.id,
        tenant=found.tenant,
        workload=found.name,
        workload_id=found.workload_id,
        state=found.state,
        following=found.next_iteration,
        kept=KINDS[found.kind].engine.restore(found.state_vector),
        start=found.start,
        kind=found.kind,
        digest=found.digest or "",
        decision=_last_decision(found),
        shadow=shadow,
        drift=restored(found.drift),
        risk=found.outcome_reason or "" if found.outcome == "at_risk" else "",
        quiet=found.quiet,
    )


def from_start(run: Run, workload: str, kind: str) -> Live:
    """A run that has just been started, without a shadow."""
    return Live(
        id=run.id,
        tenant=run.tenant,
        workload=workload,
        workload_id=run.workload_id,
        state=run.state,
        following=run.next_iteration,
        kept=KINDS[kind].engine.restore(run.state_vector),
        start=run.start,
        kind=kind,
        digest="",
        decision=b"",
        shadow=None,
        risk=run.outcome_reason or "",
        quiet=run.quiet,
    )


def _last_decision(found: Row[Any]) -> bytes:
    if found.digest is None:  # before the first iteration
        return b""
    return unpacked(found.id, found.packed)[1]


class LiveCache:
    """The most recently reported runs, by id, in ``size`` bytes; one that would take half of them isn't kept."""

    def __init__(self, size: int = LARGEST_CACHE) -> None:
        self._size, self.weight = size, 0
        self._runs: OrderedDict[str, Live] = OrderedDict()
        self._weights: dict[str, int] = {}

    def get(self, run: str) -> Live | None:
        """The run, if it is kept."""
        live = self._runs.get(run)
        if live is not None:
            self._runs.move_to_end(run)
        return live

    def put(self, live: Live) -> None:
        """Keep a run; the least recently reported ones go when all together are too large."""
        weight = _weight(live)
        if weight > self._size // 2:
            self.drop(live.id)
            return
        self.weight += weight - self._weights.get(live.id, 0)
        self._runs[live.id], self._weights[live.id] = live, weight
        self._runs.move_to_end(live.id)
        while self.weight > self._size:
            self.drop(next(iter(self._runs)))

    def grown(self, live: Live) -> None:
        """A run has another state than when it was put; it is weighed again, if it is kept."""
        if self._runs.get(live.id) is live and abs(_weight(live) - self._weights[live.id]) > SLIGHT:
            self.put(live)

    def drop(self, run: str) -> None:
        """Remove a run from the cache; nothing happens if it is not there."""
        if self._runs.pop(run, None) is not None:
            self.weight -= self._weights.pop(run)


class StartedRuns:
    """Runs that this process has started and that haven't reported yet: the first report needs no look at the database.

    Threads put them in, and event loops take them out.
    """

    def __init__(self, size: int = LARGEST_STARTED) -> None:
        self._lock, self._runs = threading.Lock(), LiveCache(size)

    def put(self, live: Live) -> None:
        """Keep a run that was committed."""
        with self._lock:
            self._runs.put(live)

    def take(self, run: str) -> Live | None:
        """The run, if it is kept; it is no longer."""
        with self._lock:
            live = self._runs.get(run)
            self._runs.drop(run)
        return live


def _weight(live: Live) -> int:
    return live.weight + KINDS[live.kind].engine.weight(live.kept) + len(live.decision)


# Reports that wait: decided together, one evaluation per workload, and what they say of drifts.
#
# What fails of one report is told to whoever awaits it, and to nobody else.


logger = logging.getLogger(__name__)
UNDECIDED = Answered(b"", None)


class Verdict(Enum):
    """What became of a report that was not written."""

    CHANGED = "the run has moved on in this process"
    OUTRUN = "another process has moved the run on"


class Item(msgspec.Struct, eq=False):
    """A report that waits: to be decided, then for the disk; as its kind's engine takes it, and as it is answered."""

    live: Live
    compiled: Compiled
    pending: Pending
    digest: str
    encoded: bytes
    future: asyncio.Future[bytes | Verdict]
    commit: Callable[[], None]
    """Called when it is about to be written: from there on nobody may be answered that it wasn't."""
    answered: Answered = UNDECIDED
    drift: Drift = NOTHING
    entry: Entry | None = None
    """What is written, where that was made aside: by ``decide_aside``."""

    @property
    def risk(self) -> str:
        """Why the run is at risk after the answer: as before where that can't be found out."""
        return self.live.risk if self.answered.risk is None else self.answered.risk


def decided(items: Sequence[Item], now: datetime) -> list[Item]:
    """The items with their answers, one evaluation per workload, but for those that are told they can't be decided."""
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(id(item.compiled), []).append(item)
    return [item for group in groups.values() for item in _group(group, now)]


def _group(items: Sequence[Item], now: datetime) -> Sequence[Item]:
    """Advance each run of a workload by its report, and decide, unless that is done already."""
    waiting = [item for item in items if item.answered is UNDECIDED]
    failed = set[int]()
    if waiting:
        engine = KINDS[waiting[0].live.kind].engine
        answers = engine.answer(waiting[0].compiled, [item.pending for item in waiting], now)
        for item, answered in zip(waiting, answers, strict=True):
            if isinstance(answered, Exception):
                _fail(item, answered)
                failed.add(id(item))
            else:
                item.answered = answered
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
    """Answer one report with what went wrong with it, whatever its neighbours are answered."""
    logger.error("run %s: iteration %d can't be decided", item.live.id, item.pending.iteration, exc_info=error)
    item.future.set_exception(error)


def _watch(item: Item, now: datetime) -> None:
    """Take what a report says of drifts; what is noticed by it stands in its decision."""
    answered, before = item.answered, item.live.drift
    residuals = answered.residuals
    if residuals is None:
        item.drift = before
        return
    snapshot = item.compiled.snapshot
    report = Report(item.pending.iteration, snapshot.model_version, now, snapshot.answering)
    item.drift = observed(before, residuals, report)
    notices = new_notices(before, item.drift)
    if notices:
        logger.warning("run %s: %s", item.live.id, "; ".join(notice.text for notice in notices))
        told = b'%b,"drift":%b}' % (answered.decision[:-1], msgspec.json.encode(notices))
        item.answered = msgspec.structs.replace(answered, decision=told)


def decide_aside(item: Item, now: datetime) -> None:
    """In a thread: the answer to one report that takes long; its report isn't read yet.

    The state that it starts from may be outrun meanwhile, here or elsewhere; then it is never written.

    Raises:
        InvalidInput, Contradiction: the report doesn't fit the run.
    """
    engine, pending = KINDS[item.live.kind].engine, item.pending
    report = engine.read(item.compiled, pending.state, pending.iteration, pending.report)
    [answered] = engine.answer(item.compiled, [msgspec.structs.replace(pending, report=report)], now)
    if isinstance(answered, Exception):
        raise answered
    item.answered = answered
    _watch(item, now)


# Reports with their decisions, as they are written: in one transaction, or each by itself where one is at fault.


SERIALISATION = frozenset({"40001", "40P01"})  # SQLSTATEs of transactions that PostgreSQL undid to resolve a conflict


def written(writer: Writer, ready: Sequence[Item], now: datetime) -> dict[str, Exception | None]:
    """Commit; gives the runs that were written (None), or whose report can't be; the others have been outrun."""
    entries, faults = _entries(ready)
    return faults | (_outcome(writer, entries, now) if entries else {})


def entry(item: Item) -> Entry:
    """What is written of an item that is decided."""
    live = item.live
    stored = KINDS[live.kind].engine.serialise(item.answered.state)
    run, iteration = live.id, item.pending.iteration
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

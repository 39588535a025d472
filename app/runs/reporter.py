"""The way of a report: decided together with others, written together with others, answered when it is on disk.

Reports arrive one by one and wait; one writer takes what waits, decides for all of it at once, and commits reports and
decisions in one durable transaction. While the disk works, the next reports gather. So the cost of deciding and of
committing is shared by whatever the load is, and an acknowledged report survives any crash.

Runs are kept in memory between reports, and may be out of date: another process may have taken a report of the same
run. The write advances a run only from where it was decided, so nothing is decided twice; what was outrun is read
again and tried once more.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

import msgspec
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from app.database.base import utc_now
from app.database.engine import Database
from app.database.packing import packed
from app.database.writer import Writer
from app.decisions import service as decisions
from app.decisions.compiled import CompiledWorkloads
from app.decisions.shadow import Shadows
from app.drift.detector import NOTHING, Drift, Report, encoded, new_notices, observed
from app.drift.metering import DriftMeter
from app.errors import Conflict, FieldError, NotFound, Unavailable
from app.http.batching import LARGEST_BATCH, Gathering
from app.http.characters import check_names
from app.kinds.contract.engine import Answered, CompiledWorkload, DecisionEngine, Pending
from app.kinds.registry import KINDS
from app.runs import repository
from app.runs.live import Live, LiveCache, from_loaded
from app.runs.repository import Entry, OutrunError
from app.runs.waiting import Waiting

logger = logging.getLogger(__name__)
T = TypeVar("T")

ATTEMPTS = 4
CONCURRENT = 2  # batches on their way to PostgreSQL, which flushes its log for both at once
SWITCH_SECONDS = 0.0002
REST_SECONDS = 1.0  # without reports, after which connections are given back
CREATED, REPEATED = 201, 200
SERIALISATION = frozenset({"40001", "40P01"})  # SQLSTATEs of transactions that PostgreSQL undid to resolve a conflict


NOTHING_PLAIN = msgspec.Raw(b"{}")
UNDECIDED = Answered(b"", None)


class Verdict(Enum):
    """What became of a report that was not written."""

    CHANGED = "the run has moved on in this process"
    OUTRUN = "another process has moved the run on"


@dataclass(eq=False, slots=True)
class Item:
    """A report that waits: to be decided, then for the disk; as its kind's engine takes it, and as it is answered."""

    live: Live
    compiled: CompiledWorkload
    pending: Pending
    digest: str
    encoded: bytes
    future: asyncio.Future[bytes | Verdict]
    answered: Answered = UNDECIDED
    drift: Drift = NOTHING

    def entry(self, *, pack: bool) -> Entry:
        """What is written of it."""
        live, raw = self.live, msgspec.Raw
        decision, state, _ = self.answered
        stored = KINDS[live.kind].engine.serialise(state)
        run, iteration = self.pending.run, self.pending.iteration
        drift = None if self.drift is live.drift else (raw(encoded(self.drift)), len(self.drift.notices))
        if not pack:
            return Entry(
                run, iteration, live.tenant, self.digest, raw(self.encoded), raw(decision), stored, None, drift
            )
        both = packed(run, self.encoded, decision)
        return Entry(run, iteration, live.tenant, self.digest, NOTHING_PLAIN, NOTHING_PLAIN, stored, both, drift)


class Reporter:
    """Takes the reports of one process; lives on one event loop.

    Args:
        database: where reports are kept.
        compiled_workloads: what each workload is decided with.
        meter: counts what has drifted.
        clock: the time of decisions.
        pack: whether reports are stored packed, which the release before can't read.
    """

    def __init__(
        self,
        database: Database,
        compiled_workloads: CompiledWorkloads,
        meter: DriftMeter | None = None,
        clock: Callable[[], datetime] = utc_now,
        pack: bool = True,
    ) -> None:
        self._pack = pack
        self._database, self._compiled, self._clock = database, compiled_workloads, clock
        self._meter = meter or DriftMeter()
        self._runs, self._shadows = LiveCache(), Shadows(database)
        self._waiting = Waiting()
        self._pending: list[Item] = []
        self._moving: set[str] = set()
        self._writers = [database.writer() for _ in range(1 if database.is_sqlite else CONCURRENT)]
        self._in_flight, self._sharing = 0, len(self._writers)
        self._gathering = Gathering(lambda: len(self._pending), self._flush, LARGEST_BATCH, self._share)
        sys.setswitchinterval(SWITCH_SECONDS)  # the writer's thread must not wait long for the event loop's
        self._resting: asyncio.TimerHandle | None = None
        self._threads = ThreadPoolExecutor(len(self._writers), thread_name_prefix="report-writer")
        self._reader = ThreadPoolExecutor(4, thread_name_prefix="report-reader")

    async def report(self, tenant: str, run: str, iteration: int, body: bytes) -> tuple[int, bytes]:
        """The decision that answers iteration ``iteration`` of a run, and 201 when it is new, 200 when it is repeated.

        Raises:
            NotFound: no such run.
            Conflict: another report is there under that number, numbers are left out, or the run has ended.
            ValidationError, Invalid, InvalidInput: ``body`` is no report of the run's kind, or doesn't fit it.
            Unavailable: too many reports wait, or other processes keep taking reports of the same run.
        """
        number = self._waiting.enter()
        try:
            return await self._report(tenant, run, iteration, body)
        finally:
            self._waiting.leave(number)

    async def _report(self, tenant: str, run: str, iteration: int, body: bytes) -> tuple[int, bytes]:
        live = self._runs.get(run)
        fresh = live is None
        digest, encoded = "", b""
        for _ in range(ATTEMPTS):
            if live is None or live.tenant != tenant:
                live, fresh = await self._load(tenant, run), True
            if not digest:
                report = KINDS[live.kind].engine.decode(body)
                encoded = msgspec.json.encode(report, order="deterministic")
                check_names(body, encoded.count(b'":'))
                digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
            if iteration < live.following:
                return REPEATED, await self._repeated(live, iteration, digest)
            if iteration > live.following or not live.running:
                if fresh:
                    raise _refused(live, iteration)
                live = None
                continue
            answer = await self._submit(live, iteration, report, encoded, digest)
            if isinstance(answer, bytes):
                return CREATED, answer
            if answer is Verdict.OUTRUN:
                live = None
        raise Unavailable(f"other reports of run {run} keep coming in between", retry_after=1)

    async def _load(self, tenant: str, run: str) -> Live:
        live = await self._in_thread(self._read, tenant, run)
        self._runs.put(live)
        return live

    def _read(self, tenant: str, run: str) -> Live:
        with self._database.reading() as session:
            loaded = repository.load(session, tenant, run)
        if loaded is None:
            raise NotFound(f"no run {run!r}; start one with POST /runs")
        version = loaded.run.shadow_version
        return from_loaded(loaded, None if version is None else self._shadows.get(loaded.run.workload_id, version))

    async def _repeated(self, live: Live, iteration: int, digest: str) -> bytes:
        """The decision that an earlier report was answered with, if this is the same report."""
        if iteration == live.following - 1:
            await self._in_thread(self._require, live.tenant, live.id)  # nothing else proves that it is still there
            known, decision = live.digest, live.decision
        else:
            known, decision = await self._in_thread(self._past, live.id, iteration)
        if known != digest:
            raise Conflict(
                f"iteration {iteration} of run {live.id} is reported already, and otherwise",
                errors=[FieldError("/path/iteration", "another report is kept under this number", iteration)],
            )
        return decision

    def _require(self, tenant: str, run: str) -> None:
        with self._database.reading() as session:
            there = repository.present(session, tenant, run)
        if not there:
            self._runs.drop(run)
            raise NotFound(f"no run {run!r}; start one with POST /runs")

    def _past(self, run: str, iteration: int) -> tuple[str, bytes]:
        with self._database.reading() as session:
            found = repository.iteration(session, run, iteration)
        if found is None:
            raise NotFound(f"no iteration {iteration} of run {run!r}")
        return found.digest, decisions.encoded(found.decision)

    async def _submit(self, live: Live, iteration: int, report: Any, encoded: bytes, digest: str) -> bytes | Verdict:
        compiled, engine = await self._compiled.get(live.workload_id, live.tenant), KINDS[live.kind].engine
        if live.following != iteration:
            return Verdict.CHANGED
        shadow = live.shadow or compiled.snapshot.shadow
        pending = Pending(live.id, iteration, live.kept, report, live.start, shadow)
        future: asyncio.Future[bytes | Verdict] = asyncio.get_running_loop().create_future()
        item = Item(live, compiled, pending, digest, encoded, future)
        if engine.quick:
            read = engine.read(compiled, live.kept, iteration, report)
            item.pending = pending._replace(report=read)
        else:
            item.answered = await self._in_thread(_answer, engine, compiled, pending, self._clock())
        self._pending.append(item)
        self._schedule()
        return await future

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reader, call, *arguments)

    def _schedule(self) -> None:
        if self._writers and any(item.live.id not in self._moving for item in self._pending):
            self._gathering.arrived()

    def _share(self) -> int:
        """How many reports a batch is to have, so that each writer has one and none waits for company."""
        return -(-self._in_flight // self._sharing)

    def _flush(self) -> None:
        if not self._writers:
            return
        ready = _decided(self._take(), self._clock())
        if not ready:
            self._schedule()
            return
        writer = self._writers.pop()
        self._moving.update(item.live.id for item in ready)
        call = asyncio.get_running_loop().run_in_executor
        writing = call(self._threads, self._write, writer, ready, self._clock())
        writing.add_done_callback(lambda done: self._written(writer, ready, done))

    def _take(self) -> list[Item]:
        """The next reports to write, at most one per run; those whose run has moved on are sent back."""
        taken: dict[str, Item] = {}
        left: list[Item] = []
        for item in self._pending:
            if item.future.done():  # whoever pending has given up
                continue
            if item.live.id in self._moving:
                left.append(item)
            elif item.pending.iteration != item.live.following or not item.live.running:
                item.future.set_result(Verdict.CHANGED)
            elif item.live.id in taken or len(taken) == LARGEST_BATCH:
                left.append(item)
            else:
                taken[item.live.id] = item
        self._pending = left
        return list(taken.values())

    def _write(self, writer: Writer, ready: Sequence[Item], now: datetime) -> dict[str, Exception | None]:
        """In a thread: commit; gives the runs that were written (None), or whose report can't be."""
        try:
            entries, faults = _entries(ready, pack=self._pack)
            return faults | (_outcome(writer, entries, now) if entries else {})
        finally:
            if len(ready) == 1 and not self._pending:  # where several came, more will come
                writer.close()

    def _written(
        self, writer: Writer, ready: Sequence[Item], done: asyncio.Future[dict[str, Exception | None]]
    ) -> None:
        self._writers.append(writer)
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(REST_SECONDS, self._rest)
        self._in_flight = len(self._pending) + len(self._moving)
        self._moving.difference_update(item.live.id for item in ready)
        failure = done.exception()
        outcome = {} if failure else done.result()
        for item in ready:
            self._settle(item, failure or outcome.get(item.live.id), item.live.id in outcome)
        self._schedule()

    def _rest(self) -> None:
        """Nothing was written for a while: give the connections back."""
        for writer in self._writers:
            writer.close()

    def _settle(self, item: Item, failure: BaseException | None, written: bool) -> None:
        live, (decision, state, _) = item.live, item.answered
        if written and failure is None:
            live.following, live.kept = item.pending.iteration + 1, state
            live.digest, live.decision = item.digest, decision
            for notice in new_notices(live.drift, item.drift):
                self._meter.count(live.tenant, live.workload, notice)
            live.drift = item.drift
            self._runs.grown(live)
        else:
            self._runs.drop(live.id)
        if item.future.done():
            return
        if failure is not None:
            item.future.set_exception(failure)
        else:
            item.future.set_result(decision if written else Verdict.OUTRUN)


def _entries(ready: Sequence[Item], *, pack: bool) -> tuple[list[Entry], dict[str, Exception | None]]:
    """What is written of them; and, by run, why nothing can be of one."""
    entries: list[Entry] = []
    faults: dict[str, Exception | None] = {}
    for item in ready:
        try:
            entries.append(item.entry(pack=pack))
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


def _refused(live: Live, iteration: int) -> Conflict:
    if not live.running:
        return Conflict(f"run {live.id} has {live.state}; it takes no more reports")
    return Conflict(
        f"iteration {iteration} of run {live.id} leaves a gap; the next one to report is {live.following}",
        errors=[FieldError("/path/iteration", f"must be {live.following}", iteration)],
    )


def _is_of_one(error: DBAPIError) -> bool:
    """Whether one report of several may be at fault, so that the others are worth trying by themselves."""
    if isinstance(error, DataError | IntegrityError):
        return True
    return getattr(error.orig, "sqlstate", None) in SERIALISATION


def _decided(items: Sequence[Item], now: datetime) -> list[Item]:
    """The items with their answers, one evaluation per workload, but for those that are told they can't be decided."""
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(id(item.compiled), []).append(item)
    return [item for group in groups.values() for item in _group(group, now)]


def _group(items: Sequence[Item], now: datetime) -> Sequence[Item]:
    """Advance each run of a workload by its report, and decide, unless that is done already."""
    waiting = [item for item in items if item.answered is UNDECIDED]
    try:
        if waiting:
            _decide(waiting, now)
    except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
        if len(items) > 1:
            return [one for item in items for one in _group([item], now)]
        _fail(items[0], error)
        return []
    return [item for item in items if _is_watched(item, now)]


def _decide(waiting: Sequence[Item], now: datetime) -> None:
    first = waiting[0]
    answers = KINDS[first.live.kind].engine.answer(first.compiled, [item.pending for item in waiting], now)
    for item, answered in zip(waiting, answers, strict=True):
        item.answered = answered


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
    decision, state, residuals = item.answered
    before = item.live.drift
    if residuals is None:
        item.drift = before
        return
    snapshot = item.compiled.snapshot
    report = Report(item.pending.iteration, snapshot.model_version, now, snapshot.answering)
    item.drift = observed(before, residuals, report)
    notices = new_notices(before, item.drift)
    if notices:
        logger.warning("run %s: %s", item.live.id, "; ".join(notice.text for notice in notices))
        item.answered = Answered(b'%b,"drift":%b}' % (decision[:-1], msgspec.json.encode(notices)), state)


def _answer(engine: DecisionEngine, compiled: CompiledWorkload, pending: Pending, now: datetime) -> Answered:
    """In a thread: the answer to one report of a kind whose answers take long; its report isn't read yet.

    The state that it starts from may be outrun meanwhile, here or elsewhere; then it is never written.
    """
    report = engine.read(compiled, pending.state, pending.iteration, pending.report)
    return engine.answer(compiled, [pending._replace(report=report)], now)[0]

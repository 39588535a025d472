"""Handling of reports: decided in batches, written in batches, answered when they are on disk.

Reports arrive one by one and wait. One writer takes all waiting reports, decides them, and commits reports and
decisions in one durable transaction; meanwhile the next reports gather. So the costs of deciding and committing are
shared under load, and an acknowledged report survives a crash.

Runs are cached between reports and may be out of date, because another process may have stored a report of the same
run. The write advances a run only from the state on which the decision was based, so no iteration is decided twice; a
report whose write is rejected is decided again from the stored state.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from app.caps.service import in_force
from app.database.base import utc_now
from app.database.engine import Database
from app.decisions import service as decisions
from app.decisions.service import CompiledWorkloads, Shadows
from app.drift.detector import new_notices
from app.errors import Conflict, FieldError, NotFound, Unavailable
from app.http.batching import LARGEST_BATCH, Gathering
from app.http.query import LARGE_BYTES, check_names
from app.kinds.contract.caps import Cap
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.engine import Compiled
from app.kinds.registry import KINDS
from app.runs import deciding, repository
from app.runs.deciding import Item, Live, LiveCache, StartedRuns, Verdict, decide_aside, decide_items, from_stored
from app.runs.outcomes import ENDED
from app.runs.waiting import Aside, Waiting
from app.telemetry.counts import TenantCounter, drift_counter, request_counter

T = TypeVar("T")

ATTEMPTS = 4
REST_SECONDS = 1.0  # without reports, after which the connection is given back
CREATED, REPEATED = 201, 200


class _DecodedReport(msgspec.Struct):
    """A decoded report, its JSON encoding, and the hash by which repeated reports are recognised."""

    report: Any
    encoded: bytes
    digest: str


class Reporter:
    """Handles the reports of one process; bound to one event loop.

    Args:
        database: where reports are stored.
        compiled_workloads: cache of compiled workloads.
        meter: counts drift notices.
        requests: counts requests that weren't granted at once.
        clock: gives the time of decisions.
        started: runs started by this process that have no report yet.
    """

    def __init__(
        self,
        database: Database,
        compiled_workloads: CompiledWorkloads,
        meter: TenantCounter | None = None,
        requests: TenantCounter | None = None,
        clock: Callable[[], datetime] = utc_now,
        started: StartedRuns | None = None,
    ) -> None:
        self._started = started or StartedRuns()
        self._database, self._compiled, self._clock = database, compiled_workloads, clock
        self._meter, self._requests = meter or drift_counter(), requests or request_counter()
        self._runs, self._shadows = LiveCache(), Shadows(database)
        self._waiting = Waiting()
        self._pending: list[Item] = []
        self._writer, self._writing = database.writer(), False
        self._usual = self._returning = 0
        self._lately: deque[set[str]] = deque(maxlen=2)  # runs of the last batches
        self._gathering = Gathering(lambda: len(self._pending), self._flush, LARGEST_BATCH, lambda: self._usual)
        self._resting: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="report-writer")
        self._thread.submit(int)  # starts it: where there can't be one, this fails, and no report waits for it
        self._reader = ThreadPoolExecutor(4, thread_name_prefix="report-reader")
        self._aside = Aside()

    async def report(
        self, tenant: str, run: str, iteration: int, body: bytes, commit: Callable[[], None] = lambda: None
    ) -> tuple[int, bytes]:
        """Store a report of iteration ``iteration`` and decide the next step.

        Args:
            body: the report as JSON.
            commit: called just before the report is written; not called if the request is cancelled before.

        Returns:
            HTTP status (201 for a new report, 200 for a repeated one), and the decision as JSON.

        Raises:
            NotFound: there is no such run.
            Conflict: another report has that number, numbers are skipped, or the run has ended.
            ValidationError, Invalid, InvalidInput: ``body`` is no report of the run's kind, or doesn't fit the run.
            Contradiction: the report contradicts earlier ones.
            TooManyRequests: too many expensive reports of the tenant wait.
            Unavailable: too many reports wait, or other processes keep advancing the run.
        """
        number = self._waiting.enter()
        try:
            live, decoded = self._live_run(run), None
            fresh = live is None
            for _ in range(ATTEMPTS):
                if live is None or live.tenant != tenant:
                    live, fresh = await self._load(tenant, run), True
                decoded = decoded or await self._decode(number, live, body)
                if iteration < live.following:
                    return REPEATED, await self._repeat_decision(live, iteration, decoded.digest)
                if not _is_next(live, iteration, fresh):
                    live = None
                    continue
                rule = live.start.get("policy", "")
                compiled = self._compiled.peek(live.workload_id, tenant, rule)
                compiled = compiled or await self._compiled.get(live.workload_id, tenant, rule)
                caps = await self._caps(live, compiled.snapshot)
                if iteration != live.following:
                    continue
                item = _item(live, compiled, iteration, decoded, commit, caps)
                if KINDS[live.kind].engine.takes_long(compiled, live.kind_state, decoded.report):
                    with self._waiting.away(number):
                        await self._aside.run(tenant, len(item.encoded), self._decide_aside, item)
                else:
                    _convert_report(item)
                self._take_in(item)
                answer = await item.future
                if isinstance(answer, bytes):
                    return CREATED, answer
                if answer is Verdict.OUTRUN:
                    live = None
        finally:
            self._waiting.leave(number)
        raise Unavailable(f"concurrent reports of run {run}; repeat the request", retry_after=1)

    async def _caps(self, live: Live, snapshot: Snapshot) -> Sequence[Cap]:
        own = live.start.get("caps")
        key = self._database, live.tenant, own, snapshot, self._clock(), live.id
        if snapshot.caps:  # the database tells what other runs have used
            return await self._in_thread(in_force, *key)
        return in_force(*key) if own else ()

    def _live_run(self, run: str) -> Live | None:
        live = self._runs.get(run)
        if live is None:
            live = self._started.take(run)
            if live is not None:
                self._runs.put(live)
        return live

    async def _decode(self, number: int, live: Live, body: bytes) -> _DecodedReport:
        if len(body) <= LARGE_BYTES:
            return _decode_report(live, body)
        with self._waiting.away(number):
            return await self._aside.run(live.tenant, len(body), _decode_report, live, body)

    def _decide_aside(self, item: Item) -> None:
        """In a worker thread: decide an expensive report and make its row."""
        decide_aside(item, self._clock())
        item.entry = deciding.entry(item)

    async def _load(self, tenant: str, run: str) -> Live:
        live = await self._in_thread(self._read, tenant, run)
        self._runs.put(live)
        return live

    def _read(self, tenant: str, run: str) -> Live:
        with self._database.reading() as session:
            row = repository.deciding_row(session, tenant, run)
        if row is None:
            raise NotFound(f"no run {run!r}; start one with POST /runs")
        version = row.shadow_version
        return from_stored(row, None if version is None else self._shadows.get(row.workload_id, version))

    async def _repeat_decision(self, live: Live, iteration: int, digest: str) -> bytes:
        """The decision of an earlier iteration; raises Conflict if the report differs, NotFound if the run is gone."""
        if iteration == live.following - 1:
            if not await self._in_thread(self._is_there, live):  # nothing else proves it
                self._runs.drop(live.id)
                raise NotFound(f"no run {live.id!r}; start one with POST /runs")
            known, decision = live.digest, live.decision
        else:
            known, decision = await self._in_thread(self._past, live.id, iteration)
        if known != digest:
            raise Conflict(
                f"iteration {iteration} of run {live.id} is already reported with other content",
                errors=[FieldError("/path/iteration", "already reported with other content", iteration)],
            )
        return decision

    def _is_there(self, live: Live) -> bool:
        with self._database.reading() as session:
            return repository.present(session, live.tenant, live.id)

    def _past(self, run: str, iteration: int) -> tuple[str, bytes]:
        with self._database.reading() as session:
            result = repository.iteration(session, run, iteration)
        if result is None:
            raise NotFound(f"no iteration {iteration} of run {run!r}")
        return result.digest, decisions.encode_decision(result.decision)

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reader, call, *arguments)

    def _take_in(self, item: Item) -> None:
        self._pending.append(item)
        if not self._writing:
            self._gathering.note_arrival()

    def _flush(self) -> None:
        if self._writing:
            return
        ready = decide_items(self._take(), self._clock())
        if not ready:
            self._go_on()
            return
        for item in ready:
            item.commit()
        self._writing = True
        # Count the runs that were also in one of the last two batches; a batch waits for about so many reports
        runs = {item.live.id for item in ready}
        self._returning = len(runs.intersection(set().union(*self._lately)))
        self._lately.append(runs)
        call = asyncio.get_running_loop().run_in_executor
        call(self._thread, self._write, ready, self._clock()).add_done_callback(lambda done: self._written(ready, done))

    def _go_on(self) -> None:
        if self._pending:
            self._gathering.note_arrival()

    def _take(self) -> list[Item]:
        """Remove and return the next reports to write, at most one per run; ends those whose run has moved on."""
        taken: dict[str, Item] = {}
        left: list[Item] = []
        for item in self._pending:
            if item.future.done():  # the request was cancelled
                continue
            if item.pending.iteration != item.live.following or not item.live.running:
                item.future.set_result(Verdict.CHANGED)
            elif item.live.id in taken or len(taken) == LARGEST_BATCH:
                left.append(item)
            else:
                taken[item.live.id] = item
        self._pending = left
        return list(taken.values())

    def _write(self, ready: Sequence[Item], now: datetime) -> dict[str, Exception | None]:
        """Write a batch, in the writer's thread; returns None or an exception by run id, without runs that another
        process advanced. Raises DBAPIError for errors that aren't of a single report."""
        try:
            return deciding.written(self._writer, ready, now)
        finally:
            if len(ready) == 1 and not self._pending:  # where several came, more will come
                self._writer.close()

    def _written(self, ready: Sequence[Item], done: asyncio.Future[dict[str, Exception | None]]) -> None:
        self._writing = False
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(REST_SECONDS, self._rest)
        self._usual = len(self._pending) + self._returning
        failure = done.exception()
        outcome = {} if failure else done.result()
        for item in ready:
            self._settle(item, failure or outcome.get(item.live.id), item.live.id in outcome)
        self._go_on()

    def _rest(self) -> None:
        """Release the database connection after a second without writes."""
        if not self._writing:
            self._writer.close()

    def _settle(self, item: Item, failure: BaseException | None, written: bool) -> None:
        live, decision = item.live, item.answer.decision
        if written and failure is None:
            live.following, live.kind_state = item.pending.iteration + 1, item.answer.state
            live.digest, live.decision = item.digest, decision
            for notice in new_notices(live.drift, item.drift):
                self._meter.count(live.tenant, live.workload, notice.stream, notice.direction)
            if item.answer.requested:
                self._requests.count(live.tenant, live.workload, item.answer.requested)
            live.drift, live.risk, live.quiet = item.drift, item.risk, item.answer.quiet
            self._runs.reweigh(live)
        else:
            self._runs.drop(live.id)
        if item.future.done():
            return
        if failure is not None:
            item.future.set_exception(failure)
        else:
            item.future.set_result(decision if written else Verdict.OUTRUN)


def _decode_report(live: Live, body: bytes) -> _DecodedReport:
    """Decode the report in ``body``.

    Repeated member names are detected by counting: the encoding names each member once, so a body with more names than
    the encoding is parsed to find the repetition. Quotes within strings and empty objects, which may be defaults, are
    not counted. Raises ValidationError, Invalid or InvalidInput if ``body`` is no report of the run's kind.
    """
    report = KINDS[live.kind].engine.decode(body)
    encoded = msgspec.json.encode(report, order="deterministic")
    check_names(body, encoded.count(b'":') - encoded.count(b'\\":') - encoded.count(b'":{}'))
    return _DecodedReport(report, encoded, hashlib.blake2b(encoded, digest_size=16).hexdigest())


def _item(
    live: Live,
    compiled: Compiled,
    iteration: int,
    report: _DecodedReport,
    commit: Callable[[], None],
    caps: Sequence[Cap],
) -> Item:
    """A waiting report, not yet converted for the engine."""
    shadow = live.shadow or compiled.snapshot.shadow
    pending = Pending(live.id, iteration, live.kind_state, report.report, live.start, shadow, caps)
    future: asyncio.Future[bytes | Verdict] = asyncio.get_running_loop().create_future()
    return Item(live, compiled, pending, report.digest, report.encoded, future, commit)


def _convert_report(item: Item) -> None:
    """Convert the item's report for the engine; InvalidInput or Contradiction if it doesn't fit the run."""
    one = item.pending
    report = KINDS[item.live.kind].engine.read(item.compiled, one.state, one.iteration, one.report)
    item.pending = msgspec.structs.replace(one, report=report)


def _is_next(live: Live, iteration: int, fresh: bool) -> bool:
    """Whether a cached run accepts a report under this number; ``fresh``: it was just read from the database.

    Raises:
        Conflict: the run is fresh and doesn't accept it.
    """
    if live.running and iteration == live.following:
        return True
    if not fresh:
        return False
    if not live.running:
        raise Conflict(f"run {live.id} {ENDED[live.state]}; it accepts no more reports")
    raise Conflict(
        f"iteration {iteration} of run {live.id} leaves a gap; the next one to report is {live.following}",
        errors=[FieldError("/path/iteration", f"must be {live.following}", iteration)],
    )

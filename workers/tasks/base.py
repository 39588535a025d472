"""Life cycle of a job attempt: lease, heartbeat, progress, checkpoint, cancellation, result or failure."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Self

from sqlalchemy.exc import NoResultFound, SQLAlchemyError
from sqlalchemy.orm import Session

from app import queue
from app.database.engine import Database, is_lost
from app.jobs import lease as leases
from app.jobs.lease import Lease, LeaseLost
from app.processes import process_name
from app.settings import Settings, get_settings
from app.telemetry.logs import FIELDS, Trace, began, working

# Log lines and trace span of one attempt at a job, under the trace of the request.


logger = logging.getLogger(__name__)

BROKEN = "broken"


@dataclass
class Step:
    """A running attempt at a job.

    Attributes:
        outcome: how the attempt ended: done, cancelled, failed, released or lost; `broken` until it is set.
    """

    outcome: str = BROKEN


@contextmanager
def step(lease: Lease, *, traces: bool) -> Iterator[Step]:
    """Log an attempt's start, and its end with the seconds taken; export a trace span at the end if ``traces``.

    The caller sets the outcome of the yielded ``Step``; its errors are raised."""
    trace, began_at, done = began(lease.traceparent), time.time(), Step()
    fields = {"job": lease.job_id, "type": lease.type, "tenant": lease.tenant, "attempt": lease.attempts}
    with working(trace, lease.job_id):
        begun = {**fields, "fence": lease.fence, "step": "begun"}
        logger.info("job %s: attempt %d, fence %d", lease.job_id, lease.attempts, lease.fence, extra={FIELDS: begun})
        try:
            yield done
        finally:
            seconds = time.time() - began_at
            ended = {**fields, "step": done.outcome, "seconds": round(seconds, 3)}
            logger.info("job %s: %s after %.1f s", lease.job_id, done.outcome, seconds, extra={FIELDS: ended})
            if traces:
                _span(lease, trace, began_at + seconds, seconds, done.outcome)


def _span(lease: Lease, trace: Trace, ended: float, seconds: float, outcome: str) -> None:
    from app.telemetry.spans import SpanKind, of_this_process

    fields: dict[str, str | int | float] = {
        "steward.job": lease.job_id,
        "steward.tenant": lease.tenant,
        "steward.attempt": lease.attempts,
        "steward.outcome": outcome,
    }
    spans = of_this_process(os.getpid())
    failed = outcome in ("failed", "lost", BROKEN)
    spans.add(f"job {lease.type}", trace, ended, seconds, fields, kind=SpanKind.CONSUMER, failed=failed)
    spans.flush()


# Life cycle common to all tasks: lease, heartbeat, progress, checkpoint, cancel, publish, fail.
#
# A task claims its job's lease (or ends, if another process has it), works without an open session, and publishes in
# one transaction that verifies the lease. Other ends of an attempt:
#
# - Cancelled: a caller cancelled the job; it is marked so.
# - WorkerStopping: the worker stops; the job returns to the queue with its checkpoint.
# - LeaseLost: another process has the job; nothing is written.
# - EstimationError and other errors: the job has failed, with the reason.
# - a lost database: nothing is written; the lease expires, and the sweeper returns the job to the queue.


PUBLISH_ATTEMPTS = 5


class Cancelled(Exception):
    """Raised if a caller has cancelled the job that this process runs."""


class WorkerStopping(Exception):
    """Raised if this worker is stopping, after the job was returned to the queue with a checkpoint."""


def never() -> bool:
    """Return False: the stop check of a process that receives no stop signal."""
    return False


class RunningJob:
    """A job under this process's lease; as a context manager, it renews the lease from a thread.

    Args:
        database: database with the job.
        settings: intervals between heartbeats, progress reports and checkpoints, in seconds.
        lease: lease of the job, with its fence token and checkpoint.
        is_stopping: function that returns whether the worker has received SIGTERM.
    """

    def __init__(
        self, database: Database, settings: Settings, lease: Lease, is_stopping: Callable[[], bool] = never
    ) -> None:
        self.database = database
        self.settings = settings
        self.lease = lease
        self._is_stopping = is_stopping
        self._cancelled = threading.Event()
        self._lost = threading.Event()
        self._ended = threading.Event()
        beat = partial(copy_context().run, self._beat)  # so that the thread's log lines carry the job's ids
        self._thread = threading.Thread(target=beat, name=f"lease-{lease.job_id}", daemon=True)
        self._written_at = -1e9
        self._kept_at = time.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(self.settings.heartbeat_seconds):
            try:
                if leases.heartbeat(self.database, self.lease):
                    self._cancelled.set()
            except LeaseLost:
                self._lost.set()
                return
            except SQLAlchemyError as error:
                logger.warning("job %s: no heartbeat, trying again: %s", self.lease.job_id, error)

    def check(self) -> None:
        """Raise an exception if the attempt has to end; do nothing otherwise.

        Raises:
            LeaseLost: another process has taken the lease over.
            Cancelled: a caller has cancelled the job.
        """
        if self._lost.is_set():
            raise LeaseLost(f"job {self.lease.job_id}: its lease was taken over")
        if self._cancelled.is_set():
            raise Cancelled(self.lease.job_id)

    def progress(
        self,
        fraction: float,
        eta_seconds: float | None,
        live: dict[str, Any],
        checkpoint: Callable[[], bytes],
        *,
        once: bool = False,
    ) -> None:
        """Report progress between two chunks, at most every ``progress_seconds``, with a checkpoint when due.

        Args:
            fraction: share of the job that is done, 0 to 1.
            eta_seconds: remaining wall-clock seconds; None if unknown.
            live: figures to show to users, plain JSON values by name.
            checkpoint: function that serialises the job's state.
            once: whether to write even if the last report was a moment ago.

        Raises:
            LeaseLost, Cancelled: another process has the job, or a caller has cancelled it.
            WorkerStopping: the worker is stopping; the job was returned with a checkpoint.
        """

        def write(data: bytes | None) -> bool:
            return leases.progress(self.database, self.lease, fraction, eta_seconds, live, data)

        if once:
            self._written_at = -math.inf
        self.report(write, checkpoint)

    def report(self, write: Callable[[bytes | None], bool], checkpoint: Callable[[], bytes]) -> None:
        """Call ``write`` if ``progress_seconds`` have passed since the last report; log an unavailable database.

        Args:
            write: function that stores a report with a checkpoint or None, and returns whether the job was cancelled.
            checkpoint: function that serialises the job's state; called every ``checkpoint_seconds``, or on SIGTERM.

        Raises:
            LeaseLost, Cancelled: another process has the job, or a caller has cancelled it.
            WorkerStopping: the worker is stopping; the job was returned with a checkpoint.
            SQLAlchemyError: the database refused the report.
        """
        self.check()
        if self._is_stopping():
            leases.release(self.database, self.lease, checkpoint())
            raise WorkerStopping(self.lease.job_id)
        now = time.monotonic()
        if now - self._written_at < self.settings.progress_seconds:
            return
        data = checkpoint() if now - self._kept_at >= self.settings.checkpoint_seconds else None
        try:
            if write(data):
                self._cancelled.set()
        except SQLAlchemyError as error:
            if not is_lost(error):
                raise
            logger.warning("job %s: progress not written: %s", self.lease.job_id, error)
            return
        logger.debug("job %s: progress written", self.lease.job_id)
        self._written_at = now
        self._kept_at = now if data is not None else self._kept_at
        self.check()

    def publish(self, write: Callable[[Session], dict[str, Any]]) -> None:
        """Store a result and mark the job as succeeded, in one transaction; ``write`` returns the job's `result`.
        Raises LeaseLost if another process has the lease, Cancelled if the job was cancelled, SQLAlchemyError if the
        database refused or was unavailable; nothing is stored then."""
        self.commit(lambda session: leases.finish(session, self.lease, write(session)))

    def commit(self, write: Callable[[Session], None]) -> None:
        """Run ``write`` in one transaction that verifies the lease; retry while the database is unavailable.

        Raises:
            LeaseLost: another process has the lease, or the workload was deleted.
            Cancelled: a caller has cancelled the job.
            SQLAlchemyError: the database refused, or was unavailable in 5 attempts (`PUBLISH_ATTEMPTS`).
        """
        for attempt in range(1, PUBLISH_ATTEMPTS):
            self.check()
            try:
                self._commit(write)
            except SQLAlchemyError as error:
                if not is_lost(error):
                    raise
                logger.warning("job %s: could not publish, trying again", self.lease.job_id)
                time.sleep(attempt)
            else:
                return
        self.check()
        self._commit(write)

    def _commit(self, write: Callable[[Session], None]) -> None:
        try:
            with self.database.session() as session:
                write(session)
        except NoResultFound as error:
            raise LeaseLost(f"job {self.lease.job_id}: its workload was deleted") from error


@lru_cache(maxsize=1)
def _database(_pid: int, url: str) -> Database:
    return Database(url, get_settings())


def run_job(job_id: str, work: Callable[[RunningJob], None]) -> None:
    """Run a job in this worker process under a lease, and record its outcome; do nothing in a stopping worker.

    Errors of ``work`` are recorded, not raised. Raises SQLAlchemyError if the database is unavailable at the claim.
    """
    from workers.celery import is_stopping

    settings = get_settings()
    queue.use(settings)
    if not is_stopping():
        perform(_database(os.getpid(), settings.database_url), settings, job_id, work, is_stopping)


def perform(
    database: Database,
    settings: Settings,
    job_id: str,
    work: Callable[[RunningJob], None],
    is_stopping: Callable[[], bool] = never,
) -> None:
    """Claim a job, run ``work``, and record its outcome; do nothing if the job is not free.

    Errors of ``work`` are recorded as the job's failure and not raised. ``is_stopping`` returns whether this worker is
    to stop, so that the job goes back to the queue.

    Raises:
        SQLAlchemyError: the database is unavailable when the job is claimed.
    """
    lease = leases.claim(database, job_id, process_name(), settings)
    if lease is None:
        logger.info("job %s: nothing to take", job_id)
        return
    with step(lease, traces=settings.traces) as done:
        done.outcome = _outcome(RunningJob(database, settings, lease, is_stopping), work)


def _outcome(running: RunningJob, work: Callable[[RunningJob], None]) -> str:
    job_id = running.lease.job_id
    try:
        with running as job:
            return _conclude(job, work)
    except WorkerStopping:
        return "released"
    except LeaseLost as error:
        logger.warning("%s", error)
        return "lost"
    except SQLAlchemyError:
        logger.exception("job %s: the database is away; the sweeper will bring the job back", job_id)
        return "lost"


def _conclude(job: RunningJob, work: Callable[[RunningJob], None]) -> str:
    try:
        work(job)
    except (WorkerStopping, LeaseLost):
        raise
    except Cancelled:
        leases.cancel(job.database, job.lease)
        return "cancelled"
    except Exception as error:
        if is_lost(error):
            raise
        problem = _problem_of(error, job.lease.job_id)
        expected = problem["status"] < 500
        logger.warning("job %s failed: %s", job.lease.job_id, problem["detail"], exc_info=not expected)
        leases.fail(job.database, job.lease, problem)
        return "failed"
    return "done"


def _problem_of(error: Exception, job_id: str) -> dict[str, Any]:
    from workers.tasks.problems import problem_of

    return problem_of(error, job_id)


# Trainings run at a lower priority, since they take long and nothing urgent waits for them.


Work = Callable[[RunningJob], None]


def yielding(work: Work) -> Work:
    """Return the work wrapped to run in a thread with the niceness of trainings (`settings.training_nice`).

    On Linux niceness belongs to a thread and is inherited by its children; a process could not lower its own again.
    """

    def do(job: RunningJob) -> None:
        niceness = max(job.settings.training_nice, os.nice(0))
        with ThreadPoolExecutor(1, "yielding", os.setpriority, (os.PRIO_PROCESS, 0, niceness)) as thread:
            thread.submit(copy_context().run, work, job).result()

    return do

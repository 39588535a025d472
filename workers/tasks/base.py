"""What every task does around its work."""

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

# One attempt at a job, as the log and a span tell of it, under the trace of whoever asked for the job.


logger = logging.getLogger(__name__)

BROKEN = "broken"


@dataclass
class Step:
    """An attempt that goes on.

    Attributes:
        outcome: what became of it: done, cancelled, failed, released or lost; `broken` until it is said.
    """

    outcome: str = BROKEN


@contextmanager
def step(lease: Lease, *, traces: bool) -> Iterator[Step]:
    """Tell of an attempt at its beginning and its end; lines between bear its ids."""
    trace, began_at, done = began(lease.traceparent), time.time(), Step()
    told = {"job": lease.job_id, "type": lease.type, "tenant": lease.tenant, "attempt": lease.attempts}
    with working(trace, lease.job_id):
        begun = {**told, "fence": lease.fence, "step": "begun"}
        logger.info("job %s: attempt %d, fence %d", lease.job_id, lease.attempts, lease.fence, extra={FIELDS: begun})
        try:
            yield done
        finally:
            seconds = time.time() - began_at
            ended = {**told, "step": done.outcome, "seconds": round(seconds, 3)}
            logger.info("job %s: %s after %.1f s", lease.job_id, done.outcome, seconds, extra={FIELDS: ended})
            if traces:
                _span(lease, trace, began_at + seconds, seconds, done.outcome)


def _span(lease: Lease, trace: Trace, ended: float, seconds: float, outcome: str) -> None:
    from app.telemetry.spans import SpanKind, of_this_process

    told: dict[str, str | int | float] = {
        "steward.job": lease.job_id,
        "steward.tenant": lease.tenant,
        "steward.attempt": lease.attempts,
        "steward.outcome": outcome,
    }
    spans = of_this_process(os.getpid())
    failed = outcome in ("failed", "lost", BROKEN)
    spans.add(f"job {lease.type}", trace, ended, seconds, told, kind=SpanKind.CONSUMER, failed=failed)
    spans.flush()


# What every task does around its work: lease, heartbeat, progress, checkpoint, cancel, publish, fail.
#
# A task claims its job's lease (or goes home: somebody else has it), works with no session open, and publishes in one
# transaction that proves that the lease is still held. Whatever ends it otherwise ends here:
#
# Cancelled    asked for by a caller: the job is marked so
# WorkerStopping  the worker is asked to stop: the job goes back into the queue with its checkpoint
# LeaseLost    somebody else has the job by now: nothing is written
# EstimationError and other errors: the job has failed, and says why
# a lost database: nothing is written; the lease expires, and the sweeper brings the job back


PUBLISH_ATTEMPTS = 5


class Cancelled(Exception):
    """A caller has cancelled the job."""


class WorkerStopping(Exception):
    """This worker has been told to stop."""


def never() -> bool:
    """A worker that is not asked to stop."""
    return False


class RunningJob:
    """A job under this process's lease; a context that keeps the lease alive from a thread."""

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
        beat = partial(copy_context().run, self._beat)  # its lines bear this job's ids, too
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
        """Stop here if there is a reason to.

        Raises:
            LeaseLost, Cancelled: see the module.
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
        """Tell how far it is, between two chunks; keeps a checkpoint when one is due.

        ``once``: it is not told again, so that it is told even when something was told a moment ago.

        Raises:
            LeaseLost, Cancelled, WorkerStopping: see the module.
        """

        def write(kept: bytes | None) -> bool:
            return leases.progress(self.database, self.lease, fraction, eta_seconds, live, kept)

        if once:
            self._written_at = -math.inf
        self.report(write, checkpoint)

    def report(self, write: Callable[[bytes | None], bool], checkpoint: Callable[[], bytes]) -> None:
        """Report progress when it is due: `write` gets a checkpoint or none, and returns whether to cancel.

        Raises:
            LeaseLost, Cancelled, WorkerStopping: see the module.
        """
        self.check()
        if self._is_stopping():
            leases.release(self.database, self.lease, checkpoint())
            raise WorkerStopping(self.lease.job_id)
        now = time.monotonic()
        if now - self._written_at < self.settings.progress_seconds:
            return
        kept = checkpoint() if now - self._kept_at >= self.settings.checkpoint_seconds else None
        try:
            if write(kept):
                self._cancelled.set()
        except SQLAlchemyError as error:
            if not is_lost(error):
                raise
            logger.warning("job %s: progress not written: %s", self.lease.job_id, error)
            return
        logger.debug("job %s: progress written", self.lease.job_id)
        self._written_at = now
        self._kept_at = now if kept is not None else self._kept_at
        self.check()

    def publish(self, write: Callable[[Session], dict[str, Any]]) -> None:
        """Write a result and mark the job as succeeded, in one transaction. `write` gives the job's `result`.

        Raises:
            LeaseLost, Cancelled: see the module.
        """
        self.commit(lambda session: leases.finish(session, self.lease, write(session)))

    def commit(self, write: Callable[[Session], None]) -> None:
        """Write what ends the work on the job for now, in one transaction, which proves that the lease is still held.

        Raises:
            LeaseLost, Cancelled: see the module.
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
    """Do a job in this worker process, under its lease."""
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
    """Claim a job, do the work, and see to its end."""
    lease = leases.claim(database, job_id, process_name(), settings)
    if lease is None:
        logger.info("job %s: nothing to take", job_id)
        return
    with step(lease, traces=settings.traces) as done:
        done.outcome = _outcome(RunningJob(database, settings, lease, is_stopping), work)


def _outcome(held: RunningJob, work: Callable[[RunningJob], None]) -> str:
    job_id = held.lease.job_id
    try:
        with held as job:
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


# Work that gives way: it takes long, and nobody waits for it who could not do without.


Work = Callable[[RunningJob], None]


def yielding(work: Work) -> Work:
    """The same work in a thread that is as nice as trainings are to be.

    On Linux niceness is a thread's, and inherited by those that it starts; a process could not take its own back.
    """

    def do(job: RunningJob) -> None:
        niceness = max(job.settings.training_nice, os.nice(0))
        with ThreadPoolExecutor(1, "yielding", os.setpriority, (os.PRIO_PROCESS, 0, niceness)) as thread:
            thread.submit(copy_context().run, work, job).result()

    return do

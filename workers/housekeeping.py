"""Periodic tasks of a worker's main process: heartbeat, sweep of lost jobs, pruning, webhooks, killing hung ones."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import psutil
from sqlalchemy.exc import SQLAlchemyError

from app import queue
from app.database import leases
from app.database.engine import Database
from app.drift import service as drift
from app.evaluations.renewal import Renewal
from app.jobs import lease
from app.processes import child_command, children, has_ended, is_gone
from app.retention import service as retention
from app.settings import Settings

# Children that do not stop their job are killed by the worker's main process.
#
# A job checks for a stop request between two chunks. A fit, a verdict or a search may take an hour within one, in
# native code that no exception and no thread of the same process can interrupt. So after `GRACE_SECONDS` the job is
# cancelled, or returned to the queue with its last checkpoint, and the process is killed from outside. The pool starts
# another.


GRACE_SECONDS = 4.0
ENDING_SECONDS, GIVING_SECONDS = 5.0, 2.0

logger = logging.getLogger(__name__)


class Overdue:
    """Watchdog that kills child processes which do not end a cancelled job, or stop with the worker, in 4 seconds.

    Args:
        is_stopping: function that returns whether this worker has received SIGTERM.
        clock: function that returns monotonic seconds.
    """

    def __init__(self, is_stopping: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_stopping, self._clock = is_stopping, clock
        self._since: dict[tuple[str, int], float] = {}
        self._stopping_since: float | None = None

    def step(self, database: Database) -> None:
        """Check once, return the overdue children's jobs to the queue, and kill these children.

        Raises:
            SQLAlchemyError: the database is unavailable; in a stopping worker the children are killed nevertheless.
        """
        if self._is_stopping():
            if self._stopping_since is None:
                self._stopping_since = self._clock()
            if self._clock() - self._stopping_since >= GRACE_SECONDS:
                _end(database, children())
                return
        self._end_cancelled(database)

    def _end_cancelled(self, database: Database) -> None:
        with database.reading() as session:
            cancelling = lease.cancelling(session)
        now, result = self._clock(), children() if cancelling else {}
        cancelled = [one for one in cancelling if one.owner in result]
        self._since = {(one.job_id, one.fence): self._since.get((one.job_id, one.fence), now) for one in cancelled}
        over = [one.owner for one in cancelled if now - self._since[one.job_id, one.fence] >= GRACE_SECONDS]
        _end(database, {owner: result[owner] for owner in over})


def _end(database: Database, processes: Mapping[str, psutil.Process]) -> None:
    """Release the jobs of children (by process name), so that they do not count as lost, and kill the children.

    The function waits at most 2 seconds for the database, and 5 seconds for the processes to end.
    """
    if not processes:
        return
    giving = threading.Thread(target=_give_back, args=(database, processes), daemon=True)
    giving.start()
    giving.join(GIVING_SECONDS)
    for child in processes.values():
        with suppress(psutil.NoSuchProcess):
            child.kill()
    deadline = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < deadline and not all(map(has_ended, processes.values())):
        time.sleep(0.01)  # only the pool may reap them, so no wait() here
    _give_back(database, processes)  # they may have claimed further jobs meanwhile


def _give_back(database: Database, owners: Iterable[str]) -> None:
    for owner in owners:
        try:
            for job_id in lease.give_back(database, owner):
                logger.warning("job %s: its process does not stop, and is ended: %s", job_id, owner)
        except SQLAlchemyError as error:
            logger.warning("what %s holds could not be given back: %s", owner, error)


# Periodic tasks of a worker's main process.


PURGE_SECONDS = 3600.0
RESTART_SECONDS = 30.0
"""Least seconds between two starts of the process of the webhooks."""
LOOK_SECONDS = 1.0
"""Seconds between two checks for jobs to stop."""


# A process forked while SQLite is in use inherits SQLite's record of its locks, and finds the database locked for ever
# by a connection that it does not have: so forks wait for the end of a round.
_round = threading.Lock()
os.register_at_fork(before=_round.acquire, after_in_parent=_round.release, after_in_child=_round.release)


class Housekeeper:
    """Background thread of a worker's main process that runs the periodic tasks.

    Database errors and defects of a task are logged, and the task is tried again in the next round.

    Args:
        settings: intervals in seconds, and the database.
        name: name of this process.
        is_consuming: function that returns whether the worker consumes messages; otherwise it sends no heartbeat.
        is_stopping: function that returns whether this worker has received SIGTERM.
    """

    def __init__(
        self,
        settings: Settings,
        name: str,
        is_consuming: Callable[[], bool] = lambda: True,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.settings = settings
        self.name = name
        self._is_consuming = is_consuming
        self._overdue = Overdue(is_stopping)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)
        self._purge_at = self._prune_at = self._round_at = 0.0
        self._pruning: subprocess.Popen[bytes] | None = None
        self._webhooks: subprocess.Popen[bytes] | None = None
        self._webhooks_at = 0.0
        self._renewal = Renewal()

    def start(self) -> None:
        """Start the background thread; raise RuntimeError if it was started before."""
        queue.use(self.settings)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread (waiting up to 5 seconds), which signs the worker off, and end its subprocesses."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(5.0)
        for child in (self._pruning, self._webhooks):
            if child is not None and child.poll() is None:
                child.terminate()  # the next round repeats unfinished work
                with suppress(subprocess.TimeoutExpired):
                    child.wait(ENDING_SECONDS)

    def _run(self) -> None:
        database = Database(self.settings.database_url, self.settings)
        pause = min(self.settings.sweep_seconds, self.settings.heartbeat_seconds)
        while True:
            with _round:
                self._housekeeping(database, pause)
                database.dispose()
            if self._ended.wait(min(pause, LOOK_SECONDS)):
                break
        with _round:
            self._sign_off(database)
            database.dispose()

    def _sign_off(self, database: Database) -> None:
        try:
            with database.session() as session:
                leases.leave(session, self.name)
        except SQLAlchemyError as error:
            logger.warning("could not sign off: %s", error)

    def _prune(self, database: Database) -> None:
        """Start a pruning subprocess when due, unless one is running or no row has a retention limit."""
        if time.monotonic() < self._prune_at or (self._pruning is not None and self._pruning.poll() is None):
            return
        self._prune_at = time.monotonic() + self.settings.prune_seconds
        if retention.workloads_with_retention(database, self.settings):
            self._pruning = subprocess.Popen(child_command("workers.prune"), start_new_session=True)

    def _tell(self, _: Database) -> None:
        """Start the process of the webhooks if a receiver is set, and again if it has ended."""
        if not self.settings.webhook_urls or time.monotonic() < self._webhooks_at:
            return
        self._webhooks_at = time.monotonic() + RESTART_SECONDS
        if self._webhooks is None or self._webhooks.poll() is not None:
            self._webhooks = subprocess.Popen(child_command("workers.webhooks"), start_new_session=True)

    def _housekeeping(self, database: Database, pause: float) -> None:
        parts: list[Callable[[Database], object]] = [self._overdue.step]
        if time.monotonic() >= self._round_at:
            self._round_at = time.monotonic() + pause
            parts += [self._beat, self._sweep, drift.step, self._renewal.step, self._prune, self._tell, self._purge]
        for part in parts:
            try:
                part(database)
            except SQLAlchemyError as error:
                logger.warning("keeping house failed, trying again: %s", error)
                return
            except Exception:  # a defect of one part must end neither the others nor this thread
                logger.exception("keeping house failed, trying again")

    def _beat(self, database: Database) -> None:
        if not self._is_consuming():
            return
        with database.session() as session:
            leases.beat(session, self.name)

    def _sweep(self, database: Database) -> None:
        for job_id in lease.sweep(database, self.settings, is_gone):
            logger.info("announced job %s again", job_id)

    def _purge(self, database: Database) -> None:
        if time.monotonic() > self._purge_at:
            lease.purge(database, self.settings)
            self._purge_at = time.monotonic() + PURGE_SECONDS

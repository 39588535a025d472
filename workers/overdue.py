"""Processes that go on with a job which is to stop: the worker's main process ends them.

A job looks between two chunks whether it is to stop. A fit, a verdict or a search may take an hour within one, and be
in native code that no exception and no thread of the same process reaches. So the end comes from outside: whoever has
not stopped after `GRACE_SECONDS` loses its job, which is cancelled or goes back into the queue with its last
checkpoint, and its process is killed. The pool starts another.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import psutil
from sqlalchemy.exc import SQLAlchemyError

from app.database.engine import Database
from app.jobs import lease
from app.processes import children, has_ended

GRACE_SECONDS = 4.0
ENDING_SECONDS, GIVING_SECONDS = 5.0, 2.0

logger = logging.getLogger(__name__)


class Overdue:
    """Finds and ends such children of this process.

    Args:
        is_stopping: whether this worker has been asked to stop.
        clock: seconds that only pass.
    """

    def __init__(self, is_stopping: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_stopping, self._clock = is_stopping, clock
        self._since: dict[tuple[str, int], float] = {}
        self._stopping_since: float | None = None

    def step(self, database: Database) -> None:
        """Look once, and end who is overdue.

        Raises:
            SQLAlchemyError: the database is away; of a worker that stops every child has been ended all the same.
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
        now, found = self._clock(), children() if cancelling else {}
        held = [one for one in cancelling if one.owner in found]
        self._since = {(one.job_id, one.fence): self._since.get((one.job_id, one.fence), now) for one in held}
        over = [one.owner for one in held if now - self._since[one.job_id, one.fence] >= GRACE_SECONDS]
        _end(database, {owner: found[owner] for owner in over})


def _end(database: Database, found: Mapping[str, psutil.Process]) -> None:
    """Take what children hold from them, so that nobody takes their end for a loss, and end them all.

    A database that is away holds none of that up for long.
    """
    if not found:
        return
    giving = threading.Thread(target=_give_back, args=(database, found), daemon=True)
    giving.start()
    giving.join(GIVING_SECONDS)
    for child in found.values():
        with suppress(psutil.NoSuchProcess):
            child.kill()
    deadline = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < deadline and not all(map(has_ended, found.values())):
        time.sleep(0.01)  # the pool reaps them: nobody else may wait for them
    _give_back(database, found)  # they may have taken others meanwhile


def _give_back(database: Database, owners: Iterable[str]) -> None:
    for owner in owners:
        try:
            for job_id in lease.give_back(database, owner):
                logger.warning("job %s: its process does not stop, and is ended: %s", job_id, owner)
        except SQLAlchemyError as error:
            logger.warning("what %s holds could not be given back: %s", owner, error)

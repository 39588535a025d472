"""A thread that sends what a run reports, so that whoever reports goes on at once."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import NamedTuple

from .channel import Numbers
from .errors import StewardError
from .iterative import Run
from .orphans import hand_over_earlier
from .spool import Kept, Origin, Spool

AGAIN_SECONDS = 10.0
logger = logging.getLogger("steward_client")


class Item(NamedTuple):
    """A report on its way to the thread."""

    report: Kept
    done: Future[None]


class Background:
    """A channel to a service: one thread sends, in order; what it can't send now it keeps, and tries again by itself.

    Between ``start`` and ``end`` the run is the thread's alone. Each report is sent until it is acknowledged, under its
    number, so that it counts exactly once. Until then it is in a file, too: who goes on after a crash sends it.
    A run that a process began here and did not live to end is given what that process had kept, and ended as failed.

    Args:
        run: who sends; its ``wait_seconds`` hold up the thread, not the caller.
        owned: whether the run is ended here.
    """

    def __init__(self, run: Run, *, owned: bool = True) -> None:
        self.id = run.id
        self._run, self._owned = run, owned
        self._inbox: SimpleQueue[Item | None] = SimpleQueue()
        self._raised: StewardError | None = None
        self._next = 0
        self._spool: Spool | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the run, as patiently as it does, and the thread."""
        if self._thread is None:
            self._run.start()
            self.id, self._next = self._run.id, self._run.iteration
            self._spool = Spool.of(Origin(self.id, self._run.workload, self._run.service, self._owned))
            for kept in self._spool.kept(self._next):
                self._hand_over(kept)
            self._thread = threading.Thread(target=self._work, name=f"steward-{self.id}", daemon=True)
            self._thread.start()

    @property
    def iteration(self) -> int:
        """The number of the next report; those that are on their way count."""
        return self._next

    @property
    def allocation(self) -> dict[str, float]:
        """What was decided last, by resource."""
        return self._run.allocation

    @property
    def refused(self) -> StewardError | None:
        """Why the service does not take the first of the reports that it does not have; None: it does."""
        return self._raised or self._run.refused

    @property
    def unsent(self) -> int:
        """How many reports are not acknowledged yet."""
        return self._inbox.qsize() + len(self._run.unsent)

    def report(self, iteration: int, allocation: Numbers, metrics: Numbers, features: Numbers) -> Future[None]:
        """Hand a report to the thread.

        Raises:
            StewardError: one that was reported before was refused, where that is raised; nothing after it is taken.
        """
        if self._raised is not None:
            raise self._raised
        kept = Kept(iteration, allocation, metrics, features)
        if self._spool is not None:
            self._spool.keep(kept)
        return self._hand_over(kept)

    def _hand_over(self, kept: Kept) -> Future[None]:
        item = Item(kept, Future())
        self._inbox.put(item)
        self._next = kept.iteration + 1
        return item.done

    def expect(self, count: int) -> None:
        """The service knows by the workload."""

    def end(self, error: BaseException | None = None) -> None:
        """Have all that is on its way sent, as patiently as the run does, and end the run where it is ours.

        A service that does not answer, or refuses, is logged; what it did not get stays in the file.

        Raises:
            StewardError: a report, or the end, was refused, where that is raised.
        """
        self._stop()
        if self._owned:
            self._run.leave(error)
        else:
            self._run.hand_over()
        if self._raised is not None and error is None:
            raise self._raised

    def close(self) -> None:
        """End the thread, and close the connection where the run opened it; what was not sent stays in its file."""
        self._stop()
        self._run.close()
        if self._spool is not None:
            self._spool.close(done=not self._run.unsent and (self._run.ended or not self._owned))

    def _stop(self) -> None:
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        rest: float | None = None
        if self._owned:
            hand_over_earlier(self._run)
        while True:
            try:
                item = self._inbox.get(timeout=rest)
            except Empty:
                rest = self._deliver(None)
                continue
            if item is None:
                return
            rest = self._deliver(item)
            item.done.set_result(None)

    def _deliver(self, item: Item | None) -> float | None:
        """Seconds until the rest is to be tried again; None where nothing is left."""
        try:
            if item is not None and self._raised is None:
                self._run.report(*item.report)
            rest = self._run.deliver()
        except StewardError as error:
            self._raised, rest = error, None
        except Exception:
            logger.exception("run %s: a report could not be sent", self.id)
            rest = AGAIN_SECONDS if self._run.unsent else None
        if rest is None and self._spool is not None and not self.unsent:
            self._spool.acknowledged()
        return rest

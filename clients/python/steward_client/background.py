"""Channel that sends a run's reports in a thread, so that the reporting loop isn't blocked."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import NamedTuple

from .channel import Numbers, Segments
from .errors import StewardError
from .iterative import Run
from .orphans import hand_over_earlier
from .reaction import Contingency
from .spool import Origin, Spool, StoredReport

AGAIN_SECONDS = 10.0
logger = logging.getLogger("steward_client")


class Item(NamedTuple):
    """A report waiting for the thread, and its future."""

    report: StoredReport
    done: Future[None]


class Background:
    """Channel to a service: a thread sends reports in order; unsent ones are stored and tried again.

    Between ``start`` and ``end`` only the thread uses the run. Each report is sent under its number until it is
    acknowledged, so that it counts exactly once; until then it is also in a file, from which the next process sends it
    after a crash. Runs of processes that were killed on this host are completed by the reports in their files, and
    ended as failed.

    Args:
        run: the run; its ``wait_seconds`` block the thread, not the caller.
        owned: whether ``end`` ends the run.
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
        """Start the run and the thread; repeating it has no effect. Raises StewardError if the service refuses the run,
        and Unreachable if it doesn't respond in time."""
        if self._thread is None:
            self._run.start()
            self.id, self._next = self._run.id, self._run.iteration
            self._spool = Spool.of(Origin(self.id, self._run.workload, self._run.service, self._owned))
            for report in self._spool.stored_reports(self._next):
                self._hand_over(report)
            self._thread = threading.Thread(target=self._work, name=f"steward-{self.id}", daemon=True)
            self._thread.start()

    @property
    def iteration(self) -> int:
        """Number of the next report, after those that wait for the thread."""
        return self._next

    @property
    def allocation(self) -> dict[str, float]:
        """The last decided allocation: amounts by resource, in the units of the spec."""
        return self._run.allocation

    @property
    def refused(self) -> StewardError | None:
        """Why the service refuses the first unacknowledged report; None: it doesn't."""
        return self._raised or self._run.refused

    @property
    def outcome(self) -> str | None:
        """The service's judgement of the ended run; None before."""
        return self._run.outcome

    @property
    def unsent(self) -> int:
        """Number of reports that aren't acknowledged yet."""
        return self._inbox.qsize() + len(self._run.unsent)

    @property
    def contingencies(self) -> list[Contingency]:
        """Allocations if the next iteration takes longer than expected; empty while its decision isn't known yet."""
        return self._run.contingencies if self._run.decision.iteration == self._next else []

    def report(
        self, iteration: int, allocation: Numbers, metrics: Numbers, features: Numbers, segments: Segments = ()
    ) -> Future[None]:
        """Store a report and hand it to the thread; the future is done once the thread has tried to send it.

        ``allocation`` are amounts by resource, ``segments`` the parts of an iteration whose allocation changed in it.

        Raises:
            StewardError: an earlier report was refused, if refusals are raised; later reports are not accepted either.
        """
        if self._raised is not None:
            raise self._raised
        report = StoredReport(iteration, allocation, metrics, features, segments)
        if self._spool is not None:
            self._spool.keep(report)
        return self._hand_over(report)

    def _hand_over(self, report: StoredReport) -> Future[None]:
        item = Item(report, Future())
        self._inbox.put(item)
        self._next = report.iteration + 1
        return item.done

    def expect(self, count: int) -> None:
        """Do nothing: the service knows the number of iterations from the workload."""

    def end(self, error: BaseException | None = None) -> None:
        """Send all waiting reports, and end the run if it is owned: as failed or cancelled with an ``error``.

        An unreachable service or a refusal is logged; unsent reports stay in the file.

        Raises:
            StewardError: a report or the end was refused, if refusals are raised.
        """
        self._stop()
        if self._owned:
            self._run.leave(error)
        else:
            self._run.hand_over()
        if self._raised is not None and error is None:
            raise self._raised

    def close(self) -> None:
        """End the thread, and close the connection if the run opened it; unsent reports stay in the file."""
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
        """Report an item (None: none) and send stored reports; seconds to the next attempt, None: all are sent."""
        try:
            if item is not None and self._raised is None:
                item.report.send(self._run)
            rest = self._run.deliver()
        except StewardError as error:
            self._raised, rest = error, None
        except Exception:
            logger.exception("run %s: a report could not be sent", self.id)
            rest = AGAIN_SECONDS if self._run.unsent else None
        if rest is None and self._spool is not None and not self.unsent:
            self._spool.acknowledged()
        return rest

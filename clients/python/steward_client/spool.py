"""Spool: a file with a training loop's reports that the service hasn't acknowledged yet.

The file ``$XDG_STATE_HOME/steward/runs/RUN.ndjson`` (by default below ``~/.local/state``) exists until its run ends.
After a crash the next process sends its reports under their numbers, so that each counts exactly once. If the file
can't be written, reports are in memory only, which is logged.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from .channel import Numbers, Segments
from .journal import Journal, JournalError, Line

if TYPE_CHECKING:
    from .iterative import Run

BEGUN, REPORT = "begun", "report"
LONGEST_SECONDS = 90 * 86_400.0
"""An unused file is deleted after so many seconds."""
logger = logging.getLogger("steward_client")


class Origin(NamedTuple):
    """The run of a spool: its id, its workload, the service's URL, and whether the reporting process started it."""

    run: str
    workload: str
    service: str
    owned: bool


class StoredReport(NamedTuple):
    """A stored report: iteration, values by name, and segments, its parts with their allocations and seconds."""

    iteration: int
    allocation: Numbers
    metrics: Numbers
    features: Numbers
    segments: Segments = ()

    def send(self, run: Run) -> None:
        """Send this report through ``run``; raises StewardError if the service refused it and the run raises
        refusals."""
        run.report(self.iteration, self.allocation, self.metrics, self.features, segments=self.segments)


class Spool:
    """The stored reports of one run. Its methods never raise; errors are logged.

    Args:
        origin: the run.
        journal: its file; None: nothing is stored.

    Attributes:
        origin: the run.
    """

    def __init__(self, origin: Origin, journal: Journal | None) -> None:
        self.origin, self._journal = origin, journal

    @classmethod
    def of(cls, origin: Origin) -> Self:
        """Open a run's spool, with the reports that an earlier process stored."""
        try:
            folder().mkdir(parents=True, exist_ok=True, mode=0o700)
            journal = Journal(folder() / f"{origin.run}.ndjson")
            if not journal.lines:
                journal.append({BEGUN: list(origin)})
        except (OSError, ImportError, JournalError) as error:
            logger.warning("run %s: reports are kept in memory alone: %s", origin.run, error)
            return cls(origin, None)
        return cls(origin, journal)

    def stored_reports(self, first: int) -> list[StoredReport]:
        """Reports stored by an earlier process from iteration ``first`` on, in order; of equal numbers the last."""
        lines = self._journal.lines if self._journal is not None else []
        result = {one.iteration: one for one in _reports(lines)}
        return [result[number] for number in sorted(result) if number >= first]

    def keep(self, report: StoredReport) -> None:
        """Store a report; it is in the file when this returns."""
        if self._journal is None:
            return
        try:
            self._journal.append({REPORT: list(report)})
        except OSError as error:
            logger.warning("run %s: reports are kept in memory alone: %s", self.origin.run, error)
            self.close()

    def acknowledged(self) -> None:
        """Note that the service has all stored reports; a file that has grown large is emptied."""
        if self._journal is not None and self._journal.large:
            try:
                self._journal.renew({BEGUN: list(self.origin)})
            except OSError as error:
                logger.debug("run %s: %s", self.origin.run, error)

    def close(self, *, done: bool = False) -> None:
        """Close the file; with ``done`` it is deleted."""
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close(done=done)


def folder() -> Path:
    """Folder of spools: ``steward/runs`` in ``$XDG_STATE_HOME``, else in ``~/.local/state``; it may not exist."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(os.path.expanduser(state)) / "steward" / "runs"  # noqa: PTH111 - raises nothing without a home


def left_behind(workload: str, service: str) -> Iterator[Spool]:
    """Yield spools of ended processes that started runs of this workload; the caller closes them."""
    for file in sorted(folder().glob("*.ndjson")):
        try:
            journal = Journal(file)
        except (OSError, ImportError, JournalError):  # a process has it, or it is none
            continue
        begun = journal.lines[0].get(BEGUN) if journal.lines else None
        if isinstance(begun, list) and begun[1:] == [workload, service, True]:
            yield Spool(Origin(*begun), journal)
        else:
            journal.close(done=time.time() - file.stat().st_mtime > LONGEST_SECONDS)


def _reports(lines: list[Line]) -> Iterator[StoredReport]:
    most, least = len(StoredReport._fields), len(StoredReport._fields) - len(StoredReport._field_defaults)
    reports = (StoredReport(*line[REPORT]) for line in lines if least <= len(line.get(REPORT, ())) <= most)
    return (report._replace(segments=tuple(report.segments)) for report in reports)

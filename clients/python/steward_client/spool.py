"""Reports that a training loop has handed over and that nobody has acknowledged yet, in a file of the user's.

The file, ``$XDG_STATE_HOME/steward/runs/RUN.ndjson`` (without that variable below ``~/.local/state``), is there as
long as its run is not ended: who goes on with the run after a crash sends what it holds, each report under its number,
so that it counts exactly once. Where it can't be written reports are in memory alone, which is logged.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from .channel import Numbers
from .journal import Journal, JournalError, Line

BEGUN, REPORT = "begun", "report"
LONGEST_SECONDS = 90 * 86_400.0
"""For which a file is kept that nobody asks for."""
logger = logging.getLogger("steward_client")


class Origin(NamedTuple):
    """What a spool is of: a run of a workload at a service, and whether the process that reports has begun it."""

    run: str
    workload: str
    service: str
    owned: bool


class Kept(NamedTuple):
    """A report as it was handed over."""

    iteration: int
    allocation: Numbers
    metrics: Numbers
    features: Numbers


class Spool:
    """The reports of one run; nothing of it raises.

    Args:
        origin: of the reports.
        journal: the file; None: what is kept is in memory alone.

    Attributes:
        origin: as given.
    """

    def __init__(self, origin: Origin, journal: Journal | None) -> None:
        self.origin, self._journal = origin, journal

    @classmethod
    def of(cls, origin: Origin) -> Self:
        """The spool of a run, with what an earlier process left in it."""
        try:
            folder().mkdir(parents=True, exist_ok=True, mode=0o700)
            journal = Journal(folder() / f"{origin.run}.ndjson")
            if not journal.lines:
                journal.append({BEGUN: list(origin)})
        except (OSError, ImportError, JournalError) as error:
            logger.warning("run %s: reports are kept in memory alone: %s", origin.run, error)
            return cls(origin, None)
        return cls(origin, journal)

    def kept(self, first: int) -> list[Kept]:
        """What an earlier process left, from that iteration on, in order; the last of each number."""
        lines = self._journal.lines if self._journal is not None else []
        found = {one.iteration: one for one in _reports(lines)}
        return [found[number] for number in sorted(found) if number >= first]

    def keep(self, report: Kept) -> None:
        """Write a report: it is there when this returns."""
        if self._journal is None:
            return
        try:
            self._journal.append({REPORT: list(report)})
        except OSError as error:
            logger.warning("run %s: reports are kept in memory alone: %s", self.origin.run, error)
            self.close()

    def acknowledged(self) -> None:
        """All that was handed over is with the service: a file that has grown large is begun anew."""
        if self._journal is not None and self._journal.large:
            try:
                self._journal.renew({BEGUN: list(self.origin)})
            except OSError as error:
                logger.debug("run %s: %s", self.origin.run, error)

    def close(self, *, done: bool = False) -> None:
        """Let go of the file; ``done``: nobody needs it any more."""
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close(done=done)


def folder() -> Path:
    """The folder of spools: ``steward/runs`` in ``$XDG_STATE_HOME``, else in ``~/.local/state``."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(os.path.expanduser(state)) / "steward" / "runs"  # noqa: PTH111 - raises nothing without a home


def left_behind(workload: str, service: str) -> Iterator[Spool]:
    """Spools that processes which are no more have left of runs that they began; each is the caller's to close."""
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


def _reports(lines: list[Line]) -> Iterator[Kept]:
    return (Kept(*line[REPORT]) for line in lines if len(line.get(REPORT, ())) == len(Kept._fields))

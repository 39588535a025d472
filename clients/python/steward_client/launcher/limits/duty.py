"""Duty cycle: stop and continue processes so that their measured CPU time stays within a limit."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

from . import tree

PERIOD_SECONDS = 0.05  # short, so that an iteration of half a second is many periods
LOOK_SECONDS = PERIOD_SECONDS / 4


class DutyCycle:
    """Grants CPU time at ``cores`` CPU seconds per second; stops the processes while they have used more than granted.

    Args:
        pids: returns the ids of the processes, which share the limit; called at each ``look``.
    """

    def __init__(self, pids: Callable[[], Sequence[int]]) -> None:
        self.cores = 1.0
        self.stopped = False
        self._pids, self._credit = pids, 0.0
        self._used: dict[int, float] = {}
        self._halted: set[int] = set()

    def look(self, seconds: float) -> None:
        """Grant CPU time for the ``seconds`` since the last call, subtract the time used, and stop or continue."""
        granted = min(self._credit + self.cores * seconds, self.cores * PERIOD_SECONDS)
        self._credit = granted - self._spent()
        if self._credit < 0 or self.cores == 0:
            self._stop()
        elif self.stopped:
            self.go()

    def go(self) -> None:
        """Continue all processes; those that have ended are skipped."""
        tree.send(self._halted | set(self._pids()), signal.SIGCONT)
        self.stopped, self._halted = False, set()

    def _stop(self) -> None:
        fresh = set(self._pids()) - self._halted  # what a stopped process's child has become since counts, too
        tree.send(fresh, signal.SIGSTOP)
        self.stopped, self._halted = True, self._halted | fresh

    def _spent(self) -> float:
        """Return the CPU seconds used since the last look; a process's use before it was first seen isn't counted."""
        now: dict[int, float] = {}
        for pid in self._pids():
            try:
                now[pid] = tree.cpu_seconds(pid)
            except ProcessLookupError:
                continue
        spent = sum(used - self._used.get(pid, used) for pid, used in now.items())
        self._used = now
        return spent

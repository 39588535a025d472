"""A service of our own, for as long as a launch takes: one that ends by itself is started again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Lock, Thread

from .limits.guarded import Guarded, NotStarted

FIRST_PAUSE_SECONDS, MOST_STARTS = 1.0, 6
"""Pauses double; after so many starts in a row the last decision holds until the command ends."""
SETTLED_SECONDS = 60.0
"""A service that ran for so long begins the count anew."""


class Embedded:
    """The service as a process below a guard, whose output goes to a file.

    Args:
        command: starts it.
        log: takes what it writes.
        say: hears when it has ended, and what is done about it.
        left: is called when it has ended too often to be started once more.

    Raises:
        NotStarted: there is no such program.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        say: Callable[[str], None],
        left: Callable[[], None] = lambda: None,
    ) -> None:
        self._command, self._log, self._say, self._left = command, log, say, left
        self._lock, self._closing = Lock(), Event()
        self._written = log.open("ab", buffering=0)
        try:
            self._own = self._begun()
        except NotStarted:
            self._written.close()
            raise
        self._watcher = Thread(target=self._watch, daemon=True, name="steward-embedded")

    def _begun(self) -> Guarded:
        self._since = time.monotonic()
        return Guarded(self._command, os.environ, [], (self._written.write, self._written.write))

    def ended(self, seconds: float) -> bool:
        """Whether it has ended, within so many seconds."""
        return self._own.wait(seconds) is not None

    @property
    def last_words(self) -> str:
        """The last line that it wrote."""
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return "".join(lines[-1:])[-500:]

    def keep(self) -> None:
        """Start it again from now on whenever it ends."""
        self._watcher.start()

    def _watch(self) -> None:
        starts = 0
        while self._own.wait(None) is not None and not self._closing.is_set():
            starts = 1 if time.monotonic() - self._since > SETTLED_SECONDS else starts + 1
            if starts > MOST_STARTS:
                self._say(f"the service ended {starts} times ({self.last_words}): the last decision holds")
                self._left()
                return
            self._say(f"the service ended with status {self._own.status}; it is started again")
            self._closing.wait(FIRST_PAUSE_SECONDS * 2 ** (starts - 1))
            self._again()

    def _again(self) -> None:
        with self._lock:
            if self._closing.is_set():
                return
            self._own.close()  # what it had started: the database is to be free
            try:
                self._own = self._begun()
            except NotStarted as error:
                self._say(f"the service can't be started again: {error}")

    def close(self) -> None:
        """End it, and all that it has started."""
        self._closing.set()
        with self._lock:
            self._own.close()
        if self._watcher.ident is not None:
            self._watcher.join()
        self._written.close()

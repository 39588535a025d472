"""A service that the launcher runs itself; it is restarted if it ends unexpectedly."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Lock, Thread

from .limits.guarded import Guarded, NotStarted

FIRST_PAUSE_SECONDS, MOST_STARTS = 1.0, 6
"""Pauses before restarts double; after so many restarts in a row the last decision holds until the command ends."""
SETTLED_SECONDS = 60.0
"""The count of restarts begins anew after the service has run for so long."""


class Embedded:
    """The service as a guarded child process, whose output goes to a file.

    Args:
        command: command line of the service.
        log: file to which its output is appended.
        say: called with a message when it has ended and is restarted.
        left: called when it has ended too often to be restarted.

    Raises:
        NotStarted: the program can't be started.
        OSError: the log can't be written.
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
            self._own = self._start_process()
        except NotStarted:
            self._written.close()
            raise
        self._watcher = Thread(target=self._watch, daemon=True, name="steward-embedded")

    def _start_process(self) -> Guarded:
        self._since = time.monotonic()
        return Guarded(self._command, os.environ, [], (self._written.write, self._written.write))

    def ended(self, seconds: float) -> bool:
        """Whether the service has ended; waits for at most ``seconds``."""
        return self._own.wait(seconds) is not None

    @property
    def last_words(self) -> str:
        """The last line of its output, at most 500 characters; empty if there is none."""
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return "".join(lines[-1:])[-500:]

    def keep(self) -> None:
        """Restart the service from now on whenever it ends; call it once."""
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
                self._own = self._start_process()
            except NotStarted as error:
                self._say(f"the service can't be started again: {error}")

    def close(self) -> None:
        """End the service and all its descendants."""
        self._closing.set()
        with self._lock:
            self._own.close()
        if self._watcher.ident is not None:
            self._watcher.join()
        self._written.close()

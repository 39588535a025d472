"""The search for plans: a child process, found by the entry-point group ``steward.plan_searches``.

It is compiled code, which a serving process has no part of: it is started when a plan is wanted first, and until it
answers, or whenever it can't, the caller goes on without. One search at a time: other decisions never wait for one.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import entry_points
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from app.kinds.workflow.plans.message import Found, Remaining, decoded, encoded

GROUP, NAME = "steward.plan_searches", "workflow"
LIMIT_SECONDS = 5.0  # for an answer; one takes less than a fifth of a second of an idle processor
CLOSING_SECONDS = 0.5
PAUSE_SECONDS = 60.0  # between an end of the child and the next start


class SearchUnavailableError(Exception):
    """No plan can be searched for now; the message says why."""


def installed() -> str:
    """The module that searches, as ``python -m`` runs it; empty without one."""
    found = entry_points(group=GROUP, name=NAME)
    return next((entry.value for entry in found), "")


class PlanSearch:
    """Called with what is left of a queue, it answers with a plan; safe to share between threads.

    Args:
        module: that searches; see ``installed``.
        clock: seconds, for pauses after failures.
    """

    def __init__(self, module: Callable[[], str] = installed, clock: Callable[[], float] = time.monotonic) -> None:
        self._module, self._clock = module, clock
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._ready, self._paused, self._problem = False, 0.0, ""

    def __call__(self, left: Remaining) -> Found:
        """The best plan found.

        Raises:
            SearchUnavailableError: the child is starting, searches for somebody else, isn't installed, or has failed.
        """
        if not self._lock.acquire(blocking=False):
            raise SearchUnavailableError("another search goes on")
        try:
            return self._answer(self._connected(), left)
        except (OSError, EOFError, ValueError) as error:
            status = self._stop()
            self._paused = self._clock() + PAUSE_SECONDS
            why = f"it ended with status {status}" if isinstance(error, EOFError | ConnectionError) else str(error)
            self._problem = f"the search for plans failed ({type(error).__name__}: {why})"
            raise SearchUnavailableError(self._problem) from error
        finally:
            self._lock.release()

    def _answer(self, connection: Connection[Any, Any], left: Remaining) -> Found:
        connection.send_bytes(encoded(left))
        if not connection.poll(LIMIT_SECONDS):
            raise TimeoutError(f"no answer within {LIMIT_SECONDS:g} s")
        return Found(**decoded(connection.recv_bytes()))

    def _connected(self) -> Connection[Any, Any]:
        """The way to a child that is ready."""
        if self._connection is None:
            if self._clock() < self._paused:
                raise SearchUnavailableError(self._problem)
            self._connection = self._start()
        if not self._ready:
            if not self._connection.poll(0):
                raise SearchUnavailableError("the search for plans is starting")
            self._connection.recv_bytes()
            self._ready = True
        return self._connection

    def _start(self) -> Connection[Any, Any]:
        module = self._module()
        if not module:
            raise SearchUnavailableError("no search for plans is installed (it comes with steward[worker])")
        ours, theirs = Pipe()
        with closing(theirs):
            command = [sys.executable, "-m", module, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        atexit.register(self.close)
        return ours

    def _stop(self) -> int | None:
        """End the child; its exit status."""
        connection, process = self._connection, self._process
        self._connection, self._process, self._ready = None, None, False
        if connection is not None:
            connection.close()
        if process is None:
            return None
        try:
            return process.wait(CLOSING_SECONDS)  # without its connection it ends by itself
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def close(self) -> None:
        """End the child; the next call starts another."""
        atexit.unregister(self.close)
        with self._lock:
            self._stop()

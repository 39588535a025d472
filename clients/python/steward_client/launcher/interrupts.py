"""Signals SIGINT, SIGTERM and SIGHUP as an exception, so that everything is cleaned up in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128
"""Exit status of a process ended by signal n: 128 + n, as in a shell."""
_holders: list[list[int]] = []
"""Signals received in each `defer_interrupts` block in progress."""


class Interrupted(BaseException):
    """A signal was received.

    Attributes:
        number: number of the signal.
        status: the command's exit status, once the signal was passed on to it; before that 128 + ``number``.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = SIGNALLED + number
        super().__init__(signal.Signals(number).name)

    @property
    def passed_on(self) -> str:
        """Text on what happens to the command."""
        return f"{self}: passed on to the command"

    @property
    def what(self) -> str:
        """Text on what happened."""
        return f"interrupted by {self}"


class Stopped(Interrupted):
    """A cap is reached, for the reason given: the command is ended as by SIGTERM."""

    def __init__(self, reason: str) -> None:
        super().__init__(signal.SIGTERM)
        self.args = (reason,)

    @property
    def passed_on(self) -> str:
        """Text on what happens to the command."""
        return f"{self}: the command gets SIGTERM"

    @property
    def what(self) -> str:
        """Text on what happened."""
        return f"stopped: {self}"


def _raise(number: int, _: FrameType | None) -> None:
    if _holders:
        _holders[0].append(number)
        return
    raise Interrupted(number)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Context manager: delay Interrupted to the block's end, so that a new resource is always known to its cleanup.

    Without effect outside the main thread, where no signal is raised.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    _holders.append(came)
    try:
        yield
    finally:
        _holders.pop()
    if came:
        _raise(came[0], None)


@contextmanager
def interruptible() -> Iterator[None]:
    """Context manager: the signals raise `Interrupted` in the block. Main thread only, else ValueError is raised."""
    before = {number: signal.signal(number, _raise) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ignore_signals() -> Iterator[None]:
    """Context manager: the signals are ignored in the block, for short work that must not be interrupted."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

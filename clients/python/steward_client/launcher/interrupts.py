"""SIGINT, SIGTERM and SIGHUP as an exception: whatever goes on is left in order, and undone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128
"""And the signal's number: the exit status of what a signal has ended, as in a shell."""
_holders: list[list[int]] = []
"""Of each `held` that goes on, what came meanwhile."""


class Interrupted(BaseException):
    """One of them came.

    Attributes:
        number: which.
        status: of the command, once it has been passed on to one.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = SIGNALLED + number
        super().__init__(signal.Signals(number).name)


def _raise(number: int, _: FrameType | None) -> None:
    if _holders:
        _holders[0].append(number)
        return
    raise Interrupted(number)


@contextmanager
def held() -> Iterator[None]:
    """What comes meanwhile is raised at the end: for making what somebody must know of so that it is undone.

    In another thread than the main one nothing is raised anyway.
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
    """Signals raise `Interrupted` meanwhile; in the main thread only."""
    before = {number: signal.signal(number, _raise) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals are not heard meanwhile: for what must be done to its end, and is brief."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

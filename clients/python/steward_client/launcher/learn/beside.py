"""Background work in a thread, while the command runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def beside(work: Callable[[], T]) -> Future[T]:
    """Run ``work`` in a daemon thread, and return a future of its result or exception."""
    future: Future[T] = Future()

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the future passes it on
            future.set_exception(error)

    Thread(target=do, daemon=True, name="steward-learning").start()
    return future

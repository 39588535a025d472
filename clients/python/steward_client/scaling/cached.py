"""Cache of responses: fresh ones save calls, older ones bridge an unreachable service."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from steward_client.errors import Unreachable

MOST_KEYS = 4_096
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

logger = logging.getLogger("steward_client")


@dataclass
class _Entry(Generic[V]):
    lock: Lock = field(default_factory=Lock)
    requested_at: float = float("-inf")
    received_at: float = float("-inf")
    answer: V | None = None
    failed: Unreachable | None = None


class CachedFunction(Generic[K, V]):
    """A cached function, for any number of threads; at most one thread at a time calls it for the same key.

    Args:
        ask: the function; its other errors than ``Unreachable`` are passed on at once.
        fresh_seconds: seconds for which a result isn't requested again.
        hold_seconds: seconds for which the last result is returned while the service is unreachable.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        ask: Callable[[K], V],
        fresh_seconds: float = 1.0,
        hold_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._fresh, self._hold, self._clock = ask, fresh_seconds, hold_seconds, clock
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._lock = Lock()

    def __call__(self, key: K) -> V:
        """The result for a key, at most ``fresh_seconds`` old, or up to ``hold_seconds`` while the service is
        unreachable.

        Raises:
            Unreachable: there is no such result.
        """
        entry = self._entry(key)
        with entry.lock:
            if self._clock() >= entry.requested_at + self._fresh:
                self._renew(key, entry)
            if entry.failed is not None and self._clock() > entry.received_at + self._hold:
                raise entry.failed
            return entry.answer  # type: ignore[return-value] # there is one: else it was raised above

    def _entry(self, key: K) -> _Entry[V]:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > MOST_KEYS:
                self._entries.popitem(last=False)
            return entry

    def _renew(self, key: K, entry: _Entry[V]) -> None:
        try:
            entry.answer = self._ask(key)
        except Unreachable as error:
            if entry.failed is None:
                note = (
                    f"the last answer holds for {self._hold:g} s"
                    if entry.received_at > float("-inf")
                    else "there is none yet"
                )
                logger.warning("%s; %s", error, note)
            entry.failed, entry.requested_at = error, self._clock()
        else:
            entry.failed, entry.requested_at = None, self._clock()
            entry.received_at = entry.requested_at

"""Batching of items that arrive together on an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

LARGEST_BATCH = 64
PATIENCE_SECONDS = 0.008  # in which a slow processor reads some 60 requests
RETURN_SECONDS = 0.002

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class Gathering:
    """Delays a flush until no more items arrive, that is for a turn of the event loop without arrivals.

    A single caller isn't delayed. Under load the delay lasts as long as items keep coming, up to ``PATIENCE_SECONDS``
    or ``largest`` items, so that batches grow with the load.

    Args:
        count: returns the number of waiting items.
        flush: processes the waiting items.
        largest: number of items at which the wait ends.
        usual: returns the number of items that usually arrive together, if known: the wait ends at that number, and
            with fewer it lasts ``RETURN_SECONDS`` more, because each batch has a fixed cost.
    """

    def __init__(
        self,
        count: Callable[[], int],
        flush: Callable[[], None],
        largest: int,
        usual: Callable[[], int] | None = None,
    ) -> None:
        self._count, self._flush, self._largest, self._usual = count, flush, largest, usual
        self._seen, self._begun = -1, 0.0
        self._timer: asyncio.TimerHandle | None = None

    def note_arrival(self) -> None:
        """Note that an item arrived: start waiting for more, or end the wait if the usual number is there."""
        if self._seen < 0:
            self._seen, self._begun = 0, time.perf_counter()
            asyncio.get_running_loop().call_soon(self._turn)
        elif self._timer is not None and self._usual is not None and self._count() >= min(self._usual(), self._largest):
            self._timer.cancel()
            self._timer = None
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        count, loop = self._count(), asyncio.get_running_loop()
        self._timer = None
        if not self._waits(count, time.perf_counter() - self._begun):
            self._seen = -1
            self._flush()
            return
        self._seen = count
        if self._usual is None:
            loop.call_soon(self._turn)
        else:
            self._timer = loop.call_later(RETURN_SECONDS, self._turn)

    def _waits(self, count: int, seconds: float) -> bool:
        if count >= self._largest or seconds >= PATIENCE_SECONDS:
            return False
        if self._usual is None:
            return count > self._seen
        return count < self._usual() and (count > self._seen or seconds < RETURN_SECONDS)


class MicroBatch(Generic[Key, Item]):
    """Evaluates items that arrive together in one call per key, at most ``largest`` at a time.

    ``evaluate`` takes a key and its items and returns one result per item. If it raises, the items are evaluated one by
    one, so that only the faulty item fails.
    """

    def __init__(self, evaluate: Callable[[Key, list[Item]], list[bytes]], largest: int = LARGEST_BATCH) -> None:
        self._evaluate = evaluate
        self._largest = largest
        self._pending: list[tuple[Key, Item, asyncio.Future[bytes]]] = []
        self._gathering = Gathering(lambda: len(self._pending), self._flush, largest)

    def submit(self, key: Key, item: Item) -> asyncio.Future[bytes]:
        """Queue an item for the next batch of ``key``; return the future of its result or of its exception.

        Raises:
            RuntimeError: no event loop is running in this thread.
        """
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending.append((key, item, future))
        self._gathering.note_arrival()
        return future

    def _flush(self) -> None:
        pending, self._pending = self._pending[: self._largest], self._pending[self._largest :]
        if self._pending:
            self._gathering.note_arrival()
        groups: dict[Key, list[tuple[Item, asyncio.Future[bytes]]]] = {}
        for key, item, future in pending:
            if not future.done():
                groups.setdefault(key, []).append((item, future))
        for key, group in groups.items():
            self._resolve(key, group)

    def _resolve(self, key: Key, group: Sequence[tuple[Item, asyncio.Future[bytes]]]) -> None:
        try:
            results = self._evaluate(key, [item for item, _ in group])
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
            if len(group) == 1:
                group[0][1].set_exception(error)
                return
            for single in group:
                self._resolve(key, [single])
            return
        for (_, future), result in zip(group, results, strict=True):
            future.set_result(result)

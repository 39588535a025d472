"""What arrives together is done together."""

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
    """Waits until no more arrives: for a turn of the event loop in which nothing came.

    With one caller that is at once; under load it is as long as requests keep coming in, but no longer than
    ``PATIENCE_SECONDS`` or ``largest`` items. So batches grow with the load, and nothing waits for company that isn't
    on its way, or usual.

    Args:
        count: how many there are.
        flush: does them.
        largest: of which no more are waited for.
        usual: how many come together at present, if that is known: that many are not waited on any longer, and fewer
            are given ``RETURN_SECONDS`` to become more, by a timer. A batch costs a fixed part, too.
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

    def arrived(self) -> None:
        """Count in a new item: start waiting for more, or stop, if as many are there as usually come together."""
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
    """Evaluates together what arrives together: items of one key, at most ``largest`` at a time.

    ``evaluate`` gets a key and its items and gives one result per item. An evaluation that fails is repeated item by
    item, so that only the item that is at fault fails.
    """

    def __init__(self, evaluate: Callable[[Key, list[Item]], list[bytes]], largest: int = LARGEST_BATCH) -> None:
        self._evaluate = evaluate
        self._largest = largest
        self._pending: list[tuple[Key, Item, asyncio.Future[bytes]]] = []
        self._gathering = Gathering(lambda: len(self._pending), self._flush, largest)

    def submit(self, key: Key, item: Item) -> asyncio.Future[bytes]:
        """The item's result, soon."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending.append((key, item, future))
        self._gathering.arrived()
        return future

    def _flush(self) -> None:
        pending, self._pending = self._pending[: self._largest], self._pending[self._largest :]
        if self._pending:
            self._gathering.arrived()
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

"""What arrives together is done together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

LARGEST_BATCH = 64
PATIENCE_SECONDS = 0.002

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class Gathering:
    """Waits until no more arrives: for a turn of the event loop in which nothing came.

    With one caller that is at once; under load it is as long as requests keep coming in, but no longer than
    ``PATIENCE_SECONDS`` or ``largest`` items. So batches grow with the load, and nothing waits for company that isn't
    on its way.
    """

    def __init__(self, count: Callable[[], int], flush: Callable[[], None], largest: int) -> None:
        self._count, self._flush, self._largest = count, flush, largest
        self._seen, self._deadline = -1, 0.0

    def arrived(self) -> None:
        """Something has come."""
        if self._seen < 0:
            self._seen = 0
            self._deadline = time.perf_counter() + PATIENCE_SECONDS
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        count = self._count()
        if count > self._seen and count < self._largest and time.perf_counter() < self._deadline:
            self._seen = count
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._seen = -1
            self._flush()


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

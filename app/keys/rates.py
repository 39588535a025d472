"""How many requests a key and a tenant may make in a second: of this process, and where there is a Redis of all.

Each process has a bucket that fills at the rate and holds a second's worth, for each key and tenant. What the others
let through in the present second is told through Redis a few times a second, in the background: no request waits
for it, and for so long each process lets through what it knows of. While Redis is away, each counts for itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import NoReturn, Protocol

from app.errors import TooManyRequests
from app.http.caller import Caller

SHARE_SECONDS = 0.2
LARGEST = 50_000
"""Of keys and tenants that are kept in mind; full buckets are forgotten first."""
KEPT_SECONDS = 5

logger = logging.getLogger(__name__)


class Rates:
    """Lets requests through up to a rate.

    Args:
        per_key: requests in a second of each key (or token); 0 for no limit.
        per_tenant: of all keys of a tenant together.
        clock: monotonic seconds.
        wall: wall-clock seconds, which processes count by.
    """

    def __init__(
        self,
        per_key: float,
        per_tenant: float,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._per_key, self._per_tenant, self._clock, self._wall = per_key, per_tenant, clock, wall
        self._buckets: dict[str, tuple[float, float]] = {}
        self.window = 0
        self.own: Counter[str] = Counter()
        self.others: dict[str, int] = {}

    def take(self, caller: Caller) -> None:
        """Let one request through.

        Raises:
            TooManyRequests: it is one too many.
        """
        limits = [("key", caller.key or caller.name, self._per_key), ("tenant", caller.tenant, self._per_tenant)]
        counted = [(f"{what}:{name}", what, rate) for what, name, rate in limits if rate > 0]
        self._turn()
        for name, what, rate in counted:
            if self._level(name, rate) < 1 or self.own[name] + self.others.get(name, 0) >= max(rate, 1):
                _refuse(what, rate)
        now = self._clock()
        for name, _, rate in counted:
            self._buckets[name] = (self._level(name, rate) - 1, now)
            self.own[name] += 1
        if len(self._buckets) > LARGEST:
            self._forget()

    def _turn(self) -> None:
        """Begin to count anew where another second has begun."""
        window = int(self._wall())
        if window != self.window:
            self.window, self.own, self.others = window, Counter(), {}

    def _level(self, name: str, rate: float) -> float:
        most = max(rate, 1.0)
        level, since = self._buckets.get(name, (most, 0.0))
        return min(most, level + (self._clock() - since) * rate)

    def _forget(self) -> None:
        """Drop what has been left alone for a second: its bucket is full."""
        before = self._clock() - 1 / min(rate for rate in (self._per_key, self._per_tenant, 1.0) if rate > 0)
        self._buckets = {name: bucket for name, bucket in self._buckets.items() if bucket[1] > before}


def _refuse(what: str, rate: float) -> NoReturn:
    raise TooManyRequests(f"this {what} may make {rate:g} requests a second", retry_after=max(1, round(1 / rate)))


class Counts(Protocol):
    """Where processes tell one another what they have let through."""

    async def add(self, window: int, counts: dict[str, int]) -> dict[str, int]:
        """Add to a window's counts; gives them, of all processes."""
        ...


class RedisCounts:
    """Counts in Redis, which forgets them by itself."""

    def __init__(self, url: str) -> None:
        from redis.asyncio import Redis

        self._redis = Redis.from_url(url, socket_timeout=1.0, socket_connect_timeout=1.0)

    async def add(self, window: int, counts: dict[str, int]) -> dict[str, int]:
        """Add to a window's counts; gives them, of all processes."""
        if not counts:
            return {}
        key = f"steward:requests:{window}"
        async with self._redis.pipeline(transaction=False) as pipeline:
            for name, number in counts.items():
                pipeline.hincrby(key, name, number)
            pipeline.expire(key, KEPT_SECONDS)
            totals = await pipeline.execute()
        return dict(zip(counts, (int(total) for total in totals), strict=False))

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


async def share(rates: Rates, counts: Counts, seconds: float = SHARE_SECONDS) -> None:
    """Tell other processes what this one lets through, and hear of them, every so often, for ever."""
    told: Counter[str] = Counter()
    window = 0
    while True:
        await asyncio.sleep(seconds)
        if rates.window != window:
            window, told = rates.window, Counter()
        own = Counter(rates.own)
        try:
            totals = await counts.add(window, {name: number - told[name] for name, number in own.items()})
        except Exception as error:  # noqa: BLE001 - whatever Redis' client makes of it: each counts for itself
            logger.warning("requests are counted by each process alone: %s", error)
            continue
        told = own
        if rates.window == window:
            rates.others = {name: total - told[name] for name, total in totals.items()}

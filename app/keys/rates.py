"""How many requests a key and a tenant may make in a second: of this process, and where there is a Redis of all.

Each process has a bucket that fills at the rate and holds a second's worth, for each key and tenant. What the others
let through is learned through Redis a few times a second, in the background, and taken out of the bucket: no request
waits for it, and over a few seconds all processes together let through the rate. While Redis is away, each counts for
itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NoReturn, Protocol

from app.errors import TooManyRequests
from app.http.caller import Caller

SHARE_SECONDS = 0.2
LARGEST = 50_000
"""Of keys and tenants that are kept in mind; full buckets are forgotten first."""
KEPT_SECONDS = 60

logger = logging.getLogger(__name__)


class Rates:
    """Lets requests through up to a rate.

    Args:
        per_key: requests in a second of each key (or token); 0 for no limit.
        per_tenant: of all keys of a tenant together.
        clock: monotonic seconds.
    """

    def __init__(self, per_key: float, per_tenant: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates, self.clock = {"key": per_key, "tenant": per_tenant}, clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._fresh: Counter[str] = Counter()

    def take(self, caller: Caller) -> None:
        """Let one request through.

        Raises:
            TooManyRequests: it is one too many.
        """
        whose = {"key": caller.key or caller.name, "tenant": caller.tenant}
        counted = [(f"{what}:{name}", what) for what, name in whose.items() if self._rates[what] > 0]
        for name, what in counted:
            if self._level(name) < 1:
                _refuse(what, self._rates[what])
        now = self.clock()
        for name, _ in counted:
            self._buckets[name] = (self._level(name) - 1, now)
            self._fresh[name] += 1
        if len(self._buckets) > LARGEST:
            self._forget()

    def fresh(self) -> Counter[str]:
        """How many were let through since this was asked for last."""
        found, self._fresh = self._fresh, Counter()
        return found

    def learn(self, others: Mapping[str, tuple[int, float]]) -> None:
        """Take out of buckets what other processes let through: up to a second's worth more than is there.

        Args:
            others: how many, and since when; of a time in which a bucket fills more than once that share counts which
                has not been filled up again.
        """
        now = self.clock()
        for name, (number, since) in others.items():
            filled = (now - since) * self._rate(name) / self._most(name)
            level = self._level(name) - number / max(filled, 1.0)
            self._buckets[name] = (max(level, -self._most(name)), now)

    def _rate(self, name: str) -> float:
        return self._rates[name.partition(":")[0]]

    def _most(self, name: str) -> float:
        return max(self._rate(name), 1.0)

    def _level(self, name: str) -> float:
        level, since = self._buckets.get(name, (self._most(name), 0.0))
        return min(self._most(name), level + (self.clock() - since) * self._rate(name))

    def _forget(self) -> None:
        """Drop what has been left alone until its bucket was full."""
        before = self.clock() - 2 / min(rate for rate in (*self._rates.values(), 1.0) if rate > 0)
        self._buckets = {name: bucket for name, bucket in self._buckets.items() if bucket[1] > before}


def _refuse(what: str, rate: float) -> NoReturn:
    raise TooManyRequests(f"this {what} may make {rate:g} requests a second", retry_after=max(1, round(1 / rate)))


class Counts(Protocol):
    """Where processes learn from one another what they have let through."""

    async def add(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add to counts; gives their totals, of all processes. Those that nobody adds to for a while begin anew."""
        ...


class RedisCounts:
    """Counts in Redis, which forgets them by itself."""

    def __init__(self, url: str) -> None:
        from redis.asyncio import Redis

        self._redis = Redis.from_url(url, socket_timeout=1.0, socket_connect_timeout=1.0)

    async def add(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add to counts; gives their totals, of all processes."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            for name, number in counts.items():
                pipeline.incrby(f"steward:requests:{name}", number)
                pipeline.expire(f"steward:requests:{name}", KEPT_SECONDS)
            totals = (await pipeline.execute())[::2]
        return dict(zip(counts, map(int, totals), strict=True))

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._redis.aclose()


class Sharing:
    """What a process has told the others, and what it knows of them."""

    def __init__(self, rates: Rates, counts: Counts) -> None:
        self._rates, self._counts = rates, counts
        self._own: Counter[str] = Counter()
        self._last: dict[str, tuple[int, float]] = {}

    async def once(self) -> None:
        """Tell what was let through since the last time, and learn what the others have."""
        self._own += self._rates.fresh()
        if not self._own:
            return
        try:
            totals = await self._counts.add(self._own)
        except Exception as error:  # noqa: BLE001 - whatever Redis' client makes of it: each counts for itself
            logger.warning("requests are counted by each process alone: %s", error)
            return
        last, now = self._last, self._rates.clock()
        known = {name: last[name] for name in totals if name in last}
        others = {name: max(totals[name] - total - self._own[name], 0) for name, (total, _) in known.items()}
        self._rates.learn({name: (number, known[name][1]) for name, number in others.items()})
        self._last = (last if len(last) < LARGEST else {}) | {name: (total, now) for name, total in totals.items()}
        self._own.clear()


async def share(rates: Rates, counts: Counts, seconds: float = SHARE_SECONDS) -> None:
    """Share what processes let through, every so often, for ever."""
    sharing = Sharing(rates, counts)
    while True:
        await asyncio.sleep(seconds)
        await sharing.once()

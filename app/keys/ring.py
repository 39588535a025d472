"""Cached keys of a process, and rate limits of callers."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.database.engine import Database
from app.database.tables import Key, RunToken
from app.errors import TooManyRequests
from app.http.caller import UNLIMITED, Caller, Quotas, granted_scopes
from app.http.pagination import PageRequest, Slice, paginate

# Rate limits per key and tenant, over this process or, with Redis, over all processes.
#
# Each process has a token bucket per key and tenant, with a second's worth of requests. Requests of other processes
# are read from Redis a few times a second, in the background, and taken out of the bucket: no request
# waits for it, and over a few seconds all processes together keep to the rate. Without Redis each process counts for
# itself.


SHARE_SECONDS = 0.2
LARGEST = 50_000
"""Largest number of buckets; full ones are dropped first."""
KEPT_SECONDS = 60

logger = logging.getLogger(__name__)


class Rates:
    """Rate limits by token buckets.

    Args:
        per_key: requests per second of each key or token; 0: unlimited.
        per_tenant: requests per second of all keys of a tenant; 0: unlimited.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, per_key: float, per_tenant: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates, self.clock = {"key": per_key, "tenant": per_tenant}, clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._fresh: Counter[str] = Counter()

    def take(self, caller: Caller) -> None:
        """Count one request of a caller; raises TooManyRequests if it exceeds a rate."""
        whose = {"key": caller.key or caller.name, "tenant": caller.tenant}
        counted = [(f"{what}:{name}", what) for what, name in whose.items() if self._rates[what] > 0]
        for name, what in counted:
            if self._level(name) < 1:
                rate = self._rates[what]
                message = f"this {what} is limited to {rate:g} requests a second"
                raise TooManyRequests(message, "requests", retry_after=max(1, round(1 / rate)))
        now = self.clock()
        for name, _ in counted:
            self._buckets[name] = (self._level(name) - 1, now)
            self._fresh[name] += 1
        if len(self._buckets) > LARGEST:
            # Drop buckets that are full again
            before = self.clock() - 2 / min(rate for rate in (*self._rates.values(), 1.0) if rate > 0)
            self._buckets = {name: bucket for name, bucket in self._buckets.items() if bucket[1] > before}

    def fresh(self) -> Counter[str]:
        """Number of admitted requests by key and tenant since the last call."""
        result, self._fresh = self._fresh, Counter()
        return result

    def learn(self, others: Mapping[str, tuple[int, float]]) -> None:
        """Subtract other processes' requests from the buckets, down to minus one second's worth.

        Args:
            others: by key or tenant, the number of requests and when their counting began (by ``clock``); of a period
                longer than a bucket needs to fill, only a proportional part counts.
        """
        now = self.clock()
        for name, (number, since) in others.items():
            filled = (now - since) * self._rate(name) / self._highest_rate(name)
            level = self._level(name) - number / max(filled, 1.0)
            self._buckets[name] = (max(level, -self._highest_rate(name)), now)

    def _rate(self, name: str) -> float:
        return self._rates[name.partition(":")[0]]

    def _highest_rate(self, name: str) -> float:
        return max(self._rate(name), 1.0)

    def _level(self, name: str) -> float:
        level, since = self._buckets.get(name, (self._highest_rate(name), 0.0))
        return min(self._highest_rate(name), level + (self.clock() - since) * self._rate(name))


class Counts(Protocol):
    """Store of admitted requests that processes share."""

    async def add(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add numbers of requests by key and tenant, and return all processes' totals; unused ones expire."""
        ...


class RedisCounts:
    """Counts in Redis, which expire after 60 s without additions."""

    def __init__(self, url: str) -> None:
        from redis.asyncio import Redis

        self._redis = Redis.from_url(url, socket_timeout=1.0, socket_connect_timeout=1.0)

    async def add(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add numbers of requests by key and tenant, and return all processes' totals; raises Redis' errors."""
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
    """Exchange of counts of admitted requests between this process and the others."""

    def __init__(self, rates: Rates, counts: Counts) -> None:
        self._rates, self._counts = rates, counts
        self._own: Counter[str] = Counter()
        self._last: dict[str, tuple[int, float]] = {}

    async def once(self) -> None:
        """Publish this process's new requests, and subtract the others' from the buckets; errors are logged."""
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
    """Share counts every ``seconds`` until cancelled."""
    sharing = Sharing(rates, counts)
    while True:
        await asyncio.sleep(seconds)
        await sharing.once()


# SQL queries on keys and run tokens.


class Fingerprint(NamedTuple):
    """Number of all keys and of revoked ones, which changes when a key is created or revoked."""

    created: int
    revoked: int


# Built once, as it runs twice a second; two counts, which SQLite answers from indexes without reading rows.
_COUNT = select(func.count()).select_from(Key)
_FINGERPRINT = select(_COUNT.scalar_subquery(), _COUNT.where(Key.revoked_at.is_not(None)).scalar_subquery())


def fingerprint(session: Session) -> Fingerprint:
    """The numbers of keys and of revoked keys of all tenants, which tell whether a cache of keys is outdated."""
    return Fingerprint(*session.execute(_FINGERPRINT).one())


def valid(session: Session) -> Sequence[Key]:
    """All keys that aren't revoked, including expired ones."""
    return session.scalars(select(Key).where(Key.revoked_at.is_(None))).all()


def add(session: Session, row: Key | RunToken) -> None:
    """Insert a key or token and flush; raises IntegrityError if the run was deleted."""
    session.add(row)
    session.flush()


def find(session: Session, tenant: str, key: str) -> Key | None:
    """A tenant's key by id; None if there is none."""
    return session.scalar(select(Key).where(Key.tenant == tenant, Key.id == key))


def list_keys(session: Session, tenant: str, request: PageRequest) -> Slice[Key]:
    """One page of a tenant's keys, newest first; raises Invalid for a foreign cursor."""
    statement = select(Key).where(Key.tenant == tenant)
    return paginate(session, statement, [Key.created_at, Key.id], request, descending=True)


# Each process caches the valid keys and refreshes them twice a second, not per request.


POLL_SECONDS = 0.6
OLDEST_SECONDS = 0.9
"""Largest age of the cache for a request, so that a revocation takes effect within a second."""
UNKNOWN_SECONDS = 0.1
"""Shortest time between look-ups because of unknown keys."""


class Entry(NamedTuple):
    """A valid key: its caller, the SHA-256 of its secret, and its expiry (None: never)."""

    caller: Caller
    digest: str
    expires_at: datetime | None

    @property
    def has_expired(self) -> bool:
        """Whether the key has expired."""
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)


Admitted = dict[tuple[str, str, bytes | None, bytes | None], Entry]
"""Admitted keys by method, route, and the headers `Authorization` and `Host`."""


class KeyRing:
    """Cache of all valid keys, refreshed in the background by `poll`, else on demand.

    Without the database the cached keys stay valid, as none can be revoked meanwhile.

    Attributes:
        any: whether a key was ever created.
        admitted: cache of admitted requests; replaced whenever a key is created or revoked.
    """

    def __init__(
        self, database: Database, quotas: Quotas = UNLIMITED, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database, self._quotas, self._clock = database, quotas, clock
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keys")
        self._looking: dict[asyncio.AbstractEventLoop, asyncio.Future[None]] = {}
        self._fingerprint: Fingerprint | None = None
        self.any = False
        self._entries: dict[str, Entry] = {}
        self.admitted: Admitted = {}
        self._checked = 0.0

    def get(self, key: str) -> Entry | None:
        """The entry of a valid key by id; None if unknown."""
        return self._entries.get(key)

    def holds(self, key: str | None) -> bool:
        """Whether a key is still valid; True for None, which stands for another credential."""
        entry = None if key is None else self._entries.get(key)
        return key is None or (entry is not None and not entry.has_expired)

    def is_older(self, seconds: float) -> bool:
        """Whether the cache is older than ``seconds``."""
        return self._fingerprint is None or self._clock() - self._checked > seconds

    async def look(self) -> None:
        """Refresh the cache in a thread, once for all waiting coroutines.

        Raises:
            SQLAlchemyError: the database is unavailable, and the cache empty.
        """
        loop = asyncio.get_running_loop()
        looking = self._looking.get(loop)
        if looking is None:
            looking = self._looking[loop] = loop.run_in_executor(self._thread, self.refresh)
            looking.add_done_callback(lambda _: self._looking.pop(loop, None))
        await asyncio.shield(looking)

    async def look_again(self) -> None:
        """Refresh the cache with keys created until now, at most ten times per second. Raises SQLAlchemyError if the
        database is unavailable and the cache empty."""
        moment = self._clock()
        while self._checked < moment:
            await asyncio.sleep(max(0.0, self._checked + UNKNOWN_SECONDS - self._clock()))
            if self._checked < moment:
                await self.look()

    def refresh(self) -> None:
        """Refresh the cache, blocking; raises SQLAlchemyError if the database is unavailable and the cache empty."""
        with self._lock:
            begun = self._clock()  # before reading: commits during it may be missed
            try:
                self._read()
            except SQLAlchemyError as error:
                if self._fingerprint is None:
                    raise
                logger.warning("can't look through the keys: %s", error)
                begun = self._clock()
            self._checked = begun

    def _read(self) -> None:
        with self._database.reading() as session:
            result = fingerprint(session)
            if result == self._fingerprint:
                return
            rows = valid(session)
        self._entries = {row.id: self._entry(row) for row in rows}
        self.any = result.created > 0
        self.admitted = {}  # last, because it depends on the entries
        self._fingerprint = result

    def _entry(self, row: Key) -> Entry:
        caller = Caller(row.tenant, granted_scopes(row.scopes), f"key:{row.id}", row.id, quotas=self._quotas)
        return Entry(caller, row.digest, row.expires_at)

    async def poll(self, seconds: float = POLL_SECONDS) -> None:
        """Refresh the cache every ``seconds`` until cancelled; errors are logged."""
        while True:
            try:
                await self.look()
            except SQLAlchemyError as error:
                logger.warning("can't look through the keys: %s", error)
            except Exception:  # an error must not end the polling
                logger.exception("looking through the keys failed")
            await asyncio.sleep(seconds)

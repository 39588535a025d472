"""Keys as a process knows them, and the rates of their callers."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn, Protocol, cast

from sqlalchemy import CursorResult, func, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.database.engine import Database
from app.database.tables import Key, RunToken
from app.errors import TooManyRequests
from app.http.caller import UNLIMITED, Caller, Quotas, allowed
from app.http.pagination import PageRequest, Slice, paginate

# How many requests a key and a tenant may make in a second: of this process, and where there is a Redis of all.
#
# Each process has a bucket that fills at the rate and holds a second's worth, for each key and tenant. What the others
# let through is learned through Redis a few times a second, in the background, and taken out of the bucket: no request
# waits for it, and over a few seconds all processes together let through the rate. While Redis is away, each counts for
# itself.


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


# SQL of keys and run tokens.


class Fingerprint(NamedTuple):
    """How many keys were ever made, and how many are revoked: it differs whenever a key was made or revoked."""

    made: int
    revoked: int


# Made once, as it is asked twice a second; two counts of rows, for which SQLite reads no row where an index will do.
_COUNT = select(func.count()).select_from(Key)
_FINGERPRINT = select(_COUNT.scalar_subquery(), _COUNT.where(Key.revoked_at.is_not(None)).scalar_subquery())


def fingerprint(session: Session) -> Fingerprint:
    """Of all keys that there are."""
    return Fingerprint(*session.execute(_FINGERPRINT).one())


def valid(session: Session) -> Sequence[Key]:
    """All keys that aren't revoked; some of them may have expired."""
    return session.scalars(select(Key).where(Key.revoked_at.is_(None))).all()


def add(session: Session, row: Key | RunToken) -> None:
    """A new key or token."""
    session.add(row)
    session.flush()


def find(session: Session, tenant: str, key: str) -> Key | None:
    """One key of a tenant; None if it has none of this id."""
    return session.scalar(select(Key).where(Key.tenant == tenant, Key.id == key))


def listed(session: Session, tenant: str, request: PageRequest) -> Slice[Key]:
    """A tenant's keys, newest first."""
    statement = select(Key).where(Key.tenant == tenant)
    return paginate(session, statement, [Key.created_at, Key.id], request, descending=True)


def every(session: Session) -> Sequence[Key]:
    """The keys of all tenants, for who runs the service."""
    return session.scalars(select(Key).order_by(Key.tenant, Key.created_at, Key.id)).all()


def revoke(session: Session, tenant: str | None, key: str, now: datetime) -> bool:
    """Revoke a key, of any tenant with None; whether it was valid until now."""
    statement = update(Key).where(Key.id == key, Key.revoked_at.is_(None)).values(revoked_at=now)
    if tenant is not None:
        statement = statement.where(Key.tenant == tenant)
    statement = statement.execution_options(synchronize_session=False)
    return cast("CursorResult[Any]", session.execute(statement)).rowcount == 1


def run_tokens(session: Session, identifiers: Sequence[str]) -> Sequence[RunToken]:
    """The tokens of these ids."""
    return session.scalars(select(RunToken).where(RunToken.id.in_(identifiers))).all()


# The keys that are valid, in the memory of each process: looked through twice a second, never for each request.


POLL_SECONDS = 0.6
OLDEST_SECONDS = 0.9
"""What is known may be this old; beyond it a request looks again itself, so that what is revoked ends in a second."""
UNKNOWN_SECONDS = 0.1
"""An unknown key is looked for at most this often."""


class Entry(NamedTuple):
    """A valid key, and who calls with it."""

    caller: Caller
    digest: str
    expires_at: datetime | None

    @property
    def has_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)


Admitted = dict[tuple[str, str, bytes | None, bytes | None], Entry]
"""Who was let in, by method, route, and the headers `Authorization` and `Host` as they were sent."""


class KeyRing:
    """All valid keys. They are kept up to date in the background while `poll` runs, and else by who asks.

    While the database is away, what was known last holds on: nothing can be revoked then, either.

    Attributes:
        any: whether there ever was a key, as far as is known.
        admitted: who was let in; another dictionary whenever a key was made or revoked.
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
        """A valid key, as far as it is known."""
        return self._entries.get(key)

    def holds(self, key: str | None) -> bool:
        """Whether a caller who was let in with this key would be again; one without a key was let in otherwise."""
        entry = None if key is None else self._entries.get(key)
        return key is None or (entry is not None and not entry.has_expired)

    def is_older(self, seconds: float) -> bool:
        """Whether what is known is older than that."""
        return self._fingerprint is None or self._clock() - self._checked > seconds

    async def look(self) -> None:
        """Look through the keys, once for all who wait.

        Raises:
            SQLAlchemyError: the database is away, and nothing was known yet.
        """
        loop = asyncio.get_running_loop()
        looking = self._looking.get(loop)
        if looking is None:
            looking = self._looking[loop] = loop.run_in_executor(self._thread, self.refresh)
            looking.add_done_callback(lambda _: self._looking.pop(loop, None))
        await asyncio.shield(looking)

    async def look_again(self) -> None:
        """Look for what was made until now: it may be a moment old, and of another process.

        Whoever asks for keys that there aren't waits for it, and has the database asked ten times a second at most.
        """
        moment = self._clock()
        while self._checked < moment:
            await asyncio.sleep(max(0.0, self._checked + UNKNOWN_SECONDS - self._clock()))
            if self._checked < moment:
                await self.look()

    def refresh(self) -> None:
        """The same, in a thread that may wait."""
        with self._lock:
            begun = self._clock()  # before the reading: what is committed during it may be missed
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
            found = fingerprint(session)
            if found == self._fingerprint:
                return
            rows = valid(session)
        self._entries = {row.id: self._entry(row) for row in rows}
        self.any = found.made > 0
        self.admitted = {}  # after what it follows from
        self._fingerprint = found

    def _entry(self, row: Key) -> Entry:
        caller = Caller(row.tenant, allowed(row.scopes), f"key:{row.id}", row.id, quotas=self._quotas)
        return Entry(caller, row.digest, row.expires_at)

    async def poll(self, seconds: float = POLL_SECONDS) -> None:
        """Look every so often, for ever."""
        while True:
            try:
                await self.look()
            except SQLAlchemyError as error:
                logger.warning("can't look through the keys: %s", error)
            except Exception:  # a defect must not end the looking
                logger.exception("looking through the keys failed")
            await asyncio.sleep(seconds)

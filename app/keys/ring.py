"""The keys that are valid, in the memory of each process: looked through twice a second, never for each request."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from app.database.engine import Database
from app.database.tables import Key
from app.http.caller import UNLIMITED, Caller, Quotas, allowed
from app.keys import repository
from app.keys.repository import Fingerprint

POLL_SECONDS = 0.6
OLDEST_SECONDS = 0.9
"""What is known may be this old; beyond it a request looks again itself, so that what is revoked ends in a second."""
UNKNOWN_SECONDS = 0.1
"""An unknown key is looked for at most this often."""

logger = logging.getLogger(__name__)


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
            found = repository.fingerprint(session)
            if found == self._fingerprint:
                return
            rows = repository.valid(session)
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

"""Tokens of runs, as a process keeps them: read from the database when they are first seen."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from app.database.engine import Database
from app.keys import repository

LARGEST_CACHE = 100_000


class Token(NamedTuple):
    """A run's token."""

    run: str
    tenant: str
    digest: str
    key: str | None


class RunTokens:
    """Tokens by id. Those that aren't known are looked up one at a time, however many are asked for:
    whoever makes them up keeps others waiting who are new, and the database not busy."""

    def __init__(self, database: Database, size: int = LARGEST_CACHE) -> None:
        self._database, self._size = database, size
        self._known: OrderedDict[str, Token] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="run-tokens")

    async def get(self, identifier: str) -> Token | None:
        """The token of that id, if there is one."""
        found = self._known.get(identifier)
        if found is None:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._read, identifier)
        return found

    def _read(self, identifier: str) -> Token | None:
        with self._database.reading() as session:
            rows = repository.run_tokens(session, [identifier])
        for row in rows:
            self._known[row.id] = Token(row.run_id, row.tenant, row.digest, row.key_id)
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        return self._known.get(identifier)

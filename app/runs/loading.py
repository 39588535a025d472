"""Runs that no report has come for lately: read together, as many as are asked for while others are being read.

After a start, or when many runs begin at once, each of them is asked for at the same time, and one query for all costs
little more than for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from app.database.engine import Database
from app.decisions.shadow import Shadows
from app.http.batching import LARGEST_BATCH
from app.runs import repository
from app.runs.live import Live, from_loaded
from app.runs.repository import Loaded

CONCURRENT = 2  # readings: a long queue takes a while to be restored, and need not hold up everybody
Wanted = dict[str, asyncio.Future[Live | None]]


class Loader:
    """Reads runs for an event loop. What is given was read after it was asked for."""

    def __init__(self, database: Database) -> None:
        self._database, self._shadows = database, Shadows(database)
        self._wanted: Wanted = {}
        self._reading = 0
        self._threads = ThreadPoolExecutor(CONCURRENT, thread_name_prefix="run-loader")

    async def get(self, run: str) -> Live | None:
        """A run as it stands, whosever it is; None where there is none."""
        loop = asyncio.get_running_loop()
        wanted = self._wanted.get(run)
        if wanted is None:
            wanted = self._wanted[run] = loop.create_future()
            if len(self._wanted) == 1:
                loop.call_soon(self._begin)
        return await asyncio.shield(wanted)  # others may wait for it, too

    def _begin(self) -> None:
        while self._wanted and self._reading < CONCURRENT:
            batch = {run: self._wanted.pop(run) for run in list(self._wanted)[:LARGEST_BATCH]}
            self._reading += 1
            reading = asyncio.get_running_loop().run_in_executor(self._threads, self._read, list(batch))
            reading.add_done_callback(partial(self._end, batch))

    def _end(self, batch: Wanted, done: asyncio.Future[dict[str, Live | Exception]]) -> None:
        self._reading -= 1
        failure = done.exception()
        found = {} if failure else done.result()
        for run, wanted in batch.items():
            one = failure or found.get(run)
            if isinstance(one, BaseException):
                wanted.set_exception(one)
            else:
                wanted.set_result(one)
        self._begin()

    def _read(self, runs: Sequence[str]) -> dict[str, Live | Exception]:
        with self._database.reading() as session:
            loaded = repository.load_all(session, runs)
        return {one.run.id: self._restored(one) for one in loaded}

    def _restored(self, loaded: Loaded) -> Live | Exception:
        """The run; or what is wrong with it, which is not the others' trouble."""
        run = loaded.run
        try:
            shadow = None if run.shadow_version is None else self._shadows.get(run.workload_id, run.shadow_version)
            return from_loaded(loaded, shadow)
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
            return error

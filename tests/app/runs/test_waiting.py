"""Reports wait in bounded number and for a bounded time; what is too much is refused, until it no longer is."""

from __future__ import annotations

import asyncio
import threading

import pytest

from app.database.engine import Database
from app.errors import Unavailable
from app.http.batching import LARGEST_BATCH
from app.runs import deciding, waiting
from app.runs.waiting import LONGEST_SECONDS, MOST, Waiting
from tests.app.runs.reporting import TENANT, register, report, reporter, start


def test_no_more_wait_than_may() -> None:
    here = Waiting(lambda: 0.0)
    taken = [here.enter() for _ in range(MOST)]
    with pytest.raises(Unavailable, match="1,024 reports are queued") as refused:
        here.enter()
    assert refused.value.retry_after == waiting.RETRY_SECONDS
    here.leave(taken[5])
    here.enter()


def test_nobody_joins_those_that_wait_for_long_but_in_the_place_of_a_batch() -> None:
    now = 0.0
    here = Waiting(lambda: now)
    taken = [here.enter() for _ in range(LARGEST_BATCH - 1)]
    now = 2 * LONGEST_SECONDS
    taken.append(here.enter())  # what the disk holds up is one batch, and others may come
    with pytest.raises(Unavailable):
        here.enter()
    for number in taken[:-1]:
        here.leave(number)
    more = [here.enter() for _ in range(LARGEST_BATCH)]
    assert len(more) == LARGEST_BATCH


def test_a_flood_is_refused_in_part_and_what_is_taken_is_written_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MOST", LARGEST_BATCH + 6)
    register(database)
    runs = [start(database) for _ in range(LARGEST_BATCH + 16)]
    taker, disk, commit = reporter(database), threading.Event(), deciding._commit

    def slowly(*values: object) -> set[str]:
        disk.wait(60)
        return commit(*values)  # type: ignore[arg-type]

    monkeypatch.setattr(deciding, "_commit", slowly)

    async def go() -> None:
        calls = [asyncio.ensure_future(taker.report(TENANT, run, 0, report())) for run in runs]
        await asyncio.sleep(0)
        disk.set()
        result = await asyncio.gather(*calls, return_exceptions=True)
        refused = [run for run, one in zip(runs, result, strict=True) if isinstance(one, Unavailable)]
        assert len(refused) == 10
        assert [one[0] for one in result if isinstance(one, tuple)] == [201] * (LARGEST_BATCH + 6)
        again = await asyncio.gather(*(taker.report(TENANT, run, 0, report()) for run in refused))
        assert {status for status, _ in again} == {201}

    asyncio.run(go())

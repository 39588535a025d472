"""Runs are read together, each by what it is: none is another's trouble, and nobody gets what was read too early."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import event, update

from app.database.engine import Database
from app.database.tables import Run
from app.runs import repository
from app.runs.loading import Loader
from tests.app.runs.reporting import register, report, reporter, start


def counted(database: Database) -> list[str]:
    """Queries for runs, as they come."""
    seen: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if "FROM runs" in statement:
            seen.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    return seen


def test_many_runs_take_one_query(any_database: Database) -> None:
    register(any_database)
    runs = [start(any_database) for _ in range(40)]
    loader, seen = Loader(any_database), counted(any_database)

    async def go() -> list[str | None]:
        found = await asyncio.gather(*(loader.get(run) for run in [*runs, "0" * 32, runs[0]]))
        return [None if one is None else one.id for one in found]

    assert asyncio.run(go()) == [*runs, None, runs[0]]
    assert len(seen) == 1


def test_a_run_that_can_not_be_restored_fails_alone(database: Database) -> None:
    register(database)
    runs = [start(database) for _ in range(3)]
    with database.session() as session:
        session.execute(update(Run).where(Run.id == runs[1]).values(state_vector={"no": "row"}))
    loader = Loader(database)

    async def go() -> Sequence[object]:
        return await asyncio.gather(*(loader.get(run) for run in runs), return_exceptions=True)

    first, broken, last = asyncio.run(go())
    assert isinstance(broken, Exception)
    assert [getattr(one, "id", None) for one in (first, last)] == [runs[0], runs[2]]


def test_what_is_asked_for_during_a_reading_is_read_after_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(database)
    run, disk, begun = start(database), threading.Event(), threading.Event()
    whole = repository.load_all

    def slowly(*given: Any) -> Any:
        found = whole(*given)
        begun.set()
        disk.wait(60)
        return found

    async def go() -> list[int]:
        loader = Loader(database)
        monkeypatch.setattr(repository, "load_all", slowly)
        early = asyncio.ensure_future(loader.get(run))
        await asyncio.to_thread(begun.wait, 60)
        monkeypatch.setattr(repository, "load_all", whole)
        await reporter(database).report("default", run, 0, report())
        late = asyncio.ensure_future(loader.get(run))
        await asyncio.sleep(0)
        disk.set()
        found = [await early, await late]
        return [-1 if one is None else one.following for one in found]

    assert asyncio.run(go()) == [0, 1]


def test_a_caller_who_gives_up_leaves_the_others_their_run(database: Database) -> None:
    register(database)
    run = start(database)

    async def go() -> str | None:
        loader = Loader(database)
        given_up, stays = (asyncio.ensure_future(loader.get(run)) for _ in range(2))
        await asyncio.sleep(0)
        given_up.cancel()
        found = await stays
        return None if found is None else found.id

    assert asyncio.run(go()) == run

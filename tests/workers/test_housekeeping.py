"""A worker's timer: it says that it is there, brings lost jobs back, and forgets keys that nobody repeats."""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app import queue
from app.database import leases
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import IdempotencyKey, Worker
from app.drift import service as drift
from app.jobs import lease
from app.settings import Settings
from tests.app.jobs.test_lease import BEGINNING, make
from tests.servers import wait_until
from workers.housekeeping import Housekeeper


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids announced to the broker."""
    parts: list[str] = []
    monkeypatch.setattr(queue, "_active", [])
    monkeypatch.setattr(queue, "enqueue", lambda _task, identifier: parts.append(identifier))
    return parts


def remember(database: Database, key: str, seconds_ago: float) -> None:
    """Keep an idempotency key."""
    result = utc_now() - timedelta(seconds=seconds_ago)
    with database.session() as session:
        session.add(IdempotencyKey(key=key, claim="c", digest="d", created_at=result))


def keys(database: Database) -> list[str]:
    """Those that are remembered."""
    with database.reading() as session:
        return list(session.scalars(select(IdempotencyKey.key)))


def test_it_is_seen_announces_what_waits_forgets_old_keys_and_signs_off(
    settings: Settings, database: Database, announced: list[str]
) -> None:
    job = make(database, clock=BEGINNING)  # announced long ago, and never started
    announced.clear()
    remember(database, "old", settings.idempotency_seconds + 60)
    remember(database, "young", settings.idempotency_seconds - 60)
    housekeeper = Housekeeper(settings, "worker")
    housekeeper.start()
    wait_until(lambda: keys(database) == ["young"], what="the old key to be forgotten")
    with database.reading() as session:
        assert leases.seen_lately(session, 60.0) == "worker"
    housekeeper.stop()
    assert announced == [job]
    with database.reading() as session:
        assert session.scalars(select(Worker.name)).all() == []


def test_a_database_that_is_away_is_tried_again(
    settings: Settings, database: Database, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep, failures = lease.sweep, [OperationalError("SELECT", {}, Exception("gone"))]

    def fails_first(*arguments: object) -> list[str]:
        if failures:
            raise failures.pop()
        return sweep(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(lease, "sweep", fails_first)
    remember(database, "old", settings.idempotency_seconds + 60)
    housekeeper = Housekeeper(settings.model_copy(update={"sweep_seconds": 0.01}), "worker")
    housekeeper.start()
    wait_until(lambda: keys(database) == [], what="the old key to be forgotten")
    housekeeper.stop()
    assert (failures, announced) == ([], [])


def test_a_part_that_is_broken_ends_neither_the_others_nor_the_next_rounds(
    settings: Settings, database: Database, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Database) -> None:
        raise ValueError("a row that nobody can read")

    monkeypatch.setattr(drift, "step", broken)
    housekeeper = Housekeeper(settings.model_copy(update={"sweep_seconds": 0.01}), "worker")
    housekeeper.start()
    remember(database, "old", settings.idempotency_seconds + 60)
    wait_until(lambda: keys(database) == [], what="the old key to be forgotten")
    job = make(database, clock=BEGINNING)
    announced.clear()
    wait_until(lambda: announced == [job], what="a later round to announce what waits")
    housekeeper.stop()
    assert (keys(database), set(announced)) == ([], {job})


def in_a_child(settings: Settings) -> int:
    """Fork, and write there; the child's exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with Database(settings.database_url, settings).session() as session:
                leases.beat(session, "child")
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, as a worker has
def test_who_is_forked_amid_its_writing_can_write(
    settings: Settings, database: Database, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    amid, beat = threading.Event(), leases.beat

    def slow(*arguments: object) -> None:
        beat(*arguments)  # type: ignore[arg-type]
        if not amid.is_set():
            amid.set()
            time.sleep(0.5)

    monkeypatch.setattr(leases, "beat", slow)
    housekeeper = Housekeeper(settings.model_copy(update={"sqlite_busy_seconds": 1.0}), "worker")
    housekeeper.start()
    assert amid.wait(60)
    assert in_a_child(settings.model_copy(update={"sqlite_busy_seconds": 1.0})) == 0
    housekeeper.stop()

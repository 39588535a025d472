"""Jobs when clocks jump, sweepers race, workers wake too late, and inputs kill whoever takes them up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app import queue
from app.database import base
from app.database import leases as clock
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Job
from app.jobs import lease as leases
from app.jobs.lease import LeaseLost
from app.main import create_app
from app.settings import Settings
from tests.app.jobs.test_lease import make
from workers.tasks.base import RunningJob, perform

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of jobs that were announced."""
    parts: list[str] = []
    monkeypatch.setattr(queue, "enqueue", lambda _task, job: parts.append(job))
    return parts


def jump(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    """This host's clock is another from now on; that of PostgreSQL's host is not."""
    for module in (base, clock):
        monkeypatch.setattr(module, "utc_now", lambda: utc_now() + by)


def state(database: Database, job: str) -> str:
    with database.reading() as session:
        return session.get_one(Job, job).state


@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["ahead", "back"])
def test_a_clock_that_jumps_doubles_no_job(
    any_database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch, by: timedelta
) -> None:
    job = make(any_database, "w")
    current = leases.claim(any_database, job, "first", settings)
    assert current is not None
    jump(monkeypatch, by)
    leases.sweep(any_database, settings)
    other = leases.claim(any_database, job, "second", settings)
    ended = 0
    for lease in filter(None, (current, other)):
        try:
            with any_database.session() as session:
                leases.finish(session, lease, {"model": 1})
            ended += 1
        except LeaseLost:
            pass
    assert (ended, state(any_database, job)) == (1, "succeeded")
    assert other is None or any_database.is_sqlite  # whose clock is this host's
    assert other is None or by > timedelta(0)


def test_a_lease_that_a_jump_back_has_made_long_is_renewed_and_ends(
    any_database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make(any_database, "w")
    assert leases.claim(any_database, job, "gone", settings) is not None
    jump(monkeypatch, -HOUR)
    assert leases.sweep(any_database, settings, is_gone=lambda _: True) == [job]  # its end is known on this host
    assert leases.claim(any_database, job, "second", settings) is not None


def test_two_sweepers_announce_each_lost_job_once(
    any_database: Database, settings: Settings, announced: list[str]
) -> None:
    def later(session: Session) -> datetime:
        return clock.database_time(session) + timedelta(seconds=settings.lease_seconds * 2)

    jobs = [make(any_database, f"w{i}") for i in range(12)]
    for job in jobs:
        assert leases.claim(any_database, job, "lost", settings) is not None
    announced.clear()
    patient = settings.model_copy(update={"requeue_seconds": 3600.0})
    with ThreadPoolExecutor(4) as sweepers:
        swept = list(sweepers.map(lambda _: leases.sweep(any_database, patient, clock=later), range(8)))
    assert sorted(announced) == sorted(jobs)
    assert sorted(job for match in swept for job in match) == sorted(jobs)


def test_a_worker_that_wakes_after_its_lease_writes_nothing(any_database: Database, settings: Settings) -> None:
    def later(session: Session) -> datetime:
        return clock.database_time(session) + timedelta(seconds=settings.lease_seconds * 2)

    job = make(any_database, "w")
    sleeper = leases.claim(any_database, job, "sleeper", settings)
    assert sleeper is not None
    leases.sweep(any_database, settings, clock=later)
    other = leases.claim(any_database, job, "other", settings)
    assert other is not None
    with pytest.raises(LeaseLost):
        leases.progress(any_database, sleeper, 0.9, None, {}, b"a checkpoint of long ago")
    with pytest.raises(LeaseLost), any_database.session() as session:
        leases.finish(session, sleeper, {"model": 9})
    with pytest.raises(LeaseLost):
        leases.fail(any_database, sleeper, {"detail": "too late"})
    with any_database.session() as session:
        leases.finish(session, other, {"model": 1})
    with any_database.reading() as session:
        row = session.get_one(Job, job)
        assert (row.state, row.result, row.checkpoint) == ("succeeded", {"model": 1}, None)


def test_an_input_that_kills_three_workers_fails_its_job(any_database: Database, settings: Settings) -> None:
    """A defect in native code or too little memory: nobody is left to say why."""
    job, other = make(any_database, "poisoned"), make(any_database, "sound")
    for attempt in range(settings.max_attempts):
        assert leases.claim(any_database, job, f"worker-{attempt}", settings) is not None
        leases.sweep(any_database, settings, is_gone=lambda _: True)
    assert settings.max_attempts == 3
    assert leases.claim(any_database, job, "fourth", settings) is None
    assert (state(any_database, job), state(any_database, other)) == ("failed", "queued")
    with any_database.reading() as session:
        error = session.get_one(Job, job).error
    assert error is not None
    assert "its worker was lost 3 times" in error["detail"]


def test_a_defect_is_told_with_its_traceback_to_its_owner_alone(any_database: Database, settings: Settings) -> None:
    job = make(any_database, "poisoned")

    def work(_: RunningJob) -> None:
        raise KeyError("a defect of the kind's")

    perform(any_database, settings, job, work)
    client = TestClient(create_app(settings, any_database))
    error = client.get(f"/jobs/{job}").json()["error"]
    assert error["type"] == "/problems/internal"
    assert "in work" in error["traceback"]
    assert "a defect of the kind's" in error["traceback"]
    assert "Traceback" not in client.get("/").text
    assert "Traceback" not in client.get("/metrics").text

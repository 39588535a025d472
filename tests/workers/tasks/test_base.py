from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app import queue
from app.database.engine import Database
from app.database.tables import Job, Workload
from app.jobs import lease as leases
from app.jobs import repository, service
from app.settings import Settings
from tests.app.jobs.test_lease import make
from tests.servers import wait_until
from workers.estimators.base import TooLittleData
from workers.tasks.base import Cancelled, RunningJob, perform

SETTINGS = Settings(lease_seconds=5, heartbeat_seconds=0.05, progress_seconds=0, checkpoint_seconds=0)


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)


@pytest.fixture
def job_id(any_database: Database) -> str:
    return make(any_database)


def row(database: Database, job_id: str) -> Job:
    with database.reading() as session:
        return session.get_one(Job, job_id)


def checkpoint(database: Database, job_id: str) -> bytes | None:
    with database.reading() as session:
        return session.get_one(Job, job_id).checkpoint


def is_told(job: RunningJob) -> bool:
    """Whether the job knows that it is cancelled."""
    try:
        job.check()
    except Cancelled:
        return True
    return False


def chunks(number: int, each: Callable[[int], None] = lambda _step: None) -> Callable[[RunningJob], None]:
    """Work in chunks, as a training does."""

    def work(job: RunningJob) -> None:
        start = int((job.lease.checkpoint or b"0").decode())
        for step in range(start, number):
            each(step)
            job.progress((step + 1) / number, None, {"step": step + 1}, str(step + 1).encode)
        job.publish(lambda _session: {"agent": number})

    return work


def test_a_job_is_done_and_tells_its_progress(any_database: Database, job_id: str) -> None:
    perform(any_database, SETTINGS, job_id, chunks(3))
    done = row(any_database, job_id)
    assert (done.state, done.result, done.progress, done.attempts) == ("succeeded", {"agent": 3}, 1.0, 1)
    assert checkpoint(any_database, job_id) is None
    with any_database.reading() as session:
        steps = [event.data.get("step") for event in repository.events(session, job_id, 0, 100)]
    assert steps == [None, None, 1, 2, 3, None]


def test_progress_is_told_no_more_often_than_asked_for(any_database: Database, job_id: str) -> None:
    settings = SETTINGS.model_copy(update={"progress_seconds": 100.0})
    perform(any_database, settings, job_id, chunks(50))
    with any_database.reading() as session:
        assert len(repository.events(session, job_id, 0, 100)) == 4  # queued, running, one report, succeeded


def test_a_job_that_somebody_else_holds_is_left_alone(any_database: Database, job_id: str) -> None:
    leases.claim(any_database, job_id, "other", SETTINGS)
    began: list[int] = []
    perform(any_database, SETTINGS, job_id, chunks(3, began.append))
    assert began == []
    assert row(any_database, job_id).owner == "other"


def test_a_worker_told_to_stop_gives_the_job_back_with_its_checkpoint(any_database: Database, job_id: str) -> None:
    signal_sent = threading.Event()
    perform(
        any_database,
        SETTINGS,
        job_id,
        chunks(10, lambda step: signal_sent.set() if step == 4 else None),
        signal_sent.is_set,
    )
    waiting = row(any_database, job_id)
    assert (waiting.state, waiting.attempts) == ("queued", 0)
    assert checkpoint(any_database, job_id) == b"5"
    steps: list[int] = []
    perform(any_database, SETTINGS, job_id, chunks(10, steps.append))
    assert steps == [5, 6, 7, 8, 9]
    assert row(any_database, job_id).state == "succeeded"


def test_a_cancelled_job_stops_at_its_next_chunk(any_database: Database, job_id: str) -> None:
    steps: list[int] = []

    def each(step: int) -> None:
        steps.append(step)
        if step == 2:
            service.cancel(any_database, "default", job_id)

    perform(any_database, SETTINGS, job_id, chunks(100, each))
    assert row(any_database, job_id).state == "cancelled"
    assert steps == [0, 1, 2]


def test_work_without_chunks_is_cancelled_before_it_publishes(any_database: Database, job_id: str) -> None:
    def work(job: RunningJob) -> None:
        service.cancel(any_database, "default", job_id)
        wait_until(lambda: is_told(job), what="a heartbeat to tell of it")
        job.publish(lambda _session: {"model": 1})

    perform(any_database, SETTINGS, job_id, work)
    assert (row(any_database, job_id).state, row(any_database, job_id).result) == ("cancelled", None)


def test_heartbeats_outlast_a_long_chunk(any_database: Database, job_id: str) -> None:
    def expires() -> datetime:
        lease_expires_at = row(any_database, job_id).lease_expires_at
        assert lease_expires_at is not None
        return lease_expires_at

    def work(job: RunningJob) -> None:
        first = expires()
        wait_until(lambda: expires() > first + timedelta(seconds=0.2), what="some heartbeats")
        assert leases.sweep(any_database, SETTINGS, clock=lambda _session: first + timedelta(seconds=0.1)) == []
        job.publish(lambda _session: {"model": 1})

    perform(any_database, SETTINGS, job_id, work)
    assert row(any_database, job_id).state == "succeeded"


def test_too_little_data_fails_with_its_terms(any_database: Database, job_id: str) -> None:
    def work(_job: RunningJob) -> None:
        raise TooLittleData("3 executions at 3 allocations", "1 at 1")

    perform(any_database, SETTINGS, job_id, work)
    error = row(any_database, job_id).error
    assert error is not None
    assert (error["type"], error["status"]) == ("/problems/too-little-data", 422)
    assert "needs 3 executions at 3 allocations; has 1 at 1" in error["detail"]
    assert error["errors"][0]["pointer"] == "/samples"


def test_a_defect_fails_the_job_with_its_reason(any_database: Database, job_id: str) -> None:
    def work(_job: RunningJob) -> None:
        raise ZeroDivisionError("by nothing")

    perform(any_database, SETTINGS, job_id, work)
    failed = row(any_database, job_id)
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error["detail"] == "ZeroDivisionError: by nothing"


def publishing(job: RunningJob) -> None:
    def write(session: Session) -> dict[str, int]:
        session.add(Workload(name="published", kind="iterative", spec={}))
        session.flush()
        return {"agent": 1}

    job.publish(write)


def is_published(database: Database) -> bool:
    with database.reading() as session:
        return session.query(Workload).filter_by(name="published").count() == 1


def test_whoever_has_lost_the_lease_publishes_nothing(any_database: Database, job_id: str) -> None:
    def work(job: RunningJob) -> None:
        leases.sweep(any_database, SETTINGS, lambda _owner: True)
        assert leases.claim(any_database, job_id, "other", SETTINGS) is not None
        publishing(job)

    perform(any_database, SETTINGS, job_id, work)
    assert not is_published(any_database)
    assert row(any_database, job_id).owner == "other"


def test_a_failed_publication_leaves_nothing_behind(any_database: Database, job_id: str) -> None:
    def work(job: RunningJob) -> None:
        def write(session: Session) -> dict[str, int]:
            session.add(Workload(name="published", kind="iterative", spec={}))
            session.flush()
            raise ValueError("half-way")

        job.publish(write)

    perform(any_database, SETTINGS, job_id, work)
    assert not is_published(any_database)
    assert row(any_database, job_id).state == "failed"


def test_a_database_that_comes_back_gets_the_result(
    any_database: Database, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    failures = [OperationalError("COMMIT", {}, Exception("gone")) for _ in range(2)]

    def work(job: RunningJob) -> None:
        def write(session: Session) -> dict[str, int]:
            session.add(Workload(name="published", kind="iterative", spec={}))
            if failures:
                raise failures.pop()
            return {"agent": 1}

        job.publish(write)

    perform(any_database, SETTINGS, job_id, work)
    assert is_published(any_database)
    assert row(any_database, job_id).state == "succeeded"


def test_a_lost_database_fails_no_job(any_database: Database, job_id: str) -> None:
    def work(_job: RunningJob) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    perform(any_database, SETTINGS, job_id, work)
    assert row(any_database, job_id).state == "running"
    assert leases.sweep(any_database, SETTINGS, lambda _owner: True) == [job_id]


def test_a_deleted_workload_ends_its_training_quietly(any_database: Database, job_id: str) -> None:
    def each(step: int) -> None:
        if step == 1:
            with any_database.session() as session:
                session.delete(session.get_one(Workload, row(any_database, job_id).workload_id))

    perform(any_database, SETTINGS, job_id, chunks(5, each))
    with any_database.reading() as session:
        assert session.get(Job, job_id) is None

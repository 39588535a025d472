"""Who goes on with a job that is to stop is ended by the main process, whatever native code it is in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from sqlalchemy.exc import OperationalError

from app import queue
from app.database.engine import Database
from app.database.tables import Job
from app.jobs import lease as leases
from app.jobs import service
from app.processes import children, is_gone
from app.settings import Settings
from tests.app.jobs.test_lease import make
from tests.servers import wait_until
from workers.housekeeping import GRACE_SECONDS, Overdue

TENANT = "default"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); sum(range(10**15))"
"""A process that neither runs another thread nor hears a signal: it holds the interpreter's lock in native code."""


class Timer:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)


@pytest.fixture
def deaf() -> Iterator[tuple[str, str]]:
    """Names of two such children."""
    processes = list[subprocess.Popen[bytes]]()
    try:
        for _ in range(2):
            process = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE)
            processes.append(process)
            assert process.stdout is not None
            process.stdout.readline()
        names = {child.pid: name for name, child in children().items()}
        yield names[processes[0].pid], names[processes[1].pid]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def claim(database: Database, settings: Settings, owner: str, workload: str) -> str:
    """A job that a process holds, and has kept a checkpoint of."""
    job = make(database, workload)
    lease = leases.claim(database, job, owner, settings)
    assert lease is not None
    leases.progress(database, lease, 0.5, None, {}, b"half of it")
    return job


def row(database: Database, job: str) -> Job:
    with database.reading() as session:
        one = session.get_one(Job, job)
        assert one.checkpoint is None or one.checkpoint == b"half of it"
        return one


def test_who_does_not_heed_a_cancel_is_ended_and_nobody_else(
    any_database: Database, settings: Settings, deaf: tuple[str, str]
) -> None:
    first, second = (claim(any_database, settings, owner, owner[-9:]) for owner in deaf)
    elsewhere = claim(any_database, settings, "another host/1/1.00", "elsewhere")
    timer = Timer()
    overdue = Overdue(lambda: False, timer)
    for job in (first, elsewhere):
        service.cancel(any_database, TENANT, job)
    overdue.step(any_database)
    timer.now += GRACE_SECONDS - 0.1
    overdue.step(any_database)
    assert (row(any_database, first).state, is_gone(deaf[0])) == ("running", False)
    timer.now += 0.2
    overdue.step(any_database)
    states = [row(any_database, job).state for job in (first, second, elsewhere)]
    assert states == ["cancelled", "running", "running"]
    assert (is_gone(deaf[0]), is_gone(deaf[1])) == (True, False)


def test_a_worker_that_stops_ends_whoever_goes_on_and_no_attempt_is_counted(
    any_database: Database, settings: Settings, deaf: tuple[str, str]
) -> None:
    first, second = (claim(any_database, settings, owner, owner[-9:]) for owner in deaf)
    service.cancel(any_database, TENANT, second)
    timer = Timer()
    overdue = Overdue(lambda: True, timer)
    overdue.step(any_database)
    assert [is_gone(name) for name in deaf] == [False, False]
    timer.now += GRACE_SECONDS
    overdue.step(any_database)
    assert [is_gone(name) for name in deaf] == [True, True]
    rows = [row(any_database, job) for job in (first, second)]
    assert [(job.state, job.attempts, job.owner) for job in rows] == [("queued", 0, None), ("cancelled", 0, None)]
    assert rows[0].checkpoint == b"half of it"


def test_a_worker_that_stops_without_its_database_ends_them_all_the_same(
    database: Database, settings: Settings, deaf: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> list[str]:
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(leases, "give_back", away)
    monkeypatch.setattr(leases, "cancelling", away)
    timer = Timer()
    overdue = Overdue(lambda: True, timer)
    with pytest.raises(OperationalError):
        overdue.step(database)
    timer.now += GRACE_SECONDS
    overdue.step(database)
    assert [is_gone(name) for name in deaf] == [True, True]


def test_a_process_that_ended_is_no_child_any_more(deaf: tuple[str, str]) -> None:
    (process,) = [child for name, child in children().items() if name == deaf[0]]
    assert isinstance(process, psutil.Process)
    process.kill()
    wait_until(lambda: is_gone(deaf[0]), what="the process to end")
    assert set(children()) & set(deaf) == {deaf[1]}

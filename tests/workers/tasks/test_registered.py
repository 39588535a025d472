"""What a worker does goes by the job that it takes, not by the message that woke it up."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace

import pytest

from app import queue
from app.database.engine import Database
from app.jobs import lease as leases
from app.settings import Settings
from tests.app.jobs.test_lease import make
from workers.celery import celery
from workers.tasks import registered
from workers.tasks.base import RunningJob


@pytest.fixture
def job(settings: Settings, database: Database) -> RunningJob:
    """A fit that is held."""
    lease = leases.claim(database, make(database, "w"), "worker", settings)
    assert lease is not None
    return RunningJob(database, settings, replace(lease, type="fit"))


def find(work: Callable[[RunningJob], None]) -> Callable[[str, str], Callable[[RunningJob], None]]:
    """Stands for what finds the work."""
    return lambda module, function: work if (module, function) == ("trained", "fit") else pytest.fail(module)


def test_work_has_an_end_by_the_type_of_its_job(job: RunningJob, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(registered, "_import_function", find(lambda _: left.append(signal.alarm(1000))))
    registered.do(job)
    assert 3590 <= left[0] <= 3600
    assert signal.alarm(0) == 0


def test_work_that_fails_leaves_no_alarm(job: RunningJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: RunningJob) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(registered, "_import_function", find(broken))
    with pytest.raises(KeyError):
        registered.do(job)
    assert signal.alarm(0) == 0


def test_every_message_there_is_wakes_a_worker() -> None:
    names = {queue.FIT, queue.TRAIN, queue.TRIAL, queue.EVALUATE}
    assert names <= set(celery.tasks)
    assert {celery.tasks[name].acks_late for name in names} == {True}

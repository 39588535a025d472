"""A training that waits for its trials is woken by the last of them, however that one ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app import queue
from app.database.engine import Database
from app.database.tables import Job
from app.jobs import lease as leases
from app.jobs import service, sweeps
from app.jobs.lease import Lease
from tests.app.jobs.test_lease import SETTINGS, after, make

Announced = list[tuple[str, str]]


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> Announced:
    """Tasks and jobs announced to the broker, one by one."""
    results: Announced = []
    monkeypatch.setattr(queue, "enqueue", lambda task, identifier: results.append((task, identifier)))
    monkeypatch.setattr(queue, "enqueue_group", lambda _task, _identifiers: None)
    return results


@pytest.fixture
def training(any_database: Database, announced: Announced) -> str:
    """A training that waits for two trials."""
    job_id = make(any_database)
    lease = leases.claim(any_database, job_id, "w", SETTINGS, after(0))
    assert lease is not None
    openings = [sweeps.Opening("dqn", seed) for seed in (0, 1)]
    assert sweeps.open_trials(any_database, lease, openings, 0.1, b"opened", after(1))
    announced.clear()
    return job_id


def taken(database: Database, trial: str, attempt: int = 0) -> Lease:
    lease = leases.claim(database, trial, "w", SETTINGS, after(100 * attempt + 2))
    assert lease is not None
    return lease


def state(database: Database, job_id: str) -> str:
    with database.reading() as session:
        return session.get_one(Job, job_id).state


def lost_for_good(database: Database, trial: str) -> None:
    for attempt in range(SETTINGS.max_attempts):
        taken(database, trial, attempt)
        leases.sweep(database, SETTINGS, clock=after(100 * attempt + 50))


def lost_and_announced_again(database: Database, trial: str) -> None:
    for attempt in range(SETTINGS.max_attempts):
        taken(database, trial, attempt)
    assert leases.claim(database, trial, "w", SETTINGS, after(100 * SETTINGS.max_attempts)) is None


def failed(database: Database, trial: str) -> None:
    leases.fail(database, taken(database, trial), {"detail": "no"}, after(3))


def cancelled(database: Database, trial: str) -> None:
    service.cancel(database, "default", trial)


def cancelled_at_work(database: Database, trial: str) -> None:
    lease = taken(database, trial)
    service.cancel(database, "default", trial)
    leases.cancel(database, lease, after(3))


def cancelled_and_given_back(database: Database, trial: str) -> None:
    lease = taken(database, trial)
    service.cancel(database, "default", trial)
    leases.release(database, lease, b"half", after(3))


def cancelled_and_lost(database: Database, trial: str) -> None:
    taken(database, trial)
    service.cancel(database, "default", trial)
    leases.sweep(database, SETTINGS, clock=after(50))


WAYS_TO_END = [
    lost_for_good,
    lost_and_announced_again,
    failed,
    cancelled,
    cancelled_at_work,
    cancelled_and_given_back,
    cancelled_and_lost,
]


@pytest.mark.parametrize("end", WAYS_TO_END)
def test_the_last_trial_to_end_wakes_its_training(
    any_database: Database, training: str, announced: Announced, end: Callable[[Database, str], None]
) -> None:
    with any_database.reading() as session:
        first, last = [trial_statuse.job_id for trial_statuse in sweeps.trial_statuses(session, training)]
    outcome = sweeps.Outcome(0.1, -0.5, {}, b"policy")
    assert sweeps.rest(any_database, taken(any_database, first), outcome, b"kept", after(3))
    assert state(any_database, training) == "waiting"
    end(any_database, last)
    assert state(any_database, last) in {"failed", "cancelled"}
    assert state(any_database, training) == "queued"
    assert announced.count((queue.TRAIN, training)) == 1

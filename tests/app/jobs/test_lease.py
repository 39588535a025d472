from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import queue
from app.database import leases as worker_leases
from app.database.base import utc_now
from app.database.engine import Database
from app.database.leases import Clock, database_time
from app.database.tables import IdempotencyKey, Job, Worker, Workload
from app.jobs import lease as leases
from app.jobs import repository, service
from app.jobs import repository as listing
from app.jobs.lease import Lease, LeaseLost
from app.settings import Settings

START = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = 20.0
SETTINGS = Settings(lease_seconds=SECONDS, requeue_seconds=10, max_attempts=3)

pytestmark = pytest.mark.usefixtures("announced")


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids announced to the broker."""
    parts: list[str] = []
    monkeypatch.setattr(queue, "enqueue", lambda _task, identifier: parts.append(identifier))
    return parts


@pytest.fixture
def job_id(any_database: Database) -> str:
    return make(any_database)


def after(seconds: float) -> Clock:
    """A database whose clock shows so many seconds after START."""
    return lambda _session: START + timedelta(seconds=seconds)


BEGINNING = after(0)


def make(database: Database, name: str = "w", *, clock: Clock = BEGINNING, fails: bool = False) -> str:
    with database.session() as session:
        workload = Workload(name=name, kind="iterative", spec={})
        session.add(workload)
        session.flush()
        job = service.create(
            session,
            job_type="train",
            workload_id=workload.id,
            request={"seed": 1, "priority": 3},
            tenant="default",
            clock=clock,
        )
        if fails:
            raise RuntimeError("before the commit")
        return job.id


def claim(database: Database, job_id: str, owner: str = "a", seconds: float = 0.0) -> Lease:
    lease = leases.claim(database, job_id, owner, SETTINGS, after(seconds))
    assert lease is not None
    return lease


def row(database: Database, job_id: str) -> Job:
    with database.reading() as session:
        return session.get_one(Job, job_id)


def states(database: Database, job_id: str) -> list[str]:
    with database.reading() as session:
        return [event.data["state"] for event in listing.events(session, job_id, 0, 100)]


def finish(database: Database, lease: Lease, result: dict[str, Any], seconds: float = 1.0) -> None:
    with database.session() as session:
        leases.finish(session, lease, result, after(seconds))


def publish(database: Database, lease: Lease) -> None:
    with database.session() as session:
        session.add(Workload(name="published", kind="iterative", spec={}))
        session.flush()
        leases.finish(session, lease, {"agent": 1}, after(SECONDS + 2))


def test_a_new_job_is_announced_after_its_commit(any_database: Database, announced: list[str]) -> None:
    with pytest.raises(RuntimeError):
        make(any_database, fails=True)
    assert announced == []
    result = make(any_database)
    assert announced == [result]


def test_only_one_of_many_workers_gets_a_job(any_database: Database, job_id: str) -> None:
    taken: list[Lease | None] = []
    start = threading.Barrier(8)

    def compete(owner: str) -> None:
        start.wait()
        taken.append(leases.claim(any_database, job_id, owner, SETTINGS, after(0)))

    threads = [threading.Thread(target=compete, args=(f"w{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [lease for lease in taken if lease is not None]
    assert len(taken) == 8
    assert len(winners) == 1
    assert row(any_database, job_id).owner == winners[0].owner


def test_a_finished_job_cannot_be_taken_or_finished_again(any_database: Database, job_id: str) -> None:
    lease = claim(any_database, job_id)
    finish(any_database, lease, {"agent": 1})
    assert leases.claim(any_database, job_id, "b", SETTINGS, after(1000)) is None
    with pytest.raises(LeaseLost):
        finish(any_database, lease, {"agent": 2})
    done = row(any_database, job_id)
    assert (done.state, done.result, done.progress, done.owner) == ("succeeded", {"agent": 1}, 1.0, None)
    assert states(any_database, job_id) == ["queued", "running", "succeeded"]


def test_an_expired_lease_is_taken_over_and_its_old_holder_fenced_out(any_database: Database, job_id: str) -> None:
    old = claim(any_database, job_id, "old")
    assert leases.claim(any_database, job_id, "new", SETTINGS, after(SECONDS - 1)) is None
    new = claim(any_database, job_id, "new", SECONDS + 1)
    assert new.fence > old.fence
    with pytest.raises(LeaseLost):
        leases.heartbeat(any_database, old, after(SECONDS + 2))
    with pytest.raises(LeaseLost):
        leases.progress(any_database, old, 0.9, None, {}, b"stale", after(SECONDS + 2))
    with pytest.raises(LeaseLost):
        leases.fail(any_database, old, {}, after(SECONDS + 2))
    with pytest.raises(LeaseLost):
        leases.release(any_database, old, b"stale", after(SECONDS + 2))
    with pytest.raises(LeaseLost):
        finish(any_database, old, {"agent": 1}, SECONDS + 2)
    finish(any_database, new, {"agent": 2}, SECONDS + 3)
    assert row(any_database, job_id).result == {"agent": 2}


def test_what_a_fenced_out_worker_publishes_is_rolled_back(any_database: Database, job_id: str) -> None:
    old = claim(any_database, job_id, "old")
    claim(any_database, job_id, "new", SECONDS + 1)
    with pytest.raises(LeaseLost):
        publish(any_database, old)
    with any_database.reading() as session:
        assert session.query(Workload).filter_by(name="published").count() == 0


def test_heartbeats_keep_a_lease_alive(any_database: Database, job_id: str) -> None:
    lease = claim(any_database, job_id)
    assert leases.heartbeat(any_database, lease, after(15)) is False
    assert leases.claim(any_database, job_id, "b", SETTINGS, after(30)) is None
    assert leases.claim(any_database, job_id, "b", SETTINGS, after(36)) is not None


def test_the_next_attempt_starts_from_the_last_checkpoint(any_database: Database, job_id: str) -> None:
    lease = claim(any_database, job_id)
    leases.progress(any_database, lease, 0.4, 12.5, {"return": -0.2}, b"forty", after(1))
    leases.progress(any_database, lease, 0.5, 10.0, {}, None, after(2))
    following = claim(any_database, job_id, "b", 30)
    assert (following.checkpoint, following.progress, following.attempts) == (b"forty", 0.5, 2)
    assert states(any_database, job_id) == ["queued", "running", "running", "running", "running"]


def test_a_job_given_back_is_no_failed_attempt(any_database: Database, job_id: str) -> None:
    lease = claim(any_database, job_id)
    leases.release(any_database, lease, b"half", after(1))
    given_back = row(any_database, job_id)
    assert (given_back.state, given_back.attempts, given_back.owner) == ("queued", 0, None)
    assert claim(any_database, job_id, "b", 2).checkpoint == b"half"


def test_a_job_given_back_is_announced_by_the_next_sweep(
    any_database: Database, job_id: str, announced: list[str]
) -> None:
    leases.release(any_database, claim(any_database, job_id), None, after(1))
    announced.clear()
    assert leases.sweep(any_database, SETTINGS, clock=after(2)) == [job_id]
    assert leases.sweep(any_database, SETTINGS, clock=after(3)) == []
    assert announced == [job_id]


def test_a_cancelled_job_that_is_given_back_has_ended(any_database: Database, job_id: str) -> None:
    lease = claim(any_database, job_id)
    service.cancel(any_database, "default", job_id)
    leases.release(any_database, lease, b"half", after(1))
    assert row(any_database, job_id).state == "cancelled"
    assert states(any_database, job_id) == ["queued", "running", "cancelled"]


def test_a_job_began_when_its_first_worker_took_it(any_database: Database, job_id: str) -> None:
    for owner, seconds in (("a", 1), ("b", 100)):
        claim(any_database, job_id, owner, seconds)
        assert row(any_database, job_id).started_at == START + timedelta(seconds=1)


def test_a_failed_job_keeps_its_reason_and_how_far_it_was(any_database: Database, job_id: str) -> None:
    leases.progress(any_database, claim(any_database, job_id), 0.4, 12.5, {}, None, after(1))
    leases.fail(any_database, claim(any_database, job_id, "b", 30), {"detail": "no"}, after(31))
    failed = row(any_database, job_id)
    assert (failed.state, failed.error, failed.progress, failed.eta_seconds) == ("failed", {"detail": "no"}, 0.4, None)
    with any_database.reading() as session:
        event = listing.events(session, job_id, 0, 100)[-1].data
    assert event == {"state": "failed", "progress": 0.4, "error": {"detail": "no"}}


def test_cancelling_a_waiting_job_ends_it_at_once(any_database: Database, job_id: str) -> None:
    assert service.cancel(any_database, "default", job_id).state == "cancelled"
    assert service.cancel(any_database, "default", job_id).state == "cancelled"
    assert leases.claim(any_database, job_id, "a", SETTINGS, after(0)) is None
    assert states(any_database, job_id) == ["queued", "cancelled"]


def test_cancelling_a_running_job_reaches_its_worker(any_database: Database, job_id: str) -> None:
    lease = claim(any_database, job_id)
    assert service.cancel(any_database, "default", job_id).state == "running"
    assert leases.heartbeat(any_database, lease, after(1)) is True
    assert leases.progress(any_database, lease, 0.1, None, {}, None, after(1)) is True
    leases.cancel(any_database, lease, after(2))
    assert row(any_database, job_id).state == states(any_database, job_id)[-1] == "cancelled"


def test_the_sweeper_brings_back_what_holds_an_expired_lease(
    any_database: Database, job_id: str, announced: list[str]
) -> None:
    lease = claim(any_database, job_id)
    announced.clear()
    assert leases.sweep(any_database, SETTINGS, clock=after(5)) == []
    assert leases.sweep(any_database, SETTINGS, clock=after(21)) == [job_id]
    assert announced == [job_id]
    assert row(any_database, job_id).state == "queued"
    with pytest.raises(LeaseLost):
        leases.heartbeat(any_database, lease, after(22))


def test_the_sweeper_does_not_wait_for_a_worker_that_is_surely_gone(any_database: Database, job_id: str) -> None:
    claim(any_database, job_id, "dead")
    assert leases.sweep(any_database, SETTINGS, lambda owner: owner == "alive", after(1)) == []
    assert leases.sweep(any_database, SETTINGS, lambda owner: owner == "dead", after(1)) == [job_id]


def test_the_sweeper_announces_again_what_was_never_started(
    any_database: Database, job_id: str, announced: list[str]
) -> None:
    announced.clear()
    assert leases.sweep(any_database, SETTINGS, clock=after(5)) == []
    assert leases.sweep(any_database, SETTINGS, clock=after(11)) == [job_id]
    assert leases.sweep(any_database, SETTINGS, clock=after(12)) == []
    assert announced == [job_id]


def test_two_sweepers_announce_a_job_once(any_database: Database, job_id: str, announced: list[str]) -> None:
    announced.clear()
    start = threading.Barrier(4)

    def sweep() -> None:
        start.wait()
        leases.sweep(any_database, SETTINGS, clock=after(11))

    threads = [threading.Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert announced == [job_id]


def test_a_job_that_keeps_losing_its_worker_fails(any_database: Database, job_id: str) -> None:
    for attempt in range(3):
        claim(any_database, job_id, f"w{attempt}", attempt * 100)
        leases.sweep(any_database, SETTINGS, clock=after(attempt * 100 + 50))
    failed = row(any_database, job_id)
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error["type"] == "/problems/worker-lost"


def test_a_cancelled_job_whose_worker_is_lost_ends_cancelled(any_database: Database, job_id: str) -> None:
    claim(any_database, job_id)
    service.cancel(any_database, "default", job_id)
    assert leases.sweep(any_database, SETTINGS, clock=after(50)) == []
    assert row(any_database, job_id).state == "cancelled"


def test_a_cancel_between_a_sweepers_look_and_its_write_is_not_lost(
    any_database: Database, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(any_database, job_id)
    result = repository.running

    def cancelled_meanwhile(session: Session) -> list[Job]:
        jobs = result(session)
        service.cancel(any_database, "default", job_id)
        return jobs

    with monkeypatch.context() as patched:
        patched.setattr(repository, "running", cancelled_meanwhile)
        assert leases.sweep(any_database, SETTINGS, clock=after(50)) == []
    assert row(any_database, job_id).state == "running"
    assert leases.sweep(any_database, SETTINGS, clock=after(50)) == []
    assert row(any_database, job_id).state == "cancelled"


def test_a_job_that_is_announced_again_and_again_is_tried_no_more_often(any_database: Database, job_id: str) -> None:
    for attempt in range(3):  # each message finds an expired lease before any sweeper does
        claim(any_database, job_id, f"w{attempt}", attempt * 100)
    assert leases.claim(any_database, job_id, "w3", SETTINGS, after(210)) is None
    assert row(any_database, job_id).state == "running"  # its lease has not expired
    assert leases.claim(any_database, job_id, "w3", SETTINGS, after(300)) is None
    failed = row(any_database, job_id)
    assert (failed.state, failed.attempts) == ("failed", 3)
    assert failed.error is not None
    assert failed.error["type"] == "/problems/worker-lost"
    assert states(any_database, job_id) == ["queued", "running", "running", "running", "failed"]


def test_a_renewal_between_a_sweepers_look_and_its_write_keeps_the_job(
    any_database: Database, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = claim(any_database, job_id)
    result = repository.running

    def renewed_meanwhile(session: Session) -> list[Job]:
        jobs = result(session)
        leases.heartbeat(any_database, lease, after(30))
        return jobs

    monkeypatch.setattr(repository, "running", renewed_meanwhile)
    assert leases.sweep(any_database, SETTINGS, clock=after(30)) == []
    assert leases.sweep(any_database, SETTINGS, lambda owner: owner == "a", after(30)) == [job_id]  # surely gone


class Ahead(datetime):
    """The clock of a host that is 25 s ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(seconds=25)


@pytest.mark.servers
def test_a_host_whose_clock_is_ahead_takes_no_healthy_job(
    postgres_database: Database, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_database.session() as session:
        worker_leases.beat(session, "right")
    job_id = make(postgres_database, clock=database_time)
    lease = leases.claim(postgres_database, job_id, "right", SETTINGS)
    waiting = make(postgres_database, "other", clock=database_time)
    announced.clear()
    assert lease is not None
    monkeypatch.setattr("app.database.base.datetime", Ahead)
    assert leases.sweep(postgres_database, SETTINGS) == []
    assert leases.claim(postgres_database, job_id, "wrong", SETTINGS) is None
    assert leases.heartbeat(postgres_database, lease) is False
    expires = row(postgres_database, job_id).lease_expires_at
    assert expires is not None
    assert expires - datetime.now(UTC) < timedelta(seconds=SECONDS + 1)
    with postgres_database.session() as session:
        assert worker_leases.seen_lately(session, 10.0) == "right"
        worker_leases.beat(session, "wrong")
    monkeypatch.undo()
    with postgres_database.reading() as session:
        ages = [utc_now() - match for match in session.scalars(select(Worker.seen_at))]
    assert all(age > timedelta(0) for age in ages)
    assert announced == []
    assert row(postgres_database, waiting).state == "queued"


def test_only_what_was_not_repeated_for_long_is_forgotten(any_database: Database) -> None:
    with any_database.session() as session:
        for key, hours in (("old", 0.0), ("young", 2.0)):
            result = START + timedelta(hours=hours)
            session.add(IdempotencyKey(key=key, claim="c", digest="d", created_at=result))
    leases.purge(any_database, Settings(idempotency_seconds=3600.0), after(2 * 3600))
    with any_database.reading() as session:
        assert session.scalars(select(IdempotencyKey.key)).all() == ["young"]


def test_deleting_the_workload_takes_the_job_from_its_worker(any_database: Database, job_id: str) -> None:
    lease = claim(any_database, job_id)
    with any_database.session() as session:
        session.delete(session.get_one(Workload, lease.workload_id))
    with pytest.raises(LeaseLost):
        leases.heartbeat(any_database, lease, after(1))


def rest(database: Database, lease: Lease, until: float, now: float) -> None:
    with database.session() as session:
        moment = START + timedelta(seconds=until)
        leases.rest(session, lease, moment, 0.25, {"window": 1}, b"kept", after(now))


def test_a_job_that_rests_is_taken_up_at_its_time_and_not_before(any_database: Database, announced: list[str]) -> None:
    job_id = make(any_database)
    rest(any_database, claim(any_database, job_id), until=60, now=5)
    announced.clear()
    resting = row(any_database, job_id)
    assert (resting.state, resting.owner, resting.attempts, resting.progress) == ("waiting", None, 0, 0.25)
    assert leases.claim(any_database, job_id, "b", SETTINGS, after(30)) is None
    assert leases.sweep(any_database, SETTINGS, clock=after(59)) == []
    assert leases.sweep(any_database, SETTINGS, clock=after(60)) == [job_id] == announced
    assert leases.sweep(any_database, SETTINGS, clock=after(60)) == []
    lease = claim(any_database, job_id, seconds=61)
    assert (lease.checkpoint, lease.attempts, row(any_database, job_id).not_before) == (b"kept", 1, None)


def test_jobs_that_rest_keep_no_place_in_the_queue(any_database: Database) -> None:
    for number in range(leases.ANNOUNCED_AT_ONCE):
        rest(any_database, claim(any_database, make(any_database, f"r{number}")), until=1_000, now=0)
    waiting = make(any_database, "other", clock=after(1))
    assert leases.sweep(any_database, SETTINGS, clock=after(30)) == [waiting]


def test_a_lease_that_was_lost_lets_nothing_rest(any_database: Database, job_id: str) -> None:
    lost = claim(any_database, job_id)
    claim(any_database, job_id, "b", seconds=SECONDS + 1)
    with pytest.raises(LeaseLost):
        rest(any_database, lost, until=60, now=SECONDS + 2)
    assert row(any_database, job_id).state == "running"


def test_a_job_that_rests_is_cancelled_at_once_and_one_that_is_cancelled_does_not_rest(any_database: Database) -> None:
    resting, running = make(any_database, "a"), make(any_database, "b")
    rest(any_database, claim(any_database, resting), until=60, now=0)
    assert service.cancel(any_database, "default", resting).state == "cancelled"
    lease = claim(any_database, running)
    service.cancel(any_database, "default", running)
    rest(any_database, lease, until=60, now=1)
    assert row(any_database, running).state == "cancelled"
    assert leases.sweep(any_database, SETTINGS, clock=after(100)) == []
    assert states(any_database, running)[-1] == "cancelled"

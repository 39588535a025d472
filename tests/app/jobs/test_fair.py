"""Workers take turns between tenants, whatever the order in which jobs were announced."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from app import queue
from app.database.engine import Database
from app.database.leases import Clock
from app.database.tables import Job, Workload
from app.domain_models.service import FitRequest
from app.jobs import lease as leases
from app.jobs import service
from app.jobs.lease import Lease
from app.settings import Settings

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(lease_seconds=1000)


class Queue:
    """A broker that hands out what was announced, in order, and a clock that moves with each job."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database = database
        self.announced: list[str] = []
        self.seconds = 0
        monkeypatch.setattr(queue, "enqueue", lambda _task, identifier: self.announced.append(identifier))

    def clock(self) -> Clock:
        self.seconds += 1
        now = START + timedelta(seconds=self.seconds)
        return lambda _session: now

    def ask(self, tenant: str, number: int, job_type: str = "train", priority: int = 0) -> None:
        for each in range(number):
            with self.database.session() as session:
                workload = Workload(tenant=tenant, name=f"w{each}-{job_type}-{priority}", kind="iterative", spec={})
                session.add(workload)
                session.flush()
                service.create(
                    session,
                    job_type=job_type,  # type: ignore[arg-type]
                    workload_id=workload.id,
                    request=FitRequest(priority=priority).model_dump(mode="json"),
                    tenant=tenant,
                    clock=self.clock(),
                )

    def take(self) -> Lease | None:
        """What the next message makes a worker do."""
        return leases.claim(self.database, self.announced.pop(0), "worker", SETTINGS, self.clock())


@pytest.fixture
def waiting(any_database: Database, monkeypatch: pytest.MonkeyPatch) -> Queue:
    return Queue(any_database, monkeypatch)


def tenants(waiting: Queue, *, end: bool) -> str:
    """Whose jobs are taken, message by message, by one worker that ends each of them, or by many."""
    order = ""
    while waiting.announced:
        lease = waiting.take()
        assert lease is not None
        order += lease.tenant
        if end:
            with waiting.database.session() as session:
                leases.finish(session, lease, {}, waiting.clock())
    return order


@pytest.mark.parametrize("end", [True, False])
def test_who_asks_for_little_does_not_wait_behind_who_asks_for_much(waiting: Queue, end: bool) -> None:
    waiting.ask("a", 6)
    waiting.ask("b", 2)
    waiting.ask("c", 1)
    assert tenants(waiting, end=end) == "abcabaaaa"


def test_nothing_is_left_and_nothing_taken_twice(waiting: Queue) -> None:
    waiting.ask("a", 5)
    waiting.ask("b", 5)
    assert sorted(tenants(waiting, end=False)) == list("aaaaabbbbb")
    with waiting.database.reading() as session:
        assert {tuple(row) for row in session.execute(select(Job.state, Job.fence))} == {("running", 1)}


def test_one_tenants_jobs_are_taken_as_they_were_announced(waiting: Queue) -> None:
    waiting.ask("a", 3)
    waiting.announced.reverse()
    expected = list(waiting.announced)
    taken = [lease.job_id for lease in iter(lambda: waiting.take() if waiting.announced else None, None)]
    assert taken == expected


def test_who_asks_for_another_kind_of_work_does_not_wait_either(waiting: Queue) -> None:
    waiting.ask("a", 4, "trial")
    waiting.ask("a", 2, "train")
    waiting.ask("b", 1, "fit")
    waiting.ask("c", 1, "evaluate")
    assert tenants(waiting, end=True) == "abcaaaaa"


def test_a_tenants_jobs_of_a_higher_priority_begin_first_and_no_other_tenant_waits_for_them(waiting: Queue) -> None:
    waiting.ask("a", 2, priority=-1)
    waiting.ask("a", 1)
    waiting.ask("a", 2, priority=5)
    waiting.ask("b", 1, priority=-10)
    taken = []
    while waiting.announced:
        lease = waiting.take()
        assert lease is not None
        assert "priority" not in lease.request  # which the release before reads, and knows none
        with waiting.database.session() as session:
            priority = session.scalars(select(Job.priority).where(Job.id == lease.job_id)).one()
            taken.append((lease.tenant, priority))
            leases.finish(session, lease, {}, waiting.clock())
    assert taken == [("a", 5), ("b", -10), ("a", 5), ("a", 0), ("a", -1), ("a", -1)]


def test_without_priorities_a_message_of_what_runs_wakes_nobody_up_for_the_rest(waiting: Queue) -> None:
    waiting.ask("a", 2)
    waiting.announced.insert(1, waiting.announced[0])
    taken = [waiting.take() for _ in range(3)]
    assert [lease is None for lease in taken] == [False, True, False]

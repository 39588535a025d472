"""What is asked of jobs and written to them: of two tenants, two workloads, and trainings with trials of their own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from app import queue
from app.database.engine import Database
from app.database.tables import Job, JobEvent, Trial, Workload
from app.http.pagination import PageRequest
from app.jobs import lease as leases
from app.jobs import repository, service, sweeps
from app.jobs.lease import Lease, LeaseLost
from app.jobs.repository import Filter
from tests.app.jobs.test_lease import SECONDS, SETTINGS, START, after, claim, finish, make, row, states

Announced = list[tuple[str, str]]


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> Announced:
    """Tasks and jobs announced to the broker one by one."""
    found: Announced = []
    monkeypatch.setattr(queue, "enqueue", lambda task, identifier: found.append((task, identifier)))
    monkeypatch.setattr(queue, "enqueue_group", lambda _task, _identifiers: None)
    return found


def make_of(database: Database, tenant: str, name: str, job_type: Any = "fit", seconds: float = 0.0) -> str:
    """A tenant's new job of a workload, which is made if need be; its id."""
    with database.session() as session:
        found = session.scalar(select(Workload).where(Workload.tenant == tenant, Workload.name == name))
        workload = found or Workload(tenant=tenant, name=name, kind="iterative", spec={})
        session.add(workload)
        session.flush()
        job = service.create(
            session, job_type=job_type, workload_id=workload.id, request={}, tenant=tenant, clock=after(seconds)
        )
        job.created_at = START + timedelta(seconds=seconds)
        return job.id


def opened(database: Database, training: str, count: int = 2) -> list[str]:
    """A training's trials, just opened; their ids."""
    openings = [sweeps.Opening("dqn", seed) for seed in range(count)]
    assert sweeps.open_trials(database, claim(database, training), openings, 0.5, b"plan", after(1))
    with database.reading() as session:
        return [one.job_id for one in sweeps.trial_statuses(session, training)]


def rested(database: Database, trial: str) -> None:
    outcome = sweeps.Outcome(0.5, -0.1, {}, b"policy")
    assert sweeps.rest(database, claim(database, trial, seconds=2), outcome, b"learner", after(3))


def test_the_first_in_line_has_waited_since_its_last_event(database: Database) -> None:
    def waited(seconds: float) -> float:
        with database.reading() as session:
            return repository.waiting_seconds(session, after(seconds))

    assert waited(1_000) == 0.0
    running, given_back, last = (make(database, name, clock=after(at)) for name, at in (("a", 0), ("b", 10), ("c", 30)))
    claim(database, running, seconds=0)
    assert waited(100) == 90.0
    leases.release(database, claim(database, given_back, seconds=15), None, after(40))
    assert waited(100) == 70.0  # of the third: the second was at work until 40
    claim(database, last, seconds=50)
    assert waited(100) == 60.0
    assert waited(39) == 0.0  # a clock that was set back


def test_jobs_are_counted_by_type_and_state(database: Database) -> None:
    for name in "ab":
        make_of(database, "one", name, "fit")
    make_of(database, "two", "a", "evaluate")
    claim(database, make_of(database, "three", "a", "fit"))
    with database.reading() as session:
        counts = repository.counts(session)
    assert counts == {("fit", "queued"): 2, ("fit", "running"): 1, ("evaluate", "queued"): 1}


def test_a_tenants_open_jobs_are_those_that_wait_run_or_rest_without_trials(database: Database) -> None:
    training = make(database)  # of the tenant "default"
    trials = opened(database, training)
    rested(database, trials[0])
    for name, job_type in (("a", "fit"), ("b", "evaluate")):
        make_of(database, "default", name, job_type, 5)
    finish(database, claim(database, make_of(database, "other", "a", seconds=9), seconds=9), {})
    with database.session() as session:
        for tenant, count in (("default", 3), ("other", 0), ("nobody", 0)):
            assert repository.open_jobs(session, tenant) == count


def test_a_failed_job_is_told_with_its_reason() -> None:
    job = Job(id="0123456789abcdef", type="fit", error={"detail": "no memory"})
    assert repository.failure(job, "w") == ("Job 01234567 (fit of w) failed", "no memory")
    job.error = {}
    assert repository.failure(job, "w")[1] == "no reason was given"
    job.error = None
    assert repository.failure(job, "w")[1] == "no reason was given"


def test_lists_hold_what_was_asked_for(database: Database) -> None:
    first = make_of(database, "one", "a", "fit", 0)
    second = make_of(database, "one", "a", "evaluate", 1)
    third = make_of(database, "one", "bees", "fit", 2)
    stranger = make_of(database, "two", "a", "fit", 3)
    with database.session() as session:
        session.get_one(Job, second).state = "waiting"
        session.get_one(Job, third).state = "running"
        workload = session.get_one(Job, first).workload_id

    def listed(tenant: str = "one", descending: bool = True, **chosen: Any) -> list[str]:
        with database.reading() as session:
            page = repository.list_jobs(session, tenant, PageRequest(10), Filter(**chosen), descending=descending)
            return [job.id for job in page.rows]

    assert listed() == [third, second, first]
    assert listed(descending=False) == [first, second, third]
    assert listed("two") == [stranger]
    assert listed(workload_id=workload) == [second, first]
    assert listed(state="running") == [third, second]
    assert listed(state="queued") == [first]
    assert listed(type="fit") == [third, first]
    assert listed(type="fit", state="queued", search="a") == [first]
    assert listed(search="bee") == [third]
    with database.reading() as session:
        page = repository.list_jobs(session, "one", PageRequest(2), Filter())
        assert [job.id for job in page.rows] == [third, second]
        assert repository.workload_names(session, [workload, "nobody"]) == {workload: "a"}
        assert repository.find(session, "two", first) is None
        found = repository.find(session, "one", first)
        assert found is not None
        assert found.id == first


def test_events_are_numbered_for_each_job_and_read_from_a_number_on(database: Database) -> None:
    jobs = [make(database, name) for name in "ab"]
    for number, job in enumerate((jobs[0], jobs[1], jobs[0], jobs[0])):
        with database.session() as session:
            repository.add_event(session, "default", job, {"state": "x", "n": number}, START)
    with database.reading() as session:
        found = [[(one.sequence, one.data.get("n")) for one in repository.events(session, job, 1, 2)] for job in jobs]
        assert [one.sequence for one in repository.events(session, jobs[0], 0, 10)] == [1, 2, 3, 4]
    assert found == [[(2, 0), (3, 2)], [(2, 1)]]


def test_a_training_that_ends_cancels_its_own_trials_and_forgets_their_policies(database: Database) -> None:
    ending, other = make(database, "a"), make(database, "b")
    trials, others = opened(database, ending, 3), opened(database, other)
    rested(database, trials[0])
    held = claim(database, trials[1], seconds=4)
    rested(database, others[0])
    assert service.cancel(database, "default", ending).state == "cancelled"
    found = [row(database, job) for job in trials]
    assert [job.state for job in found] == ["cancelled", "running", "cancelled"]
    assert [job.cancel_requested for job in found] == [True] * 3
    assert [states(database, job)[-1] for job in trials] == ["cancelled", "running", "cancelled"]
    assert leases.heartbeat(database, held, after(5)) is True
    with database.reading() as session:
        kept = [one.artifact for parent in (ending, other) for one in sweeps.trial_statuses(session, parent)]
    assert kept == [None, None, None, b"policy", None]
    assert [row(database, job).state for job in others] == ["waiting", "queued"]
    ended = row(database, trials[0])
    assert (ended.owner, ended.lease_expires_at, ended.not_before, ended.eta_seconds) == (None, None, None, None)
    assert ended.finished_at is not None
    with database.reading() as session:
        assert session.scalar(select(Job.checkpoint).where(Job.id == trials[0])) is None


def test_a_training_is_woken_by_none_but_its_own_trials(database: Database, announced: Announced) -> None:
    one, other = make(database, "a"), make(database, "b")
    trials, others = opened(database, one), opened(database, other)
    announced.clear()
    for trial in (trials[0], others[0]):
        rested(database, trial)
    with database.session() as session:
        assert [repository.wake(session, job, START) for job in (one, other)] == [False, False]
    held = claim(database, trials[1], seconds=2)
    with database.session() as session:
        assert repository.wake(session, one, START) is False  # its last one runs
    assert announced == []
    assert sweeps.rest(database, held, sweeps.Outcome(0.5, 0.0, {}, b"p"), b"l", after(3))
    assert announced == [(queue.TRAIN, one)]
    assert [row(database, job).state for job in (one, other)] == ["queued", "waiting"]
    with database.session() as session:
        assert repository.wake(session, one, START) is False  # it has been woken


def test_a_job_is_removed_with_its_trials_and_their_events(database: Database) -> None:
    gone, kept = make(database, "a"), make(database, "b")
    opened(database, gone)
    others = opened(database, kept)
    with database.session() as session:
        repository.remove(session, [gone])
    with database.reading() as session:
        assert set(session.scalars(select(Job.id))) == {kept, *others}
        assert set(session.scalars(select(Trial.job_id))) == set(others)
        assert set(session.scalars(select(JobEvent.job_id))) == {kept, *others}


def test_only_the_first_in_line_are_announced_again_and_only_after_a_while(database: Database) -> None:
    jobs = [make(database, str(number), clock=after(number)) for number in range(4)]
    with database.session() as session:
        for number, job in enumerate(jobs):
            session.get_one(Job, job).created_at = START + timedelta(seconds=number)
    claim(database, jobs[0])

    def due(before: float, limit: int) -> list[str]:
        with database.reading() as session:
            found = repository.waiting_jobs(session, START + timedelta(seconds=before), limit)
            return sorted(job.id for job in found)

    assert due(100, 2) == sorted(jobs[1:3])
    assert due(2, 10) == sorted(jobs[1:2])  # what was announced just then is not
    with database.session() as session:
        session.get_one(Job, jobs[3]).enqueued_at = None
    assert due(2, 10) == sorted([jobs[1], jobs[3]])


def test_a_lease_holds_until_the_second_that_it_ends_in(database: Database) -> None:
    job = make(database)
    held = claim(database, job)
    assert row(database, job).lease_expires_at == START + timedelta(seconds=SECONDS)
    assert leases.claim(database, job, "b", SETTINGS, after(SECONDS)) is None
    assert leases.sweep(database, SETTINGS, clock=after(SECONDS)) == []
    assert leases.heartbeat(database, held, after(SECONDS)) is False
    assert row(database, job).lease_expires_at == START + timedelta(seconds=2 * SECONDS)
    assert claim(database, job, "b", 2 * SECONDS + 0.1).fence == held.fence + 1


def test_a_lease_is_of_its_own_job(database: Database) -> None:
    first, second = make(database, "a"), make(database, "b")
    for job, progress in ((first, 0.25), (second, 0.5)):
        leases.progress(database, claim(database, job), progress, 9.0, {"n": 1}, job.encode(), after(1))
    leases.sweep(database, SETTINGS, clock=after(100))
    for job, progress in ((first, 0.25), (second, 0.5)):
        found = leases.claim(database, job, "b", SETTINGS, after(101))
        assert isinstance(found, Lease)
        assert (found.job_id, found.checkpoint, found.progress, found.attempts) == (job, job.encode(), progress, 2)
        assert (found.seconds, found.type, found.tenant, found.request) == (SECONDS, "train", "default", {"seed": 1})
        with database.reading() as session:
            told = [event.data for event in repository.events(session, job, 0, 9)]
        assert told[2:] == [
            {"state": "running", "progress": progress, "eta_seconds": 9.0, "n": 1},
            {"state": "queued", "progress": progress, "reason": "its worker was lost"},
            {"state": "running", "progress": progress, "attempt": 2},
        ]


def test_a_process_that_ends_gives_its_jobs_back_and_no_others(database: Database) -> None:
    jobs = [make(database, name) for name in "abcd"]
    for job, owner in zip(jobs, ("ends", "ends", "stays", "ends"), strict=True):
        claim(database, job, owner)
    service.cancel(database, "default", jobs[1])
    with database.reading() as session:
        assert [one.job_id for one in leases.cancelling(session)] == [jobs[1]]
    leases.fail(database, claim_again(database, jobs[3]), {"detail": "no"}, after(2))
    assert sorted(leases.give_back(database, "ends", after(2))) == sorted(jobs[:2])
    assert [row(database, job).state for job in jobs] == ["queued", "cancelled", "running", "failed"]
    back = row(database, jobs[0])
    assert (back.attempts, back.owner, back.lease_expires_at, back.enqueued_at) == (0, None, None, None)
    assert leases.give_back(database, "ends", after(3)) == []


def claim_again(database: Database, job: str) -> Lease:
    """The lease that a job's present owner holds."""
    found = row(database, job)
    assert found.owner is not None
    return Lease(
        job_id=job,
        tenant=found.tenant,
        owner=found.owner,
        fence=found.fence,
        workload_id=found.workload_id,
        request={},
        checkpoint=None,
        attempts=1,
        progress=0.0,
        seconds=SECONDS,
        type="train",
        traceparent=None,
    )


def test_a_worker_that_is_lost_too_often_is_a_problem_of_its_job(database: Database, announced: Announced) -> None:
    job = make(database)
    announced.clear()
    for attempt in range(SETTINGS.max_attempts):
        claim(database, job, seconds=attempt * 100)
        leases.sweep(database, SETTINGS, clock=after(attempt * 100 + 50))
    failed = row(database, job)
    assert failed.error is not None
    assert (failed.error["status"], failed.error["instance"]) == (500, f"/jobs/{job}")
    assert "its worker was lost 3 times" in failed.error["detail"]
    assert failed.finished_at == START + timedelta(seconds=250)
    assert announced == [(queue.TRAIN, job)] * 2


def test_a_trial_whose_training_was_deleted_or_whose_lease_was_lost_does_not_rest(database: Database) -> None:
    training = make(database)
    trials = opened(database, training)
    outcome = sweeps.Outcome(0.5, -0.1, {}, b"policy")
    lost = claim(database, trials[0], "lost", 2)
    service.cancel(database, "default", trials[0])
    with database.session() as session:
        session.get_one(Job, trials[0]).fence += 1
    with pytest.raises(LeaseLost):  # though it is to be cancelled
        sweeps.rest(database, lost, outcome, b"learner", after(3))
    held = claim(database, trials[1], seconds=2)
    with database.session() as session:
        repository.remove(session, [training])
    with pytest.raises(LeaseLost, match=r"its training was deleted|is not held any more"):
        sweeps.rest(database, held, outcome, b"learner", after(3))


def test_an_owner_that_has_a_job_again_is_fenced_out_by_its_own_new_lease(database: Database) -> None:
    """After it was lost, given back, and had rested: each time the fence is higher than ever before."""
    job, fences = make(database), list[int]()

    def taken(seconds: float) -> Lease:
        held = claim(database, job, "a", seconds)
        fences.append(held.fence)
        return held

    def rest(held: Lease) -> None:
        with database.session() as session:
            leases.rest(session, held, START + timedelta(seconds=310), 0.5, {}, b"kept", after(301))

    lost = taken(0)
    leases.sweep(database, SETTINGS, clock=after(100))
    given_back = taken(200)
    with pytest.raises(LeaseLost):
        leases.heartbeat(database, lost, after(201))
    leases.release(database, given_back, None, after(202))
    resting = taken(300)
    rest(resting)
    leases.sweep(database, SETTINGS, clock=after(311))
    held = taken(400)
    for old in (lost, given_back, resting):
        with pytest.raises(LeaseLost):
            leases.progress(database, old, 0.9, None, {}, b"stale", after(401))
    assert leases.heartbeat(database, held, after(401)) is False
    assert fences == sorted(set(fences))

"""The steps of a training of many trials, one by one: what each writes, and who is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from app import queue
from app.database.engine import Database
from app.database.tables import Job
from app.jobs import lease as leases
from app.jobs import repository, service, sweeps
from app.jobs.lease import Lease
from app.settings import Settings
from tests.app.jobs.test_lease import make

OPENINGS = [sweeps.Opening("dqn", 7), sweeps.Opening("ppo", 8), sweeps.Opening("ppo", 9)]
LIVE = {"phase": "learning", "trial": 1}


class Sweep:
    """A training with three trials, and what the broker was told."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database = database
        self.groups: list[tuple[str, list[str]]] = []
        self.single: list[tuple[str, str]] = []
        monkeypatch.setattr(queue, "enqueue", lambda task, job: self.single.append((task, job)))
        monkeypatch.setattr(queue, "enqueue_group", lambda task, jobs: self.groups.append((task, list(jobs))))
        self.id = make(database)
        self.single.clear()

    def claim(self, job_id: str) -> Lease:
        taken = leases.claim(self.database, job_id, f"worker of {job_id}", Settings(lease_seconds=60))
        assert taken is not None
        return taken

    def open(self) -> list[str]:
        assert sweeps.open_trials(self.database, self.claim(self.id), OPENINGS, 0.25, b"plan")
        return [trial.job_id for trial in self.trial_statuses()]

    def rest(self, job_id: str, score: float, share: float = 0.25) -> bool:
        outcome = sweeps.Outcome(share, score, {"updates": 1}, b"policy")
        return sweeps.rest(self.database, self.claim(job_id), outcome, b"learner")

    def go_on(self, survivors: Sequence[str], stopped: dict[str, str], lease: Lease | None = None) -> bool:
        return sweeps.resume_trials(self.database, lease or self.claim(self.id), survivors, stopped, 0.5)

    def trial_statuses(self) -> list[sweeps.TrialStatus]:
        with self.database.reading() as session:
            return sweeps.trial_statuses(session, self.id)

    def row(self, job_id: str) -> Job:
        with self.database.reading() as session:
            return session.get_one(Job, job_id)

    def events(self, job_id: str) -> list[dict[str, Any]]:
        with self.database.reading() as session:
            return [event.data for event in repository.events(session, job_id, 0, 100)]


@pytest.fixture
def training(database: Database, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    return Sweep(database, monkeypatch)


def test_trials_are_opened_as_a_group_and_their_training_waits(training: Sweep) -> None:
    trials = training.open()
    assert training.groups == [(queue.TRIAL, trials)]
    row = training.row(training.id)
    assert (row.state, row.owner, row.attempts) == ("waiting", None, 0)
    read = service.get(training.database, row.tenant, training.id)
    assert (read.state, read.attempts) == ("running", 1)  # its trials are its first attempt
    trial_statuses = training.trial_statuses()
    assert [(one.number, one.algorithm, one.seed) for one in trial_statuses] == [
        (0, "dqn", 7),
        (1, "ppo", 8),
        (2, "ppo", 9),
    ]
    first = trial_statuses[0]
    assert (first.rungs, first.until, first.share, first.score, first.ended) == (0, 0.25, 0.0, None, None)
    assert (first.failed, first.report, first.artifact) == (None, {}, None)
    job = training.row(trials[1])
    assert (job.type, job.state, job.request) == ("trial", "queued", {"parent": training.id, "number": 1})
    assert (row.priority, job.priority) == (3, 3)
    assert training.events(trials[1]) == [{"state": "queued", "progress": 0.0}]
    with training.database.reading() as session:
        one = sweeps.trial_status(session, trials[2])
        assert one is not None
        assert one.seed == 9
        assert sweeps.trial_status(session, training.id) is None


def test_a_training_that_is_to_be_cancelled_opens_none_and_stays_with_its_worker(training: Sweep) -> None:
    lease = training.claim(training.id)
    service.cancel(training.database, "default", training.id)
    assert not sweeps.open_trials(training.database, lease, OPENINGS, 0.25, b"plan")
    assert training.trial_statuses() == []
    assert training.row(training.id).state == "running"


def test_what_a_trial_tells_is_its_trainings_progress(training: Sweep) -> None:
    """Of two budgets' work, three eighths are done; two trials are at work on the rest, and judging takes a tenth."""
    trials = training.open()
    leases = [training.claim(trial) for trial in trials[:2]]
    entries = [sweeps.TrialProgress(share, 2.0, 100.0, LIVE, 0.9) for share in (0.5, 0.25)]
    for lease, one in zip(leases, entries, strict=True):
        assert sweeps.report_progress(training.database, lease, one, b"kept") is False
    row = training.row(training.id)
    assert [row.progress, row.eta_seconds] == pytest.approx([0.9 * 0.375, 1.25 * 100 / 2 + 2])
    assert training.events(training.id)[-1] == {
        "state": "running",
        "progress": row.progress,
        "eta_seconds": row.eta_seconds,
        **LIVE,
    }
    assert (training.row(trials[1]).progress, training.trial_statuses()[1].share) == (0.25, 0.25)
    with training.database.reading() as session:
        assert session.get_one(Job, trials[0]).checkpoint == b"kept"


def test_more_work_than_was_planned_is_no_more_than_all_and_an_unknown_speed_has_no_end(training: Sweep) -> None:
    lease = training.claim(training.open()[0])
    sweeps.report_progress(training.database, lease, sweeps.TrialProgress(0.5, 0.4, 100.0, LIVE, 0.9), None)
    row = training.row(training.id)
    assert [row.progress, row.eta_seconds] == pytest.approx([0.9, 2.0])
    sweeps.report_progress(training.database, lease, sweeps.TrialProgress(0.5, 0.4, None, LIVE, 0.9), None)
    assert training.row(training.id).eta_seconds is None


def test_a_trial_that_is_to_be_cancelled_is_told_so(training: Sweep) -> None:
    lease = training.claim(training.open()[0])
    service.cancel(training.database, "default", training.id)
    result = sweeps.TrialProgress(0.5, 2.0, 100.0, LIVE, 0.9)
    before = len(training.events(training.id))
    assert sweeps.report_progress(training.database, lease, result, None) is True
    assert len(training.events(training.id)) == before  # its training has ended, and tells nothing any more


def test_the_last_trial_to_rest_wakes_its_training(training: Sweep) -> None:
    trials = training.open()
    for number, trial in enumerate(trials):
        assert training.single == []
        assert training.rest(trial, -0.1 * number)
    assert training.single == [(queue.TRAIN, training.id)]
    assert training.row(training.id).state == "queued"
    trial_statuses = training.trial_statuses()
    assert [(one.rungs, one.share, one.score, one.artifact) for one in trial_statuses] == [
        (1, 0.25, -0.1 * number, b"policy") for number in range(3)
    ]
    row = training.row(trials[0])
    assert (row.state, row.owner, row.attempts, row.progress, row.eta_seconds) == ("waiting", None, 0, 0.25, None)


def test_survivors_go_on_and_the_others_end_for_a_reason(training: Sweep) -> None:
    trials = training.open()
    for number, trial in enumerate(trials):
        training.rest(trial, -0.1 * number)
    fence = training.row(trials[0]).fence
    assert training.go_on(trials[:2], {trials[2]: "r" * 2000})
    assert training.groups[1:] == [(queue.TRIAL, trials[:2])]
    assert [training.row(trial).state for trial in trials] == ["queued", "queued", "succeeded"]
    assert training.row(trials[0]).fence == fence + 1
    assert training.events(trials[0])[-1] == {"state": "queued"}
    assert [one.until for one in training.trial_statuses()] == [0.5, 0.5, 0.25]
    assert training.trial_statuses()[2].ended == "r" * 1024
    result = {"score": -0.2, "ended": "r" * 2000}
    assert training.row(trials[2]).result == result
    assert training.events(trials[2])[-1] == {"state": "succeeded", "result": result}
    assert training.row(training.id).state == "waiting"
    assert training.rest(trials[0], -0.05, 0.5)
    assert training.trial_statuses()[0].rungs == 2


def test_without_survivors_the_training_goes_on_at_once(training: Sweep) -> None:
    trials = training.open()
    for trial in trials:
        training.rest(trial, -0.1)
    training.single.clear()
    assert training.go_on([], dict.fromkeys(trials, ""))
    assert training.single == [(queue.TRAIN, training.id)]
    assert [one.ended for one in training.trial_statuses()] == [None] * 3  # they went to their end
    assert training.row(trials[0]).result == {"score": -0.1, "ended": None}


def test_a_training_that_is_to_be_cancelled_sends_nobody_on(training: Sweep) -> None:
    trials = training.open()
    for trial in trials:
        training.rest(trial, -0.1)
    lease = training.claim(training.id)
    service.cancel(training.database, "default", training.id)
    assert not training.go_on(trials, {}, lease)
    assert len(training.groups) == 1


def test_a_trial_that_is_to_be_cancelled_does_not_rest(training: Sweep) -> None:
    trials = training.open()
    lease = training.claim(trials[0])
    service.cancel(training.database, "default", trials[0])
    outcome = sweeps.Outcome(0.25, -0.1, {}, b"policy")
    assert sweeps.rest(training.database, lease, outcome, b"learner") is False
    assert training.row(trials[0]).state == "running"
    assert training.trial_statuses()[0].rungs == 0


def test_a_trial_rests_no_more_once_its_training_is_over(training: Sweep) -> None:
    trials = training.open()
    lease = training.claim(trials[0])
    with training.database.session() as session:
        session.get_one(Job, training.id).state = "failed"
    outcome = sweeps.Outcome(0.25, -0.1, {}, b"policy")
    assert sweeps.rest(training.database, lease, outcome, b"learner") is True
    assert training.row(trials[0]).state == "cancelled"
    assert training.trial_statuses()[0].score is None
    assert training.trial_statuses()[0].failed == "cancelled"


def test_why_a_trial_failed_is_known(training: Sweep) -> None:
    trials = training.open()
    with training.database.session() as session:
        for trial, error in zip(trials, ({"detail": "no memory"}, {}, None), strict=True):
            job = session.get_one(Job, trial)
            job.state, job.error = "failed", error
    assert [one.failed for one in training.trial_statuses()] == ["no memory", "failed", "failed"]

"""Sweeps on real databases: SQL says who does what, messages only wake up; they may be lost, late and doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select

from app import queue
from app.agents import service as agent_service
from app.agents.repository import AGENTS
from app.agents.schemas import TrainRequest
from app.database.engine import Database
from app.database.tables import Agent, Job, Trial, Workload
from app.domain_models import service as domain_models
from app.jobs import lease as leases
from app.jobs import repository as listing
from app.jobs import service, sweeps
from app.kinds.iterative.layout import Layout
from app.settings import Settings
from tests.planted import planted_spec, planted_table
from workers.evaluation.headroom import TUNED
from workers.kinds.iterative.training import IterativeTraining
from workers.kinds.iterative.tuning import NEUTRAL, artifact_of
from workers.learning.execution import ExecutionError
from workers.learning.training.driver import LEARNING, PlannedPolicy
from workers.learning.training.request import Bracket, Decision
from workers.learning.training.trial import Trial as Learner
from workers.tasks import trained
from workers.tasks.base import RunningJob, perform
from workers.tasks.online import train

SETTINGS = Settings(lease_seconds=20, heartbeat_seconds=0.2, progress_seconds=0, checkpoint_seconds=0, max_attempts=2)
SPEC = planted_spec(
    iterations=6,
    resources=[{"name": "executors", "minimum": 4, "maximum": 10, "max_steps": 1, "initial": 8}],
    metrics=[{"name": "iteration_seconds", "target": 66.0, "scope": "run"}],
)
WORK: dict[str, Callable[[RunningJob], None]] = {queue.TRAIN: train, queue.TRIAL: trained.trial}
TABULAR: dict[str, Any] = {"algorithm": "tabular_q", "seeds": 4, "budget": 1_000, "seed": 5}
TWO: dict[str, Any] = {**TABULAR, "seeds": 2}
on_sqlite = pytest.mark.parametrize("any_database", ["sqlite"], indirect=True)  # others tell what databases differ in


class Post:
    """Messages to workers; `deliver` does what they ask for, one after the other."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.waiting: list[tuple[str, str]] = []
        self.groups: list[int] = []

    def enqueue(self, task: str, identifier: str) -> None:
        self.waiting.append((task, identifier))

    def enqueue_group(self, task: str, identifiers: Sequence[str]) -> None:
        self.groups.append(len(identifiers))
        self.waiting += [(task, identifier) for identifier in identifiers]

    def one(self) -> str:
        task, identifier = self.waiting.pop(0)
        perform(self.database, SETTINGS, identifier, WORK[task])
        return task

    def deliver(self) -> list[str]:
        done = []
        while self.waiting:
            done.append(self.one())
        return done


@pytest.fixture
def post(any_database: Database, monkeypatch: pytest.MonkeyPatch) -> Post:
    monkeypatch.setattr("workers.kinds.iterative.training.VALIDATION_EPISODES", 128)
    post = Post(any_database)
    monkeypatch.setattr(queue, "enqueue", post.enqueue)
    monkeypatch.setattr(queue, "enqueue_group", post.enqueue_group)
    return post


def ask(database: Database, **request: Any) -> str:
    """A workload with a model, and a training asked for; the job's id."""
    with database.session() as session:
        workload = Workload(name="planted", kind="iterative", spec=SPEC.model_dump(mode="json"))
        session.add(workload)
        session.flush()
        domain_models.publish(session, workload.id, 1, {}, planted_table(SPEC, effect=0.3, noise=0.1).to_bytes())
    return agent_service.request_training(database, "default", "planted", TrainRequest(**request)).id


def row(database: Database, job_id: str) -> Job:
    with database.reading() as session:
        return session.get_one(Job, job_id)


def trials(database: Database, job_id: str) -> list[sweeps.TrialStatus]:
    with database.reading() as session:
        return sweeps.trial_statuses(session, job_id)


def states(database: Database, job_id: str) -> list[str]:
    return [row(database, trial.job_id).state for trial in trials(database, job_id)]


def published(database: Database) -> list[Agent]:
    with database.reading() as session:
        return list(session.scalars(select(Agent)))


def events(database: Database, job_id: str) -> list[dict[str, Any]]:
    with database.reading() as session:
        return [event.data for event in listing.events(session, job_id, 0, 1000)]


class Killed(BaseException):
    """A worker is gone, without a word."""


class Compared(NamedTuple):
    """A policy at a comparison."""

    validation: float
    artifact: bytes = b"new"


def test_seeds_compete_in_groups_and_the_best_is_published(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TABULAR)
    done = post.deliver()
    assert post.groups == [4, 2, 1]  # each rung is a group
    assert done.count(queue.TRIAL) == 7
    assert done.count(queue.TRAIN) == 4
    assert (row(any_database, job).state, row(any_database, job).attempts) == ("succeeded", 1)
    (agent,) = published(any_database)
    bracket = agent.report["bracket"]
    assert sorted(trial["rungs"] for trial in bracket) == [1, 1, 2, 3]
    assert [trial["seed"] for trial in bracket] == [5, 6, 7, 8]
    chosen = next(trial for trial in bracket if trial["chosen"])
    assert chosen["score"] == max(trial["score"] for trial in bracket)
    assert agent.seed == agent.report["seed"] == chosen["seed"]
    assert sum("number" in (trial["ended"] or "") for trial in bracket) == 3
    assert agent.report["environment_steps"] == sum(trial["steps"] for trial in bracket)
    assert states(any_database, job) == ["succeeded"] * 4
    assert all(trial.artifact is None for trial in trials(any_database, job))


@on_sqlite
def test_the_training_tells_of_every_trial(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TABULAR)
    post.deliver()
    reported_events = [event for event in events(any_database, job) if event.get("phase") == "learning"]
    assert {event["trial"] for event in reported_events} == {0, 1, 2, 3}
    assert {"seed", "algorithm", "rung", "steps", "episode_return", "loss", "exploration"} <= set(reported_events[0])
    assert all(event["steps_per_second"] > 0 for event in reported_events)
    shares = [event["progress"] for event in events(any_database, job) if "progress" in event]
    assert shares == sorted(shares)
    assert "measuring" not in {event.get("phase") for event in events(any_database, job)}  # it was too short for that
    judging, last = events(any_database, job)[-2:]
    assert (judging["phase"], judging["algorithm"], judging["progress"]) == ("judging", "tabular_q", LEARNING)
    assert judging["eta_seconds"] > 0
    assert last["result"] == {"agent": 1}


def test_a_training_that_plans_tells_so_at_its_beginning_and_keeps_the_plan(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also tells what its learners have to beat, where that was measured, even if it told something just before."""
    monkeypatch.setattr(trained, "yardsticks", lambda *_: {"hold": -0.5})
    monkeypatch.setattr(f"{__name__}.SETTINGS", SETTINGS.model_copy(update={"progress_seconds": 60.0}))
    job = ask(any_database, algorithm="auto", budget=1_000)
    post.one()
    fields = {"state": "running", "progress": 0.0, "eta_seconds": None, "phase": "planning", "algorithm": "auto"}
    told = [event for event in events(any_database, job) if "phase" in event]
    assert told == [fields, {**fields, "phase": "measuring", "yardsticks": {"hold": -0.5}}]
    assert post.groups == [6]
    with any_database.reading() as session:
        checkpoint = session.get_one(Job, job).checkpoint
        tried = session.scalars(select(Trial.algorithm).where(Trial.parent_id == job)).all()
    assert sorted(tried) == sorted(3 * IterativeTraining.competing)  # of each seed what competes in this kind
    assert checkpoint is not None
    assert trained.SweepStart.unpack(checkpoint).planned.artifact


def test_a_training_whose_worker_is_lost_while_it_plans_begins_anew(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(_problem: IterativeTraining, _budget: int, _margin: float) -> PlannedPolicy:
        raise Killed

    job = ask(any_database, algorithm="auto", budget=1_000)
    with monkeypatch.context() as patched:
        patched.setattr(IterativeTraining, "plan", plan)
        with pytest.raises(Killed):
            post.one()
    assert leases.sweep(any_database, SETTINGS, lambda _: True) == [job]
    post.one()
    assert (row(any_database, job).state, post.groups) == ("waiting", [6])


def test_a_training_that_is_cancelled_while_it_plans_opens_no_trials(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ask(any_database, algorithm="auto", budget=1_000)

    def plan(_problem: IterativeTraining, _budget: int, _margin: float) -> PlannedPolicy:
        service.cancel(any_database, "default", job)
        return PlannedPolicy(why_not="no time")

    monkeypatch.setattr(IterativeTraining, "plan", plan)
    post.one()
    assert row(any_database, job).state == "cancelled"
    assert (trials(any_database, job), post.groups) == ([], [])


@pytest.mark.parametrize(
    ("request_", "state", "opened"),
    [({"algorithm": "auto"}, "succeeded", 0), (TWO, "failed", 0), ({**TWO, "force": True}, "waiting", 2)],
    ids=["auto", "one algorithm", "forced"],
)
def test_where_there_is_nothing_to_win_no_trial_is_opened_unless_forced(
    any_database: Database,
    post: Post,
    monkeypatch: pytest.MonkeyPatch,
    request_: dict[str, Any],
    state: str,
    opened: int,
) -> None:
    tuned = artifact_of(Layout(SPEC), NEUTRAL)

    def plan(_problem: IterativeTraining, _budget: int, _margin: float) -> PlannedPolicy:
        return PlannedPolicy(tuned, -0.1, nothing_to_win="there is nothing to win here", name=TUNED)

    monkeypatch.setattr(IterativeTraining, "plan", plan)
    job = ask(any_database, **{"budget": 1_000, **request_})
    post.one()
    result = row(any_database, job)
    assert (result.state, len(trials(any_database, job))) == (state, opened)
    assert ("there is nothing to win here" in str(result.error)) == (state == "failed")
    assert [agent.algorithm for agent in published(any_database)] == ["tuned_rule"] * (state == "succeeded")


def test_a_training_that_is_cancelled_while_it_compares_ends_at_once(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ask(any_database, **TABULAR)
    post.one()
    outcome = sweeps.Outcome(0.1, -0.5, {"updates": 1}, b"policy")
    while post.waiting[0][0] == queue.TRIAL:
        lease = leases.claim(any_database, post.waiting.pop(0)[1], "w", SETTINGS)
        assert lease is not None
        assert sweeps.rest(any_database, lease, outcome, b"learner")
    decide = Bracket.decide

    def decided(*arguments: Any) -> Decision:
        service.cancel(any_database, "default", job)
        return decide(*arguments)

    monkeypatch.setattr(Bracket, "decide", decided)
    post.one()
    assert row(any_database, job).state == "cancelled"
    assert (states(any_database, job), post.waiting) == (["cancelled"] * 4, [])


@on_sqlite
def test_a_training_whose_worker_is_lost_while_it_judges_judges_again_and_opens_no_trials(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ask(any_database, **TWO)
    post.one()
    group, post.waiting = post.waiting, []
    for _, trial in group:
        held = leases.claim(any_database, trial, "w", SETTINGS)
        assert held is not None
        assert sweeps.rest(any_database, held, sweeps.Outcome(1.0, -0.5, {}, b"policy"), b"learner")

    def killed(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(Bracket, "decide", lambda *_: Decision((), {0: "", 1: ""}))
    monkeypatch.setattr(trained, "conclude", killed)
    for _ in range(2):
        with pytest.raises(Killed):
            post.one()
        assert events(any_database, job)[-1]["phase"] == "judging"
        leases.sweep(any_database, SETTINGS, lambda _: True)
    assert post.groups == [2]


@on_sqlite
def test_a_trial_begins_by_the_plan_of_its_training(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = PlannedPolicy(artifact_of(Layout(SPEC), NEUTRAL), -0.1, name=TUNED)
    monkeypatch.setattr(IterativeTraining, "plan", lambda *_: planned)
    prepared: list[PlannedPolicy] = []

    def prepare(_learner: Learner, plan: PlannedPolicy) -> None:
        prepared.append(plan)
        raise Killed

    ask(any_database, **TWO)
    post.one()
    monkeypatch.setattr(Learner, "prepare", prepare)
    with pytest.raises(Killed):
        post.one()
    assert prepared == [planned]


def test_nobody_holds_a_training_whose_trials_are_at_work(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TABULAR)
    post.one()
    waiting = row(any_database, job)
    assert (waiting.state, waiting.owner) == ("waiting", None)
    assert service.get(any_database, "default", job).state == "running"
    assert leases.claim(any_database, job, "eager", SETTINGS) is None
    assert leases.sweep(any_database, SETTINGS, lambda _: True) == []
    with any_database.reading() as session:
        assert AGENTS.newest(session, waiting.workload_id) is None


def test_doubled_and_lost_messages_change_nothing(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TABULAR)
    while post.waiting:
        task, identifier = post.waiting[0]
        post.waiting.insert(1, (task, identifier))
        post.one()
        post.one()
        if not post.waiting:  # this one was lost: the sweeper finds what is queued
            leases.sweep(any_database, SETTINGS.model_copy(update={"requeue_seconds": 1e-9}))
    assert row(any_database, job).state == "succeeded"
    assert len(published(any_database)) == 1
    assert [trial.rungs for trial in trials(any_database, job)].count(3) == 1


def test_the_last_of_many_to_come_to_rest_wakes_the_training_once(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TABULAR)
    post.one()
    group, post.waiting = post.waiting, []
    claimed = [leases.claim(any_database, trial, f"w{trial}", SETTINGS) for _, trial in group]
    start = threading.Barrier(len(claimed))
    outcome = sweeps.Outcome(0.1, -0.5, {"updates": 1}, b"policy")

    def rest(lease: leases.Lease) -> None:
        start.wait()
        assert sweeps.rest(any_database, lease, outcome, b"learner")

    threads = [threading.Thread(target=rest, args=(lease,)) for lease in claimed if lease is not None]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(threads) == 4
    assert post.waiting == [(queue.TRAIN, job)]
    assert row(any_database, job).state == "queued"


def killed(monkeypatch: pytest.MonkeyPatch, database: Database, job_id: str, chunks: int) -> None:
    """Do a trial's job for some chunks, and then no more."""
    advance = Learner.advance
    done: list[float] = []

    def advances(learner: Learner) -> None:
        if len(done) == chunks:
            raise Killed
        advance(learner)
        done.append(learner.share)

    with monkeypatch.context() as patched:
        patched.setattr(Learner, "advance", advances)
        with pytest.raises(Killed):
            perform(database, SETTINGS, job_id, trained.trial)


@on_sqlite
def test_a_killed_trial_is_taken_up_where_it_was(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.learning.training.trial.CHUNK_STEPS", 1_000)
    job = ask(any_database, **{**TABULAR, "seeds": 2, "budget": 30_000})
    post.one()
    first = post.waiting[0][1]
    killed(monkeypatch, any_database, post.waiting.pop(0)[1], chunks=1)
    assert row(any_database, first).state == "running"
    share = trials(any_database, job)[0].share
    assert 0 < share < 0.1
    post.one()  # the other trial
    assert row(any_database, job).state == "waiting"
    assert leases.sweep(any_database, SETTINGS, lambda _: True) == [first]
    restored: list[float] = []
    restore = Learner.restore

    def watched(learner: Learner, data: bytes) -> None:
        restore(learner, data)
        restored.append(learner.share)

    monkeypatch.setattr(Learner, "restore", watched)
    post.deliver()
    assert restored[0] == pytest.approx(share)
    assert max(event.get("attempt", 0) for event in events(any_database, first)) == 2
    assert row(any_database, job).state == "succeeded"
    assert len(published(any_database)) == 1


def test_a_fenced_out_trial_writes_nothing(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TWO)
    post.one()
    trial = post.waiting[0][1]
    old = leases.claim(any_database, trial, "old", SETTINGS)
    assert old is not None
    leases.sweep(any_database, SETTINGS, lambda _: True)
    outcome = sweeps.Outcome(0.1, 99.0, {}, b"stale")
    with pytest.raises(leases.LeaseLost):
        sweeps.rest(any_database, old, outcome, b"stale")
    with pytest.raises(leases.LeaseLost):
        sweeps.report_progress(any_database, old, sweeps.TrialProgress(0.1, 1.0, 1.0, {}, 0.9), b"stale")
    assert trials(any_database, job)[0].score is None
    post.deliver()
    assert row(any_database, job).state == "succeeded"


def test_trials_are_cancelled_with_their_training(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TABULAR)
    post.one()
    running = leases.claim(any_database, post.waiting[0][1], "w", SETTINGS)
    assert running is not None
    assert service.cancel(any_database, "default", job).state == "cancelled"
    assert states(any_database, job) == ["running", "cancelled", "cancelled", "cancelled"]
    assert leases.heartbeat(any_database, running) is True
    outcome = sweeps.Outcome(0.1, -0.5, {}, b"policy")
    assert sweeps.rest(any_database, running, outcome, b"learner") is False
    leases.cancel(any_database, running)
    post.deliver()
    assert states(any_database, job) == ["cancelled"] * 4
    assert published(any_database) == []


def test_a_trial_that_is_cancelled_while_it_is_compared_ends_at_once(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was compared where it was to be, its training knows how far it is, and its processes are let go."""
    job = ask(any_database, **{**TABULAR, "budget": 1_000})
    post.one()
    trial, closed, close = post.waiting[0][1], [], Learner.close

    def compared(_learner: Learner) -> Compared:
        service.cancel(any_database, "default", trial)
        return Compared(-0.2)

    def closes(learner: Learner) -> None:
        closed.append(learner.share)
        close(learner)

    monkeypatch.setattr(Learner, "compared", compared)
    monkeypatch.setattr(Learner, "close", closes)
    post.one()
    assert row(any_database, trial).state == "cancelled"
    result = trials(any_database, job)[0]
    assert result.score is None
    assert closed == [result.share]
    assert result.until <= result.share < 1.1 * result.until


def test_a_trial_whose_training_has_ended_fails_and_says_so(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TABULAR)
    post.one()
    with any_database.session() as session:  # between the claim and the look at its training
        ended = session.get_one(Job, job)
        ended.state, ended.checkpoint = "failed", None
    trial = post.waiting[0][1]
    post.one()
    failed = row(any_database, trial)
    assert failed.error is not None
    assert failed.state == "failed"
    assert "the training that this is a trial of has ended" in failed.error["detail"]


@on_sqlite
def test_a_trial_that_fails_leaves_the_others_to_it(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = Learner.advance

    def fails(learner: Learner) -> None:
        if learner.entry.seed == 6:
            raise ExecutionError("its cluster is away")
        advance(learner)

    monkeypatch.setattr(Learner, "advance", fails)
    job = ask(any_database, **TWO)
    post.deliver()
    assert row(any_database, job).state == "succeeded"
    bracket = published(any_database)[0].report["bracket"]
    assert (bracket[1]["score"], bracket[1]["ended"]) == (None, "its cluster is away")
    assert states(any_database, job).count("failed") == 1


def test_without_any_trial_the_training_fails_and_says_why(
    any_database: Database, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(learner: Learner) -> None:
        raise ExecutionError("its cluster is away")

    monkeypatch.setattr(Learner, "advance", fails)
    job = ask(any_database, **TABULAR)
    post.deliver()
    failed = row(any_database, job)
    assert failed.state == "failed"
    assert failed.error is not None
    assert "tabular_q: its cluster is away" in failed.error["detail"]
    assert failed.error["status"] == 422


@on_sqlite
def test_trials_that_lose_their_workers_too_often_hold_nobody_up(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TWO)
    post.one()
    unlucky = post.waiting.pop(0)[1]
    for attempt in range(SETTINGS.max_attempts):
        assert leases.claim(any_database, unlucky, f"w{attempt}", SETTINGS) is not None
        leases.sweep(any_database, SETTINGS, lambda _: True)
    post.deliver()
    assert row(any_database, unlucky).state == "failed"
    assert row(any_database, job).state == "succeeded"


@pytest.mark.parametrize(
    ("before", "now", "data"),
    [(None, -0.2, b"new"), (-0.3, -0.2, b"new"), (-0.2, -0.2, b"old"), (-0.1, -0.2, b"old")],
)
def test_a_trial_rests_with_the_best_policy_that_it_has_had(before: float | None, now: float, data: bytes) -> None:
    learner = SimpleNamespace(compared=lambda: Compared(now), share=0.5, report={"steps": 9})
    old = None if before is None else b"old"
    stood = sweeps.TrialStatus("job", 0, "dqn", 1, 1, 0.5, 0.5, before, None, None, {"updates": 1}, old)
    untyped: Any = learner
    outcome = trained._outcome(untyped, stood)
    assert (outcome.share, outcome.artifact, outcome.report["steps"]) == (0.5, data, 9)
    assert outcome.score == (now if data == b"new" else before)


@on_sqlite
def test_a_patched_spec_waits_for_the_next_training(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TWO)
    post.one()
    with any_database.session() as session:
        workload = session.get_one(Workload, row(any_database, job).workload_id)
        workload.spec = planted_spec(iterations=9).model_dump(mode="json")
        workload.spec_version = 2
    post.deliver()
    assert row(any_database, job).state == "succeeded"
    assert published(any_database)[0].spec_version == 1


def test_deleting_the_workload_takes_its_trials_along(any_database: Database, post: Post) -> None:
    job = ask(any_database, **TABULAR)
    post.one()
    with any_database.session() as session:
        session.delete(session.get_one(Workload, row(any_database, job).workload_id))
    post.deliver()
    with any_database.reading() as session:
        assert session.query(Job).count() == session.query(Trial).count() == 0


def test_jobs_are_listed_without_trials(any_database: Database, post: Post) -> None:
    from app.http.pagination import PageRequest

    job = ask(any_database, **TABULAR)
    post.one()
    for state in (None, "running"):
        result, _ = service.list_jobs(any_database, "default", PageRequest(10), None, state)
        assert [listed.id for listed in result.rows] == [job]
    trial = service.get(any_database, "default", trials(any_database, job)[0].job_id)
    assert (trial.type, trial.state) == ("trial", "queued")

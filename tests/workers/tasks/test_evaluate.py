"""Evaluations as jobs: judged in chunks, resumed, cancelled, and published with their page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from app import queue
from app.agents import service as agents
from app.agents.evidence import TRAINED_FOR, trained_for
from app.agents.service import TrainingResult
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Evaluation, Execution, Job, Workload
from app.domain_models import service as domain_models
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationRequest, HeldOut
from app.jobs import repository
from app.jobs import service as jobs
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import save
from app.kinds.iterative.spec import Feature, Spec
from app.kinds.registry import read_spec
from app.settings import Settings
from app.workloads import service as workloads
from tests.planted import planted_spec, planted_table
from workers.evaluation import protocol
from workers.evaluation.protocol import choose
from workers.inputs import HoldOut
from workers.tasks import evaluate as task
from workers.tasks import inputs
from workers.tasks.base import RunningJob, never, perform
from workers.tasks.evaluate import evaluate, finite

TENANT = "default"
SETTINGS = Settings(lease_seconds=60, heartbeat_seconds=5, progress_seconds=0, checkpoint_seconds=0)
QUIET = SETTINGS.model_copy(update={"progress_seconds": 100.0, "checkpoint_seconds": 100.0})
SPEC: Spec = planted_spec(
    name="tiny",
    resources=[{"name": "executors", "minimum": 4, "maximum": 8, "max_steps": 1, "initial": 6}],
    metrics=[{"name": "iteration_seconds", "unit": "s", "target": 60.0, "scope": "run"}],
    iterations=5,
)
TINY: dict[str, Any] = {"workload": "tiny", "agents": [1], "level": "L1", "episodes": 8}


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk per unit of work, and little to tune."""
    monkeypatch.setattr(protocol, "CHUNK_SECONDS", 0.0)
    quick: dict[str, Any] = {"trials": 2, "tuning_episodes": 4, "demonstrations": 2}
    monkeypatch.setattr(task, "Settings", partial(protocol.Settings, **quick))


@pytest.fixture
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plots: they take longer than all the rest."""
    monkeypatch.setattr("workers.evaluation.report.page.page", lambda report: f"<!doctype html>{report['workload']}")


undrawn = pytest.mark.usefixtures("_undrawn")


def prepare(database: Database, spec: Spec = SPEC, executions: int = 12) -> None:
    """A workload with samples, a model, and an agent for each of two heuristics, the first of which is the champion."""
    workloads.register(database, TENANT, spec)
    with database.session() as session:
        workload = workloads.require(session, TENANT, spec.name)
        for number in range(executions):
            data = measured(number)
            row = Execution(workload_id=workload.id, name=f"e{number}", digest=str(number), iterations=len(data))
            row.data = data.astype("<f8").tobytes()
            session.add(row)
        domain_models.publish(session, workload.id, 1, {"family": "planted"}, planted_table(spec).to_bytes())
        for rule in ("model_predictive", "hold"):
            artifact = save(HeuristicPolicy({"heuristic": rule}), Layout(spec))
            report = {"algorithm": rule, "curve": [[0, -0.5], [100, -0.1]], TRAINED_FOR: trained_for(spec)}
            agents.publish(
                session, workload.id, TrainingResult(1, 1, rule, 0, report, artifact, rule != "hold", "good enough")
            )


def measured(number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An execution at one allocation: iteration, executors, seconds, [5, 3]."""
    random = np.random.default_rng(number)
    allocation = 4.0 + number % 5
    seconds = (2 + 60 / allocation + allocation / 10) * np.exp(random.normal(0, 0.1) + random.normal(0, 0.1, 5))
    return np.column_stack([np.arange(5), np.full(5, allocation), seconds])


def ask(database: Database, **change: Any) -> str:
    """Ask for an evaluation; its job's id."""
    request = EvaluationRequest.model_validate({**TINY, **change})
    return evaluations.request_evaluation(database, TENANT, request).id


def do(database: Database, job_id: str, is_stopping: Callable[[], bool] = never, settings: Settings = SETTINGS) -> Job:
    """Have a worker do the job, as far as it comes; its row."""
    perform(database, settings, job_id, evaluate, is_stopping)
    with database.reading() as session:
        return session.get_one(Job, job_id)


def report_of(database: Database, job: Job) -> dict[str, Any]:
    assert job.state == "succeeded", job.error
    assert job.result is not None
    return evaluations.get(database, TENANT, job.result["evaluation"]).report


def events(database: Database, job_id: str) -> list[dict[str, Any]]:
    with database.reading() as session:
        return [event.data for event in repository.events(session, job_id, 0, 1000)]


def test_agents_are_judged_and_published_with_their_page(database: Database) -> None:
    prepare(database)
    job = do(database, ask(database, agents=["champion", 2], level="L4"), settings=QUIET)
    report = report_of(database, job)
    assert [level["level"] for level in report["levels"] if level["available"]] == [
        "train",
        "L0",
        "L1",
        "L2",
        "L3",
        "L4",
    ]
    assert report["model"] == 1
    assert (report["held_out"]["executions"] >= 3, report["held_out"]["reason"]) == (True, None)
    assert report["candidates"][0]["curve"] == [[0, -0.5], [100, -0.1]]
    assert "needs 2 or more finished runs" in report["off_policy"]["1"]["reason"]
    assert job.result is not None
    result = evaluations.get(database, TENANT, job.result["evaluation"])
    assert [verdict.agent for verdict in result.verdicts] == [1, 2]
    assert result.verdicts[0].level == report["candidates"][0]["class"]
    page = evaluations.page(database, TENANT, result.id).decode()
    assert page.startswith("<!doctype html>")
    assert result.verdicts[1].reason.replace("'", "&#x27;") in page


@undrawn
def test_progress_is_told_level_by_level(database: Database) -> None:
    prepare(database)
    job_id = ask(database)
    do(database, job_id)
    reported_events = events(database, job_id)
    fractions = [event["progress"] for event in reported_events if event["state"] == "running"]
    assert fractions == sorted(fractions)
    assert {event.get("level") for event in reported_events} >= {"train", "L0", "L1"}
    assert {event.get("phase") for event in reported_events} >= {"playing", "checking"}
    assert reported_events[-1]["result"].keys() == {"evaluation"}


def stopping_after(chunks: int) -> Callable[[], bool]:
    """A worker that is told to stop at its n-th look."""
    looks = iter(range(chunks))
    return lambda: next(looks, None) is None


def without_time(report: dict[str, Any]) -> dict[str, Any]:
    return {**report, "seconds": None, "tuner": {**report["tuner"], "seconds": None}}


@undrawn
def test_a_resumed_evaluation_finds_the_same(any_database: Database) -> None:
    prepare(any_database)
    whole = report_of(any_database, do(any_database, ask(any_database, level="L0"), settings=QUIET))
    job_id = ask(any_database, level="L0")
    stopped = do(any_database, job_id, stopping_after(20))
    assert (stopped.state, stopped.attempts) == ("queued", 0)
    before = len(events(any_database, job_id))
    resumed = do(any_database, job_id)
    assert without_time(report_of(any_database, resumed)) == without_time(whole)
    again = [event["units"] for event in events(any_database, job_id)[before:] if "units" in event]
    assert again[0] > 20  # it went on, it did not begin again


@undrawn
def test_a_killed_worker_costs_no_more_than_its_last_chunk(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(database)
    job_id = ask(database, level="L0")

    class Killed(BaseException):
        """Nothing after it is done."""

    def work(job: RunningJob) -> None:
        progress = job.progress

        def dying(fraction: float, eta: float | None, live: dict[str, Any], checkpoint: Callable[[], bytes]) -> None:
            progress(fraction, eta, live, checkpoint)
            if fraction > 0.5:
                raise Killed

        monkeypatch.setattr(job, "progress", dying)
        evaluate(job)

    with pytest.raises(Killed):
        perform(database, SETTINGS, job_id, work)
    with database.session() as session:
        row = session.get_one(Job, job_id)
        assert row.state == "running"
        row.lease_expires_at = utc_now() - timedelta(seconds=1)
    done = do(database, job_id)
    assert (done.state, done.attempts) == ("succeeded", 2)
    reported_events = [
        (event["units"], event["phase"] == "done") for event in events(database, job_id) if "units" in event
    ]
    assert reported_events == sorted(set(reported_events))  # nothing was done twice
    with database.reading() as session:
        assert session.query(Evaluation).count() == 1


def test_a_cancelled_evaluation_ends_at_its_next_chunk(database: Database) -> None:
    prepare(database)
    job_id, looks = ask(database), iter(range(1000))

    def cancel_on_the_fifth() -> bool:
        if next(looks) == 5:
            jobs.cancel(database, TENANT, job_id)
        return False

    assert do(database, job_id, cancel_on_the_fifth).state == "cancelled"
    with database.reading() as session:
        assert session.query(Evaluation).count() == 0


@undrawn
def test_a_checkpoint_of_another_spec_is_not_gone_on_from(database: Database) -> None:
    prepare(database)
    job_id = ask(database, level="L0")
    do(database, job_id, stopping_after(4))
    workloads.change(database, TENANT, "tiny", {"targets": {"iteration_seconds": 50.0}})
    before = len(events(database, job_id))
    done = do(database, job_id)
    again = [event["units"] for event in events(database, job_id)[before:] if "units" in event]
    assert (done.state, again[0]) == ("succeeded", 1)


@undrawn
def test_a_checkpoint_of_an_earlier_judge_is_not_gone_on_from(database: Database) -> None:
    prepare(database)
    job_id = ask(database, level="L0")
    do(database, job_id, stopping_after(4))
    with database.session() as session:
        row = session.get_one(Job, job_id)
        row.checkpoint = msgspec.msgpack.encode((1, b"what it could not read"))
    before = len(events(database, job_id))
    done = do(database, job_id)
    again = [event["units"] for event in events(database, job_id)[before:] if "units" in event]
    assert (done.state, again[0]) == ("succeeded", 1)


@undrawn
def test_too_few_executions_are_why_l3_cannot_be_judged(database: Database) -> None:
    prepare(database, executions=2)
    report = report_of(database, do(database, ask(database, level="L3", held_out={"share": 0.5}), settings=QUIET))
    level = next(level for level in report["levels"] if level["level"] == "L3")
    assert level["available"] is False
    assert "the 2 held-out executions can't carry a domain model of their own" in level["reason"]
    assert report["candidates"][0]["class"] != "L3"


@undrawn
def test_named_executions_are_held_out(database: Database) -> None:
    prepare(database)
    names = ["e1", "e2", "e3", "e4"]
    job = do(database, ask(database, level="L3", held_out={"executions": names}), settings=QUIET)
    held_out = report_of(database, job)["held_out"]
    assert (held_out["names"], held_out["unseen"]) == (names, 0)
    assert "all of them were also among those" in held_out["note"]


def test_an_agent_of_another_layout_fails_the_job_with_its_reason(database: Database) -> None:
    prepare(database)
    other = planted_spec(name="other", metrics=[metric.model_dump() for metric in SPEC.metrics], iterations=5)
    other = other.model_copy(update={"features": (Feature(name="size", minimum=0.0, maximum=1.0),)})
    with database.session() as session:
        workload = workloads.require(session, TENANT, "tiny")
        artifact = save(HeuristicPolicy({"heuristic": "hold"}), Layout(other))
        agents.publish(session, workload.id, TrainingResult(1, 1, "hold", 0, {}, artifact, False, "for another"))
    failed = do(database, ask(database, agents=[3]))
    assert failed.error is not None
    assert (failed.state, failed.error["type"], failed.error["status"]) == (
        "failed",
        "/problems/incompatible-agent",
        422,
    )


def price(database: Database, executors: float, name: str = "tiny") -> None:
    """Change what executors cost."""
    workloads.change(database, TENANT, name, {"prices": {"executors": executors}})


def verdicts_of(database: Database, job: Job) -> dict[int, tuple[str | None, str]]:
    """Class and reason of each agent."""
    assert job.state == "succeeded", job.error
    assert job.result is not None
    verdicts = evaluations.get(database, TENANT, job.result["evaluation"]).verdicts
    return {verdict.agent: (verdict.level, verdict.reason) for verdict in verdicts}


def outdated(database: Database, job: Job) -> list[bool]:
    """Of each agent whether nothing of it was assessed."""
    assert job.result is not None
    return [one.outdated for one in evaluations.get(database, TENANT, job.result["evaluation"]).verdicts]


@pytest.mark.servers
def test_nothing_is_assessed_of_an_agent_that_was_trained_for_another_price(postgres_database: Database) -> None:
    prepare(postgres_database)
    prepare(postgres_database, SPEC.model_copy(update={"name": "other"}))
    price(postgres_database, 1.3)
    with postgres_database.session() as session:
        workload = workloads.require(session, TENANT, "tiny")
        spec = read_spec(workload.spec)
        anew = save(HeuristicPolicy({"heuristic": "model_predictive"}), Layout(spec))
        terms = {TRAINED_FOR: trained_for(spec)}
        agents.publish(
            session, workload.id, TrainingResult(2, 1, "anew", 0, terms, anew, False, "for the present price")
        )
    alone = do(postgres_database, ask(postgres_database, agents=[1, 2], level="L3"), settings=QUIET)
    text = "is outdated: retrain (the price of executors is 1.3, and it was trained for 1)"
    assert verdicts_of(postgres_database, alone) == {
        version: (None, f"agent {version} {text}. Nothing of it is assessed.") for version in (1, 2)
    }
    assert outdated(postgres_database, alone) == [True, True]
    report = report_of(postgres_database, alone)
    assert (report["policies"], report["off_policy"]) == ([], {})
    assert {level["reason"] for level in report["levels"]} >= {"nothing is assessed: every agent is outdated"}
    assert not any(level["available"] for level in report["levels"])
    assert alone.result is not None
    assert text in evaluations.page(postgres_database, TENANT, alone.result["evaluation"]).decode()
    job = do(postgres_database, ask(postgres_database, agents=[1, 3]), settings=QUIET)
    both = verdicts_of(postgres_database, job)
    assert (both[1][0], both[3][0]) == (None, "L1")
    assert outdated(postgres_database, job) == [True, False]
    other = do(postgres_database, ask(postgres_database, workload="other", agents=[1]), settings=QUIET)
    assert verdicts_of(postgres_database, other)[1][0] == "L1"


@undrawn
def test_an_agent_is_outdated_by_what_the_workload_is_when_a_worker_begins(database: Database) -> None:
    prepare(database)
    first, second = ask(database), ask(database)
    price(database, 0.5)
    assert verdicts_of(database, do(database, first, settings=QUIET))[1][0] is None
    price(database, 1.05)  # within what it was trained for
    assert verdicts_of(database, do(database, second, settings=QUIET))[1][0] == "L1"


def test_a_deleted_workload_ends_its_evaluation_quietly(database: Database) -> None:
    prepare(database)
    job_id, signal_sent = ask(database), threading.Event()

    def delete() -> bool:
        if not signal_sent.is_set():
            signal_sent.set()
            workloads.delete(database, TENANT, "tiny", force=True)
        return False

    perform(database, SETTINGS, job_id, evaluate, delete)
    with database.reading() as session:
        assert session.get(Job, job_id) is None
        assert session.query(Workload).count() == 0


STORED = [f"e{number}" for number in range(20)]


def after(number: int) -> frozenset[str]:
    """Those that came later."""
    return frozenset(STORED[number + 1 :])


def test_what_came_after_the_agents_model_is_held_out_first() -> None:
    chosen = choose(STORED, HoldOut(share=0.25, unseen=after(15)), 0)
    assert (set(chosen.names) >= {"e16", "e17", "e18", "e19"}, len(chosen.names), chosen.unseen) == (True, 5, 4)
    later = choose(STORED, HoldOut(share=0.25, unseen=after(9)), 0)
    assert all(int(name[1:]) > 9 for name in later.names)
    assert later.unseen == 5


def test_what_came_after_the_agents_model_is_unseen(database: Database) -> None:
    prepare(database)
    with database.session() as session:
        workload = workloads.require(session, TENANT, "tiny")
        session.query(Execution).filter_by(name="e7").one().created_at = utc_now() + timedelta(hours=1)
        requested = inputs.held_out(session, workload, HeldOut(share=0.5), [1], [])
        unknown = inputs.held_out(session, workload, HeldOut(), [99], [])
    assert (requested.share, requested.executions, requested.unseen) == (0.5, None, {"e7"})
    assert len(unknown.unseen) == 12  # nothing is known of that model


def test_a_share_that_cannot_carry_a_model_grows_up_to_half() -> None:
    grown = choose(STORED, HoldOut(share=0.2), 0, carries=lambda names: len(names) >= 7)
    assert len(grown.names) == 7
    assert len(choose(STORED, HoldOut(share=0.2), 0, carries=lambda _names: False).names) == 4


def test_the_same_seed_holds_out_the_same() -> None:
    drawn = {choose(STORED, HoldOut(share=0.5), seed).names for seed in (1, 1, 2)}
    assert len(drawn) == 2
    assert len(choose(STORED[:2], HoldOut(), 0, fewest=3).names) == 2
    assert choose([], HoldOut(), 0).names == ()


def test_what_json_cannot_carry_is_null() -> None:
    values = {"a": float("nan"), "b": (1.5, float("inf")), 3: {"c": None, "d": "x", "e": True}}
    assert finite(values) == {"a": None, "b": [1.5, None], "3": {"c": None, "d": "x", "e": True}}

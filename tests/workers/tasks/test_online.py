"""A training that goes on: windows, versions in order, what is published and what is not, and who writes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update

from app import queue
from app.agents import service as agents
from app.agents.schemas import OnlineSettings, TrainRequest
from app.agents.service import TrainingResult
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Agent, Iteration, Job, Run, Workload
from app.domain_models import service as domain_models
from app.jobs import lease as leases
from app.jobs import repository
from app.kinds.inference import heuristics
from app.kinds.inference.example import SPEC
from app.kinds.inference.layout import Layout
from app.kinds.inference.scaling import Lookahead
from app.kinds.inference.spec import InferenceSpec
from app.policies.artifact import save
from app.policies.network import NetworkPolicy
from app.settings import Settings
from tests.app.kinds.inference.runs import model
from workers.kinds.simulated.training import WindowTraining
from workers.tasks.base import RunningJob, perform
from workers.tasks.online import train

LONG = OnlineSettings(window_seconds=86_400, steps=1_000)
SETTINGS = Settings()
SERVERS = [{**SPEC["servers"][0], "minimum": 0}]
UNANSWERED: dict[str, Any] = {  # answers are worth nothing, servers cost: whoever turns them off is best
    **SPEC,
    "servers": SERVERS,
    "weights": {"quality": 0, "cost": 1, "fairness": 0, "switching": 0},
}


@pytest.fixture(autouse=True)
def _all_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heuristic keeps all servers on, so that there is something that a thousand steps can learn to do better."""
    monkeypatch.setattr(heuristics, "BASELINES", (heuristics.Composed(Lookahead(), heuristics.AllOn()),))


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda *_: None)
    monkeypatch.setattr(queue, "reaches_this_host_alone", lambda: False)


def prepared(database: Database, spec: dict[str, Any]) -> None:
    """A workload with a domain model, and a run that has reported for four minutes."""
    with database.session() as session:
        workload = Workload(name="vision", kind="inference", spec=spec)
        session.add(workload)
        session.flush()
        layout = Layout(InferenceSpec.model_validate(spec))
        domain_models.publish(session, workload.id, 1, {}, model(layout).to_bytes())
    reported(database, 240)


def reported(database: Database, seconds: int) -> None:
    """A run that has reported a request of each user each second, until now."""
    with database.session() as session:
        workload = session.scalars(select(Workload)).one()
        run = Run(workload_id=workload.id, spec_version=1, start={}, state_vector=[], next_iteration=1, decision={})
        session.add(run)
        session.flush()
        for number in range(seconds):
            arrived = [{"user": user, "at": number + 0.5} for user in ("shop", "archive")]
            report = {"at": number + 1.0, "arrived": arrived}
            session.add(Iteration.of(run.id, number, report, {}, digest=""))


def answering(database: Database, preferred: int) -> None:
    """Have an agent answer that takes one action wherever it is legal."""
    with database.session() as session:
        workload = session.scalars(select(Workload)).one()
        layout = Layout(InferenceSpec.model_validate(workload.spec))
        arrays = {
            "advantage.weight": np.zeros((layout.actions, len(layout.entries)), np.float32),
            "advantage.bias": np.eye(layout.actions, dtype=np.float32)[preferred],
        }
        config = {"algorithm": "dqn", "layers": [], "activation": "relu", "dueling": False}
        artifact = save(NetworkPolicy.build(config, arrays), "inference", layout.entries, layout.actions, {})
        agents.publish(session, workload.id, TrainingResult(1, 1, "dqn", 0, {}, artifact, True, "planted"))


def started(database: Database, **settings: Any) -> str:
    """A training that goes on; its job."""
    online = OnlineSettings.model_validate(LONG.model_dump() | settings)
    request = TrainRequest(algorithm="online", online=online)
    return agents.request_training(database, "default", "vision", request).id


def due(database: Database, job_id: str) -> None:
    """Have the next window be past."""
    with database.session() as session:
        session.execute(update(Job).where(Job.id == job_id).values(not_before=utc_now() - timedelta(seconds=1)))
    assert leases.sweep(database, SETTINGS) == [job_id]


def row(database: Database, job_id: str) -> Job:
    with database.reading() as session:
        return session.get_one(Job, job_id)


def last(database: Database, job_id: str) -> dict[str, Any]:
    """What was told of the last window."""
    with database.reading() as session:
        events = [one.data for one in repository.events(session, job_id, 0, 1_000)]
    result: dict[str, Any] = next(one for one in reversed(events) if one.get("phase") == "waiting")
    return result


def versions(database: Database) -> list[int]:
    with database.reading() as session:
        return list(session.scalars(select(Agent.version).order_by(Agent.version)))


def champion(database: Database) -> int | None:
    with database.reading() as session:
        return session.scalars(select(Workload)).one().champion("default")


def test_what_is_better_on_the_window_is_published_and_answers(database: Database) -> None:
    prepared(database, UNANSWERED)
    job = started(database, windows=2)
    perform(database, SETTINGS, job, train)
    resting = row(database, job)
    assert (resting.state, resting.owner, resting.attempts, resting.progress) == ("waiting", None, 0, 0.5)
    assert resting.not_before is not None
    event = last(database, job)
    assert (event["windows"], event["versions"], event["last"]["verdict"]) == (1, [1], "published"), event
    assert event["last"]["gain"]["low"] > 0
    assert champion(database) == 1
    with database.reading() as session:
        report = session.scalars(select(Agent)).one().report
    assert (report["algorithm"], report["requested"], report["window"]) == (
        "ppo",
        "online",
        {"number": 1, "rival": None},
    )
    due(database, job)
    perform(database, SETTINGS, job, train)  # nothing was reported since
    done = row(database, job)
    assert (done.state, done.progress, done.not_before) == ("succeeded", 1.0, None)
    assert done.result is not None
    assert (done.result["agent"], done.result["windows"], done.result["versions"]) == (1, 2, [1])
    assert done.result["last"]["verdict"] == "nothing_learned"


def test_what_disappoints_is_not_published(database: Database) -> None:
    prepared(database, UNANSWERED)
    off = Layout(InferenceSpec.model_validate(UNANSWERED)).scaling(0, on=False)
    answering(database, off)
    job = started(database)
    perform(database, SETTINGS, job, train)
    event = last(database, job)
    assert (event["last"]["verdict"], event["versions"], event["last"]["agent"]) == ("stays", [], None)
    assert "not better than the champion at that time" in event["last"]["reason"]
    assert "97.5 % interval" in event["last"]["reason"]
    assert (champion(database), versions(database)) == (1, [1])


def test_where_no_version_is_as_good_the_heuristic_answers(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = WindowTraining.judge

    def strict(self: WindowTraining, *values: Any) -> dict[str, Any]:
        return judge(self, *values) | {"promoted": False}  # however good it has become: the champion is what is judged

    monkeypatch.setattr(WindowTraining, "judge", strict)
    prepared(database, SPEC)
    answering(database, 0)  # it starts nothing
    job = started(database)
    perform(database, SETTINGS, job, train)
    event = last(database, job)
    assert event["last"]["verdict"] == "heuristic"
    assert event["last"]["champion"] is None is champion(database)
    assert "agent 1 is worse on the window than the heuristic" in event["last"]["reason"]


@pytest.mark.slow
def test_each_window_in_which_the_same_is_judged_asks_for_more_confidence(database: Database) -> None:
    """Anew for another champion; a window that nothing came of is none."""
    prepared(database, UNANSWERED)
    off = Layout(InferenceSpec.model_validate(UNANSWERED)).scaling(0, on=False)
    answering(database, off)
    job = started(database)
    messages = list[str]()
    for window in range(4):
        if window:
            due(database, job)
        if window != 2:
            reported(database, 240)
            if window:  # each window ends a day after the one before it
                at = utc_now() + timedelta(days=window, hours=-1)
                with database.session() as session:
                    session.execute(update(Iteration).values(reported_at=at))
        if window == 3:
            answering(database, off)
        perform(database, SETTINGS, job, train)
        messages.append(last(database, job)["last"]["reason"])
    sure = [next((one for one in ("97.5", "99.17") if f"{one} % interval" in reason), "") for reason in messages]
    assert sure == ["97.5", "99.17", "", "97.5"]


def test_a_window_without_reports_teaches_nothing_and_the_next_one_is_waited_for(database: Database) -> None:
    prepared(database, SPEC)
    with database.session() as session:
        session.execute(update(Iteration).values(reported_at=utc_now() - timedelta(days=2)))
    job = started(database)
    perform(database, SETTINGS, job, train)
    event = last(database, job)
    assert (event["windows"], event["last"]["verdict"], row(database, job).state) == (1, "nothing_learned", "waiting")
    assert "needs 50 requests in the window" in event["last"]["reason"]


def test_a_worker_that_was_thought_dead_publishes_nothing_and_another_repeats_the_window(database: Database) -> None:
    prepared(database, UNANSWERED)
    job = started(database)

    def robbed(running: RunningJob) -> None:
        later = utc_now() + timedelta(hours=1)
        assert leases.claim(database, job, "another", SETTINGS, lambda _session: later) is not None
        train(running)

    perform(database, SETTINGS, job, robbed)
    assert (versions(database), champion(database), row(database, job).owner) == ([], None, "another")
    assert leases.sweep(database, SETTINGS, lambda owner: owner == "another") == [job]
    perform(database, SETTINGS, job, train)
    assert (versions(database), champion(database), last(database, job)["windows"]) == ([1], 1, 1)


def test_a_champion_that_changed_meanwhile_is_left_alone(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(database, UNANSWERED)
    job = started(database)
    commit = RunningJob.commit

    def late(self: RunningJob, write: Any) -> None:
        answering(database, 0)
        commit(self, write)

    monkeypatch.setattr(RunningJob, "commit", late)
    perform(database, SETTINGS, job, train)
    event = last(database, job)
    assert (event["last"]["verdict"], versions(database), champion(database)) == ("stays", [1], 1)
    assert "the champion was changed meanwhile" in event["last"]["reason"]

"""Jobs of workloads of kind ``workflow``: a predictor is fitted, a scheduler trained, and both answer."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app import queue
from app.database.engine import Database
from app.database.tables import Execution, Job, Workload
from app.kinds.workflow.policies import StrategyPolicy, save
from app.kinds.workflow.run_times import Predictor
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import compress, independent_jobs, pack
from app.main import create_app
from app.settings import Settings
from app.workloads.snapshot import load
from tests.app.runs.test_queue import POOL, put, starts, task
from workers.learning.training.driver import Stage, TrainedAgent
from workers.tasks.base import perform
from workers.tasks.online import train
from workers.tasks.trained import fit

SETTINGS = Settings(lease_seconds=60, heartbeat_seconds=5, progress_seconds=0, checkpoint_seconds=0)


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)


@pytest.fixture
def client(settings: Settings, database: Database) -> TestClient:
    """The service, with a registered pool and a trace of two users whose estimates say nothing."""
    client = TestClient(create_app(settings, database))
    identifier = client.post("/workloads", json=POOL).json()["id"]
    rng = np.random.default_rng(1)
    user = rng.integers(0, 2, 300)
    runtime = np.array([50.0, 2_000.0])[user] * np.exp(rng.normal(0, 0.1, 300))
    submit = np.cumsum(rng.exponential(600.0, 300))
    estimate = runtime * np.exp(rng.uniform(0.5, 4, 300))
    trace = independent_jobs(submit - submit[0], runtime, estimate, 2 ** rng.integers(0, 4, 300), user)
    with database.session() as session:
        row = Execution(workload_id=identifier, name="log", digest="0", iterations=trace.tasks)
        row.data = compress(pack(trace._replace(users=("quick", "slow"))))
        session.add(row)
    return client


def do(client: TestClient, database: Database, path: str, work: Any, **body: Any) -> Job:
    """Ask for a job, and have a worker do it."""
    request = client.post(path, json=body)
    assert request.status_code == 202, request.text
    perform(database, SETTINGS, request.json()["id"], work)
    with database.reading() as session:
        return session.get_one(Job, request.json()["id"])


def test_a_predictor_is_fitted_and_plans_what_waits(client: TestClient, database: Database) -> None:
    job = do(client, database, "/workloads/pool/models", fit)
    assert (job.state, job.result) == ("succeeded", {"model": 1})
    report = client.get("/workloads/pool/models/1").json()["report"]
    mape = {candidate["family"]: candidate["mape"] for candidate in report["candidates"]}
    assert report["family"] == "history"
    assert mape["history"] < 0.5 < min(mape["estimate"], mape["mean"])
    request = client.get("/workloads/pool/models/1/predict?allocation=gpus:1")
    assert (request.status_code, request.json()["errors"][0]["pointer"]) == (422, "/path/workload")


class Planted:
    """A training of two chunks, which gives the longest job first; what training really does has tests of its own."""

    eta_seconds = 1.0
    live: ClassVar[dict[str, Any]] = {}
    predictors: ClassVar[list[Predictor | None]] = []

    def __init__(
        self,
        spec: Spec,
        traces: Any,
        seed: int,
        budget: int,
        *,
        champion: Any,
        margin: float,
        predictor: Any,
        force: bool,
    ) -> None:
        self.predictors.append(predictor)
        assert [(name, trace.tasks) for name, trace in traces] == [("log", 300)]
        assert (spec.name, budget, champion, margin, force) == ("pool", 5_000, None, 0.01, False)
        self.seed, self.chunks = seed, 0
        self.stages = (Stage("planting", 1.0, self.advance, lambda: self.chunks / 2),)

    def advance(self) -> bool:
        self.chunks += 1
        return self.chunks == 2

    def restore(self, data: bytes) -> None:
        self.chunks = len(data)

    def checkpoint(self) -> bytes:
        return b"." * self.chunks

    def close(self) -> None:
        self.closed = True

    def conclude(self) -> TrainedAgent:
        report = {"algorithm": "strategy", "seed": self.seed, "promoted": True, "reason": "it is longest"}
        return TrainedAgent(save(StrategyPolicy({"rule": "ljf"})), report)


def test_what_a_training_made_of_the_traces_answers(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.kinds.workflow.training.train.SchedulerTrainer", Planted)
    job = do(client, database, "/workloads/pool/agents", train, budget=5_000, seed=4)
    assert (job.state, job.error, job.result) == ("succeeded", None, {"agent": 1})
    agent = client.get("/workloads/pool/agents/1").json()
    assert (agent["champion"], agent["model_version"], agent["seed"]) == (True, 0, 4)
    assert agent["report"]["reason"] == "it is longest"
    run = client.post("/runs", json={"workload": "pool", "shadow": 1}).json()["id"]
    decision = put(client, run, 0, now=1.0, queued=[task("a", 6, 10), task("b", 4, 100)])
    assert (decision["source"], starts(decision)) == ("agent", ["b"])
    assert decision["shadow"]["agrees"]


def test_a_verdict_plans_by_the_predictor_that_serves(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.kinds.workflow.training.train.SchedulerTrainer", Planted)
    Planted.predictors.clear()
    do(client, database, "/workloads/pool/agents", train, budget=5_000, promote=False)
    do(client, database, "/workloads/pool/models", fit)
    do(client, database, "/workloads/pool/agents", train, budget=5_000, promote=False)
    first, second = Planted.predictors
    assert first is None
    assert second is not None
    assert second.family == "history"
    items = client.get("/workloads/pool/agents").json()["items"]
    assert [agent["model_version"] for agent in items] == [1, 0]


@pytest.mark.parametrize("fitted_first", [True, False])
def test_who_is_promoted_is_served_with_the_predictor(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch, fitted_first: bool
) -> None:
    monkeypatch.setattr("workers.kinds.workflow.training.train.SchedulerTrainer", Planted)
    steps: list[tuple[str, Any, dict[str, Any]]] = [("models", fit, {}), ("agents", train, {"budget": 5_000})]
    for noun, work, body in steps if fitted_first else steps[::-1]:
        do(client, database, f"/workloads/pool/{noun}", work, **body)
    with database.reading() as session:
        row = session.scalars(select(Workload)).one()
        session.expunge(row)
    result = load(database, row)
    assert (result.agent_version, result.model_version) == (1, 1)
    assert result.model.family == "history"
    refused = client.delete("/workloads/pool/models/1")
    assert refused.status_code == 409, refused.text


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({"algorithm": "dqn"}, "/algorithm"), ({"seeds": 4}, "/seeds"), ({"imitate": "hold"}, "/imitate")],
)
def test_what_only_other_kinds_train_with_is_refused(client: TestClient, body: dict[str, Any], pointer: str) -> None:
    answer = client.post("/workloads/pool/agents", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


def test_without_traces_there_is_nothing_to_train_on(settings: Settings, database: Database) -> None:
    client = TestClient(create_app(settings, database))
    client.post("/workloads", json=POOL)
    for noun in ("agents", "models"):
        answer = client.post(f"/workloads/pool/{noun}", json={})
        assert (answer.status_code, "no samples yet" in answer.json()["detail"]) == (409, True)

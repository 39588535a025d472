"""What a training begins with; one that this worker can't do fails at once, with the field, its value and a remedy."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app import installed, queue
from app.agents import service as agents
from app.agents.schemas import TrainRequest
from app.database.engine import Database
from app.database.tables import ExogenousRow, Job, Workload
from app.domain_models import service as domain_models
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import save
from app.settings import Settings
from tests.planted import planted_spec, planted_table
from workers.learning.training.request import Start
from workers.tasks import trained
from workers.tasks.base import perform
from workers.tasks.online import train


@pytest.mark.parametrize("seeds", [1, 3], ids=["alone", "sweep"])
def test_an_executor_that_is_not_installed_fails_the_job_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, seeds: int
) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda *_: None)
    monkeypatch.setattr(queue, "reaches_this_host_alone", lambda: False)
    monkeypatch.setattr(installed, "missing", lambda extra: [extra])
    spec = planted_spec()
    with database.session() as session:
        workload = Workload(name="planted", kind="iterative", spec=spec.model_dump(mode="json"))
        session.add(workload)
        session.flush()
        domain_models.publish(session, workload.id, 1, {}, planted_table(spec).to_bytes())
    request = TrainRequest(algorithm="dqn", executor="ray", seeds=seeds)
    job_id = agents.request_training(database, "default", "planted", request).id
    perform(database, Settings(), job_id, train)
    with database.reading() as session:
        job = session.get_one(Job, job_id)
        assert (job.state, job.attempts) == ("failed", 1)
        assert job.error is not None
        assert (job.error["status"], job.error["errors"][0]["pointer"]) == (422, "/executor")
        text = f"executor 'ray' needs the extra 'ray' where workers run: {installed.command('ray')}"
        assert text in job.error["detail"]


def test_a_training_reads_its_request_and_the_agent_that_it_starts_from(database: Database) -> None:
    """Of two agents the one that was named; the champion is what has to be beaten."""
    spec = planted_spec()
    layout = Layout(spec)
    artifacts = [save(HeuristicPolicy({"heuristic": name}), layout) for name in ("hold", "pid")]
    with database.session() as session:
        workload = Workload(name="planted", kind="iterative", spec=spec.model_dump(mode="json"), spec_version=3)
        session.add(workload)
        session.flush()
        domain_models.publish(session, workload.id, 3, {}, planted_table(spec).to_bytes())
        now = datetime(2026, 1, 1, tzinfo=UTC)
        price = {"series": "price", "time": now, "issued_at": now, "mean": 3.0, "low": 2.0, "high": 4.0}
        session.add(ExogenousRow(workload_id=workload.id, **price))
        for artifact, algorithm, promote in zip(artifacts, ("dqn", "ppo"), (True, False), strict=True):
            made = agents.TrainingResult(3, 1, algorithm, 0, {"algorithm": algorithm}, artifact, promote, "why")
            agents.publish(session, workload.id, made)
        asked = {"algorithm": "ppo", "budget": 2_000, "seed": 4, "seeds": 2, "force": True}
        given = trained.load(session, workload, {**asked, "start_from": 2})
        assert given.request.start == Start(2, "ppo", artifacts[1])
        assert (given.spec_version, given.model_version) == (3, 1)
        assert given.workload.exogenous["price"].mean.tolist() == [3.0]  # which is read together with the samples
        assert given.champion_artifact is not None
        request = given.request
        assert (request.algorithm, request.budget, request.seed, request.seeds) == ("ppo", 2_000, 4, 2)
        assert request.force is True
        assert trained.load(session, workload, asked).request.start is None
        with pytest.raises(LookupError, match="agent 3 was deleted"):
            trained.load(session, workload, {**asked, "start_from": 3})
        with pytest.raises(LookupError):
            trained.load(session, workload, {**asked, "model": 2})

"""A training that this worker can't do fails at once, with the field, its value and a remedy."""

from __future__ import annotations

import pytest

from app import installed, queue
from app.agents import service as agents
from app.agents.schemas import TrainRequest
from app.database.engine import Database
from app.database.tables import Job, Workload
from app.domain_models import service as domain_models
from app.settings import Settings
from tests.planted import planted_spec, planted_table
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

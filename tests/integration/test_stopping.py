"""Cancel and SIGTERM take effect in the long phases of every type of job, none of which looks whether it is to stop."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import pytest
from sqlalchemy import select

from app.database.engine import Database
from app.database.tables import Job, JobEvent
from app.domain_models import service as domain_models
from app.kinds.iterative.spec import Spec
from app.workloads import service as workloads
from tests.app.domain_models.published import TENANT, publish_agent
from tests.conftest import StartSteward
from tests.integration.caller import SPEC, WORKLOAD, Caller, samples
from tests.planted import planted_table
from tests.recovering import recovering
from tests.servers import standalone_worker, wait_until

SMALL = "small"
PATIENCE_SECONDS = 300.0
WITHIN_SECONDS = 3.0
EFFECT_SECONDS = 60.0  # 10 on an idle machine
METRICS = 16

pytestmark = pytest.mark.slow


def wide() -> tuple[dict[str, Any], str]:
    """A legal workload whose fit takes minutes for its many metrics, and measurements."""
    executors = {**SPEC["resources"][0], "step": 4, "max_steps": 1}
    resources = [executors, {**executors, "name": "nodes"}]
    metrics = [*SPEC["metrics"], *({"name": f"metric{number}"} for number in range(METRICS - 1))]
    random = np.random.default_rng(5)
    lines = ["execution,iteration,allocation.executors,allocation.nodes"]
    lines[0] += "".join(f",metric.{metric['name']}" for metric in metrics)
    for execution in range(60):
        for iteration in range(30):
            allocation = 4 * random.integers(1, 10, 2)
            measured = (2 + 60 / allocation.sum() + 0.1 * allocation[0]) * np.exp(random.normal(0, 0.1, METRICS))
            lines.append(",".join(map(str, [f"e{execution}", iteration, *allocation, *measured])))
    return {**SPEC, "resources": resources, "metrics": metrics}, "\n".join(lines) + "\n"


def prepare(caller: Caller, database: Database) -> None:
    """The workload with a model and an agent that were put there, and one that is too small to be fitted."""
    spec, csv = wide()
    caller.post("/workloads", json=spec)
    caller.post(f"/workloads/{WORKLOAD}/samples", content=csv, headers={"Content-Type": "text/csv"})
    with database.session() as session:
        workload = workloads.require(session, TENANT, WORKLOAD)
        table = planted_table(Spec.model_validate(workload.spec))
        domain_models.publish(session, workload.id, 1, {}, table.to_bytes())
    publish_agent(database, WORKLOAD)
    caller.post("/workloads", json={**SPEC, "name": SMALL})
    caller.post(f"/workloads/{SMALL}/samples", content=samples(1, 3), headers={"Content-Type": "text/csv"})


def is_free(caller: Caller) -> None:
    """The worker does what comes next."""
    job = caller.post(f"/workloads/{SMALL}/models", json={})["id"]
    assert caller.wait(job, PATIENCE_SECONDS)["error"]["type"] == "/problems/too-little-data"


class Phase(NamedTuple):
    """What is asked for, the type of job that is at work then, how many are, and what they tell when they get there,
    be it once or whenever a worker goes on with it.
    """

    path: str
    request: dict[str, Any]
    type: str
    jobs: int = 1
    phase_event: str = ""
    once: bool = False


LEARNING: dict[str, Any] = {"algorithm": "tabular_q", "seed": 3, "force": True}
PHASES = {
    "fit": Phase(f"/workloads/{WORKLOAD}/models", {}, "fit"),
    "trials": Phase(f"/workloads/{WORKLOAD}/agents", {**LEARNING, "seeds": 2, "budget": 400_000_000}, "trial", jobs=2),
    "verdict": Phase(
        f"/workloads/{WORKLOAD}/agents", {**LEARNING, "budget": 2_000}, "train", phase_event="judging", once=True
    ),
    "evaluation": Phase(
        "/evaluations",
        {"workload": WORKLOAD, "agents": [1], "level": "L3"},
        "evaluate",
        phase_event="fitting the held-out executions",
    ),
}


def at_work(database: Database, phase: Phase) -> list[Job]:
    """The jobs that somebody holds."""
    with database.reading() as session:
        return list(session.scalars(select(Job).where(Job.type == phase.type, Job.state == "running")))


def times_told(database: Database, phase: Phase) -> int:
    """How often a job told that it got to the phase."""
    with database.reading() as session:
        return sum(event.get("phase") == phase.phase_event for event in session.scalars(select(JobEvent.data)))


def until_well_within(database: Database, phase: Phase, before: int) -> list[Job]:
    """Wait until the jobs are well within the phase, of which was told so often before."""
    wait_until(
        lambda: (
            len(at_work(database, phase)) == phase.jobs
            and (not phase.phase_event or times_told(database, phase) > before)
        ),
        PATIENCE_SECONDS,
        f"{phase.type} to get there",
    )
    time.sleep(WITHIN_SECONDS)
    jobs = at_work(database, phase)
    assert len(jobs) == phase.jobs, "the phase is too short for this test"
    return jobs


@pytest.mark.parametrize("name", PHASES)
def test_a_phase_that_takes_long_is_stopped(name: str, steward_factory: StartSteward) -> None:
    phase, api = PHASES[name], steward_factory(None, "--workers", "0", wait="alive")
    caller, database = Caller(api.url), Database(api.database_url)
    prepare(caller, database)
    asked_for = caller.post(phase.path, json=phase.request)["id"]
    with standalone_worker(api.data_dir, phase.jobs) as worker:
        ids = {job.id for job in until_well_within(database, phase, 0)}
        with recovering():
            worker.terminate()
            assert worker.wait(EFFECT_SECONDS) == 0
    with database.reading() as session:
        left = list(session.scalars(select(Job).where(Job.id.in_(ids))))
    assert [(job.state, job.attempts, job.owner) for job in left] == [("queued", 0, None)] * phase.jobs
    before = -1 if phase.once else times_told(database, phase)
    with standalone_worker(api.data_dir, phase.jobs):
        again = until_well_within(database, phase, before)
        assert {job.id for job in again} == ids
        assert [job.attempts for job in again] == [1] * phase.jobs
        with recovering():
            caller.post(f"/jobs/{asked_for}/cancel")
            assert caller.wait(asked_for, EFFECT_SECONDS)["state"] == "cancelled"
            wait_until(lambda: not at_work(database, phase), EFFECT_SECONDS, "the others to end")
        is_free(caller)
    caller.http.close()
    database.dispose()

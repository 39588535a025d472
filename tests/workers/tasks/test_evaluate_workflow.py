"""Evaluations of workloads of kind workflow as jobs: played on the traces that were uploaded."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from app import queue
from app.agents import service as agents
from app.agents.service import NO_MODEL, TrainingResult
from app.database.engine import Database
from app.database.tables import Execution, Job
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationRequest
from app.kinds.workflow.policies import StrategyPolicy, save
from app.kinds.workflow.trace import compress, pack
from app.settings import Settings
from app.workloads import service as workloads
from tests.workers.kinds.workflow.evaluation.schedules import drawn
from tests.workers.kinds.workflow.evaluation.test_protocol import spec
from workers.evaluation import protocol
from workers.evaluation.protocol import choose
from workers.inputs import HoldOut
from workers.kinds.workflow.evaluation import problem
from workers.kinds.workflow.evaluation.schedulers import RuleScheduler
from workers.tasks import evaluate as task
from workers.tasks.base import perform
from workers.tasks.evaluate import evaluate

TENANT = "default"
SETTINGS = Settings(lease_seconds=60, heartbeat_seconds=5, progress_seconds=100, checkpoint_seconds=100)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few heuristics, little to tune, no plots."""
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)
    few: dict[str, Any] = {"trials": 0, "demonstrations": 2}
    monkeypatch.setattr(task, "Settings", partial(protocol.Settings, **few))
    rules = {f"{rule}+easy": RuleScheduler(rule, "easy") for rule in ("fcfs", "sjf")}
    monkeypatch.setattr(problem, "rule_schedulers", lambda *_: rules)
    monkeypatch.setattr("workers.evaluation.report.page.page", lambda report: f"<!doctype html>{report['workload']}")


def prepare(database: Database, traces: int) -> None:
    """A workload with traces of twenty jobs, and an agent that is shortest-job-first."""
    workloads.register(database, TENANT, spec())
    with database.session() as session:
        workload = workloads.require(session, TENANT, "hpc")
        for number in range(traces):
            data = compress(pack(drawn(20, number, pause=15.0)))
            row = Execution(workload_id=workload.id, name=f"t{number}", digest=str(number), iterations=20)
            row.data = data
            session.add(row)
        artifact = save(StrategyPolicy({"rule": "sjf"}))
        agents.publish(
            session, workload.id, TrainingResult(1, NO_MODEL, "strategy", 0, {}, artifact, True, "good enough")
        )


def judged(database: Database, **change: Any) -> dict[str, Any]:
    request = EvaluationRequest.model_validate({"workload": "hpc", "episodes": 8, **change})
    identifier = evaluations.request_evaluation(database, TENANT, request).id
    perform(database, SETTINGS, identifier, evaluate)
    with database.reading() as session:
        job = session.get_one(Job, identifier)
    assert job.state == "succeeded", job.error
    assert job.result is not None
    return evaluations.get(database, TENANT, job.result["evaluation"]).model_dump()


def test_agents_are_judged_on_uploaded_traces(database: Database) -> None:
    prepare(database, 4)
    result = judged(database, held_out={"executions": ["t2"]})
    report = result["report"]
    assert [level["available"] for level in report["levels"]] == [True] * 6
    assert report["held_out"] == {
        "of": "executions",
        "executions": 1,
        "unseen": 0,
        "names": ["t2"],
        "reason": None,
        "note": "L3 and L4 play what was held out: 1 of the traces, of which 0 came after the agents were trained.",
    }
    assert (result["model_version"], result["verdicts"][0]["level"]) == (NO_MODEL, "L4")
    assert report["levels"][2]["policies"]["agent 1"] == report["levels"][2]["policies"]["sjf+easy"] | {"guarded": None}
    assert report["pictures"]["schedules"][0]["name"] == "agent 1"


def test_one_trace_carries_no_l3(database: Database) -> None:
    prepare(database, 1)
    result = judged(database)
    assert "upload another for L3" in result["report"]["levels"][4]["reason"]
    assert result["verdicts"][0]["level"] == "L2"


def test_what_is_held_out_is_named_or_drawn_and_never_all() -> None:
    names = ["a", "b", "c", "d"]
    assert choose(names, HoldOut(["c", "x"]), 0, most=3).names == ("c",)
    assert len(choose(names, HoldOut(names), 0, most=3).names) == 3
    drawn_names = choose(names, HoldOut(share=0.5, unseen={"b"}), 0, most=3)
    assert (drawn_names.names[0], len(drawn_names.names), drawn_names.unseen) == ("b", 2, 1)
    assert choose(["a"], HoldOut(), 0, most=0).names == ()

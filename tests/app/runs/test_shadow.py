"""Shadows: asked beside the champion, written down, and never heard."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.agents import service
from app.database.engine import Database, DeadlinePassed, commit_deadline
from app.database.tables import Agent, Evaluation, Workload
from app.kinds.iterative import policies
from app.runs.logs import logged_runs
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model

REPORT = {"allocation": {"gpus": 8}, "metrics": {"iteration_seconds": 256.0}, "features": {"batch": 128}}


@pytest.fixture
def agents(client: TestClient, workload: str, backend: Database) -> str:
    """Agent 1, the champion, holds; agent 2 follows the model."""
    publish_model(backend, workload)
    publish_agent(backend, workload, heuristic="hold", promote=True)
    publish_agent(backend, workload, heuristic="model_predictive")
    return workload


def begin(client: TestClient, workload: str, **body: Any) -> str:
    answer = client.post("/runs", json={"workload": workload, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def tell(client: TestClient, run: str, number: int) -> dict[str, Any]:
    answer = client.put(f"/runs/{run}/iterations/{number}", json=REPORT)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


@on_both
def test_a_shadow_is_written_down_and_changes_nothing(client: TestClient, agents: str) -> None:
    shadowed, plain = begin(client, agents, shadow=2), begin(client, agents)
    answer, silent = tell(client, shadowed, 0), tell(client, plain, 0)
    assert silent["shadow"] is None
    assert (answer["allocation"], answer["agent"], answer["policy"]) == (silent["allocation"], 1, "hold")
    assert (answer["shadow"]["agent"], answer["shadow"]["problem"]) == (2, None)
    assert answer["shadow"]["allocation"] == {"gpus": 6}  # the model gives back what it may
    assert not answer["shadow"]["agrees"]
    assert answer["shadow"]["gain"] > 0
    decision = client.get(f"/runs/{shadowed}/iterations").json()["items"][0]["decision"]
    assert decision["shadow"] == answer["shadow"]
    assert client.get(f"/runs/{shadowed}").json()["shadow"] == 2


def test_a_shadow_that_agrees_gains_nothing(client: TestClient, agents: str) -> None:
    answer = tell(client, begin(client, agents, shadow=1), 0)["shadow"]
    assert (answer["agrees"], answer["gain"], answer["allocation"]) == (True, 0.0, {"gpus": 8})


@pytest.mark.parametrize("version", [3, 0, "two"])
def test_a_shadow_must_be_an_agent_of_the_workload(client: TestClient, agents: str, version: Any) -> None:
    answer = client.post("/runs", json={"workload": agents, "shadow": version})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/shadow")
    assert answer.json()["errors"][0]["value"] == version


def test_a_shadow_that_fails_is_told_and_delays_nobody(
    client: TestClient, agents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, real = begin(client, agents, shadow=2), policies.decide

    def failing(situation: Any, artifact: Any, rule: Any = None) -> Any:
        if artifact is not None and artifact.policy.name == "model_predictive":
            raise FloatingPointError("overflow")
        return real(situation, artifact, rule)

    monkeypatch.setattr(policies, "decide", failing)
    answer = tell(client, run, 0)
    assert answer["source"] == "agent"
    assert answer["shadow"] == {
        "agent": 2,
        "allocation": None,
        "agrees": False,
        "gain": None,
        "problem": "FloatingPointError: overflow",
    }


@on_both
def test_regret_is_summed_over_runs(client: TestClient, agents: str) -> None:
    for _ in range(2):
        run = begin(client, agents, shadow=2)
        gains = [tell(client, run, number)["shadow"]["gain"] for number in range(3)]
    begin(client, agents)
    body = client.get(f"/workloads/{agents}/agents/2/shadow").json()
    assert (body["runs"], body["decisions"], body["failures"]) == (2, 6, 0)
    assert body["agreement"] == pytest.approx(0.0)
    assert body["gain"]["mean"] == pytest.approx(sum(gains))
    assert client.get(f"/workloads/{agents}/agents/9/shadow").status_code == 404


def test_a_promotion_can_require_evidence(client: TestClient, agents: str, backend: Database) -> None:
    def promote() -> Any:
        body = {"require": ["shadow", "off_policy"]}
        return client.post(f"/workloads/{agents}/agents/2/promote", json=body)

    answer = promote()
    assert answer.status_code == 409
    assert "needs 5 runs as a shadow, has 0" in answer.json()["detail"]
    assert "agent 2 has no off-policy evaluation" in answer.json()["detail"]
    for _ in range(5):
        tell(client, begin(client, agents, shadow=2), 0)
    scored(backend, agents, {"mean": -0.2, "low": -0.3, "high": -0.1})
    assert "it may be worse than the logged decisions" in promote().json()["detail"]
    scored(backend, agents, {"mean": -0.001, "low": -0.002, "high": 0.0})
    assert "it may be worse than the logged decisions" in promote().json()["detail"]
    judged(
        backend, agents, {"heuristics": {"pid": {"mean": -0.4}}, "best_heuristic": "pid", "equivalence_margin": 0.01}
    )
    assert promote().json()["champion"] == 2  # a loss within the margin of its verdict is none


def judged(database: Database, name: str, verdict: dict[str, Any]) -> None:
    """Let agent 2's report tell a verdict."""
    with database.session() as session:
        workload = session.query(Workload).filter_by(name=name, tenant="default").one()
        agent = session.query(Agent).filter_by(workload_id=workload.id, version=2).one()
        agent.report = {**agent.report, **verdict}


def scored(database: Database, name: str, advantage: dict[str, float]) -> None:
    """An evaluation that scored agent 2 on six logged runs."""
    report = {"off_policy": {"2": {"runs": 6, "replay": {"advantage": advantage}}}}
    with database.session() as session:
        workload = session.query(Workload).filter_by(name=name, tenant="default").one()
        session.add(
            Evaluation(
                tenant=workload.tenant,
                workload_id=workload.id,
                spec_version=1,
                model_version=1,
                request={},
                verdicts=[],
                report=report,
                page=b"",
            )
        )


@on_both
def test_ended_runs_become_logs(client: TestClient, agents: str, backend: Database) -> None:
    for ends in (True, False):
        run = begin(client, agents, targets={"iteration_seconds": 1234.0})
        tell(client, run, 0)
        tell(client, run, 1)
        if ends:
            client.patch(f"/runs/{run}", json={"state": "finished"})
    with backend.reading() as session:
        workload = session.query(Workload).filter_by(name=agents, tenant="default").one()
        logs = logged_runs(session, workload.id)
    assert len(logs) == 1
    assert [report["metrics"] for report in logs[0].reports] == [{"iteration_seconds": 256.0}] * 2
    assert logs[0].start["targets"] == {"iteration_seconds": 1234.0}


def test_shadows_of_long_runs_are_counted_while_there_is_time(
    client: TestClient, agents: str, backend: Database
) -> None:
    tell(client, begin(client, agents, shadow=2), 0)
    passed = commit_deadline.set(time.monotonic() - 1)
    try:
        with pytest.raises(DeadlinePassed):
            service.shadow(backend, "default", agents, 2)
    finally:
        commit_deadline.reset(passed)

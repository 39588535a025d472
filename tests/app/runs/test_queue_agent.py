"""Agents of kind ``workflow`` answer through the same promotion, rollback and shadow as any."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.kinds.registry import KINDS
from app.kinds.workflow.policies import Scheduler, StrategyPolicy, save
from app.workloads import service as workloads
from tests.app.kinds.workflow.plans.test_planner import none, one_after_another
from tests.app.runs.test_queue import POOL, put, starts, task

LJF, SJF = StrategyPolicy({"rule": "ljf"}), StrategyPolicy({"rule": "sjf"})
QUEUED = [task("short", 6, 10), task("long", 6, 1000), task("b", 4, 100)]


def publish(database: Database, policy: Scheduler) -> int:
    """A version of an agent of ``pool``, not promoted."""
    with database.session() as session:
        workload = workloads.require(session, "default", "pool")
        result = TrainingResult(1, 0, policy.name, 0, {}, save(policy), promote=False, reason="planted")
        return agents.publish(session, workload.id, result)


@pytest.fixture
def pool(client: TestClient) -> str:
    assert client.post("/workloads", json=POOL).status_code == 201
    return "pool"


def first(client: TestClient, **body: Any) -> dict[str, Any]:
    """The decision for a queue of three tasks in a new run."""
    run = client.post("/runs", json={"workload": "pool", **body}).json()["id"]
    return put(client, run, 0, now=1.0, queued=QUEUED)


def test_an_agent_answers_from_its_promotion_to_its_rollback(client: TestClient, backend: Database, pool: str) -> None:
    assert starts(first(client)) == ["short"]
    version = publish(backend, LJF)
    assert client.post(f"/workloads/{pool}/agents/{version}/promote", json={}).status_code == 200
    client.app.state.snapshots.poll()  # type: ignore[attr-defined]
    decision = first(client)
    assert (starts(decision), decision["source"], decision["agent"]) == (["long"], "agent", version)
    assert (decision["policy"], decision["reason"]["strategy"]) == ("ljf", "ljf")
    assert client.post(f"/workloads/{pool}/agents/{version}/rollback", json={}).status_code == 200
    client.app.state.snapshots.poll()  # type: ignore[attr-defined]
    assert (starts(first(client)), first(client)["source"]) == (["short"], "heuristic")


def test_a_spec_may_want_an_agent_from_the_beginning(
    client: TestClient, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.post("/workloads", json={**POOL, "strategy": "agent"}).status_code == 201
    decision = first(client)
    assert (decision["source"], decision["agent"], decision["policy"]) == ("agent", None, "priority")
    assert decision["placements"]
    version = publish(backend, LJF)
    client.post(f"/workloads/pool/agents/{version}/promote", json={})
    client.app.state.snapshots.poll()  # type: ignore[attr-defined]
    decision = first(client, shadow=version)
    assert (decision["agent"], decision["policy"], decision["shadow"]["agrees"]) == (version, "ljf", True)

    def broken(*_: object) -> None:
        raise RuntimeError("the network is broken")

    monkeypatch.setattr(StrategyPolicy, "orders", broken)
    assert (first(client)["source"], first(client)["policy"]) == ("fallback", "sjf+easy")


def test_a_shadow_is_written_down_and_changes_nothing(client: TestClient, backend: Database, pool: str) -> None:
    version = publish(backend, LJF)
    decision = first(client, shadow=version)
    assert starts(decision) == ["short"]
    shadow = decision["shadow"]
    assert (shadow["agent"], shadow["strategy"], shadow["agrees"]) == (version, "ljf", False)
    assert [one["task"] for one in shadow["placements"]] == ["long"]
    answer = client.get(f"/workloads/{pool}/agents/{version}/shadow").json()
    assert (answer["decisions"], answer["agreement"], answer["gain"]) == (1, 0.0, None)
    for _ in range(4):
        first(client, shadow=version)
    refused = client.post(f"/workloads/{pool}/agents/{version}/promote", json={"require": ["shadow"]})
    assert refused.status_code == 409
    assert "only that 0 % agreed with the decisions; leave it out of `require`" in refused.json()["detail"]


def test_a_policy_that_fails_is_answered_for_by_the_specs_strategy(
    client: TestClient, backend: Database, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = publish(backend, LJF)
    client.post(f"/workloads/{pool}/agents/{version}/promote", json={})
    client.app.state.snapshots.poll()  # type: ignore[attr-defined]

    def broken(*_: object) -> None:
        raise RuntimeError("the network is broken")

    monkeypatch.setattr(StrategyPolicy, "orders", broken)
    decision = first(client)
    assert (starts(decision), decision["source"], decision["policy"]) == (["short"], "fallback", "fcfs+easy")
    assert "the network is broken" in decision["reason"]["text"]


def test_an_agent_of_another_kind_is_refused(client: TestClient, backend: Database, workload: str) -> None:
    with backend.session() as session:
        result = workloads.require(session, "default", workload)
        product = TrainingResult(1, 0, "sjf", 0, {}, save(SJF), promote=False, reason="planted")
        version = agents.publish(session, result.id, product)
    answer = client.post("/runs", json={"workload": workload, "shadow": version})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/shadow")
    assert "made for kind workflow" in answer.json()["detail"]


def test_a_workflow_follows_a_plan_whichever_agent_is_promoted(
    client: TestClient, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KINDS["workflow"].engine.serving, "search", one_after_another)
    assert client.post("/workloads", json={**POOL, "strategy": "agent"}).status_code == 201
    version = publish(backend, LJF)
    client.app.state.snapshots.poll()  # type: ignore[attr-defined]
    run = client.post("/runs", json={"workload": "pool", "shadow": version}).json()["id"]
    flow = [task("a", 1, 50), task("b", 1, 50, parents=["a"])]
    decision = put(client, run, 0, now=1.0, queued=flow)
    assert (decision["source"], decision["policy"], decision["agent"]) == ("agent", "plan", None)
    assert starts(decision) == ["a"]
    assert decision["reason"]["plan"] == {
        "followed": True, "made": 1.0, "seconds": 100.0, "heft_seconds": 300.0, "search_seconds": 0.14,
        "because": "first plan", "tasks": 2,
    }  # fmt: skip
    assert (decision["shadow"]["agrees"], decision["shadow"]["strategy"]) == (True, "plan")
    monkeypatch.setattr(KINDS["workflow"].engine.serving, "search", none)
    client.post(f"/workloads/pool/agents/{version}/promote", json={})
    client.app.state.snapshots.poll()  # type: ignore[attr-defined]
    lost = put(client, run, 1, now=2.0, delta=True, queued=[task("c", 1, 50, parents=["b"])])
    assert (lost["source"], lost["policy"], lost["agent"]) == ("heuristic", "heft+easy", version)
    assert "HEFT without a plan: another search is running" in lost["reason"]["text"]
    assert lost["reason"]["plan"] is None


def test_before_its_first_report_no_agent_has_answered_a_run(client: TestClient) -> None:
    client.post("/workloads", json={**POOL, "strategy": "agent"})
    decision = client.post("/runs", json={"workload": "pool"}).json()["decision"]
    assert (decision["source"], decision["policy"], decision["reason"]["code"]) == ("heuristic", "sjf+easy", "begun")


def test_batch_jobs_and_chosen_strategies_are_not_planned(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_: object) -> None:
        raise AssertionError("nothing is to be searched for")

    monkeypatch.setattr(KINDS["workflow"].engine.serving, "search", forbidden)
    client.post("/workloads", json={**POOL, "strategy": "agent"})
    assert (first(client)["policy"], first(client)["reason"]["plan"]) == ("priority", None)
    client.post("/workloads", json={**POOL, "name": "chosen", "strategy": "heft"})
    run = client.post("/runs", json={"workload": "chosen"}).json()["id"]
    decision = put(client, run, 0, now=1.0, queued=[task("a", 1, 50), task("b", 1, 50, parents=["a"])])
    assert (decision["source"], decision["policy"], decision["reason"]["plan"]) == ("heuristic", "heft+easy", None)

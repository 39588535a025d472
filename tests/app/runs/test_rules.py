"""Runs that name the rule that decides for them, beside runs that don't."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.database.engine import Database
from app.database.tables import DomainModel
from app.drift import repository
from app.kinds.registry import KINDS
from app.main import create_app
from app.runs.logs import logged_runs
from app.settings import Settings
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model

REPORT = {"allocation": {"gpus": 8}, "metrics": {"iteration_seconds": 256.0}, "features": {"batch": 128}}
RULES = {"iterative": "threshold", "workflow": "f4", "inference": "first_come_first_served", "cluster": "tiresias"}


def begun(client: TestClient, workload: str, **body: Any) -> str:
    answer = client.post("/runs", json={"workload": workload, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def put_report(client: TestClient, run: str, number: int, report: Any = REPORT) -> dict[str, Any]:
    answer = client.put(f"/runs/{run}/iterations/{number}", json=report)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("kind", RULES)
def test_every_rule_decides(kind: str, client: TestClient) -> None:
    example = KINDS[kind].example
    assert client.post("/workloads", json=example.spec).status_code == 201
    name = example.spec["name"]
    refused = client.post("/runs", json={"workload": name, **example.start, "policy": "nonesuch"})
    [error] = refused.json()["errors"]
    assert (refused.status_code, error["pointer"], error["value"]) == (422, "/policy", "nonesuch")
    rules = error["message"].removeprefix("must be one of ").split(", ")
    assert RULES[kind] in rules
    for rule in rules:
        run = begun(client, name, **example.start, policy=rule)
        for number, report in enumerate(example.reports):
            decision = put_report(client, run, number, report)
            assert decision["source"] == ("agent" if rule == "agent" else "heuristic"), decision["reason"]
            assert rule in ("agent", decision["policy"].removesuffix("+easy"))
            assert decision.get("rule", rule) == rule
            assert decision["agent"] is None
        assert client.get(f"/runs/{run}").json()["start"]["policy"] == rule


@on_both
def test_a_rule_decides_beside_the_champion(
    client: TestClient, workload: str, backend: Database, settings: Settings
) -> None:
    before = TestClient(create_app(settings, backend))
    refused = before.post("/runs", json={"workload": workload, "policy": "model_predictive"})
    assert (refused.status_code, "hold, threshold, pid" in refused.text) == (422, True)
    publish_model(backend, workload)
    publish_agent(backend, workload, heuristic="model_predictive", promote=True)
    current, plain = begun(client, workload, policy="hold"), begun(client, workload)
    stepped = begun(client, workload, policy="threshold", probabilities={"iteration_seconds": 0.9})
    first = {run: put_report(client, run, 0) for run in (current, plain, stepped)}
    assert {run: one["policy"] for run, one in first.items()} == {
        current: "hold",
        plain: "model_predictive",
        stepped: "threshold",  # though it requires a probability, for which model-predictive control answers else
    }
    assert {run: one["agent"] for run, one in first.items()} == {current: None, plain: 1, stepped: None}
    assert (first[current]["allocation"], first[plain]["allocation"]) == ({"gpus": 8}, {"gpus": 6})
    publish_agent(backend, workload, heuristic="pid", promote=True)
    again = TestClient(create_app(settings, backend))  # the run outlives the process, and the champion
    assert put_report(again, current, 1)["policy"] == "hold"
    assert put_report(again, plain, 1)["policy"] == "pid"


def test_what_contradicts_a_rule_is_refused(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload)
    refused = client.post("/runs", json={"workload": workload, "policy": "hold", "shadow": 1})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/shadow")
    example = KINDS["inference"].example
    assert client.post("/workloads", json=example.spec).status_code == 201
    body = {"workload": example.spec["name"], "carried": True, "policy": "first_come_first_served"}
    refused = client.post("/runs", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/policy")


def test_where_a_rule_can_decide_no_more_the_default_one_answers_and_says_so(
    client: TestClient, workload: str, backend: Database, settings: Settings
) -> None:
    publish_model(backend, workload)
    moving, holding = begun(client, workload, policy="static_best"), begun(client, workload, policy="hold")
    assert put_report(client, moving, 0)["policy"] == "static_best"
    with backend.session() as session:
        session.execute(update(DomainModel).values(table=b"unreadable"))
    again = TestClient(create_app(settings, backend))
    decision = put_report(again, moving, 1)
    assert (decision["source"], decision["policy"]) == ("fallback", "threshold")
    assert "rule static_best no longer exists for this workload" in decision["reason"]["text"]
    assert put_report(again, holding, 0)["policy"] == "hold"


def test_different_rules_share_gpus_differently(client: TestClient) -> None:
    example = KINDS["cluster"].example
    assert client.post("/workloads", json=example.spec).status_code == 201
    shares = {}
    for rule in ("fifo", "equal_share"):
        run = begun(client, example.spec["name"], policy=rule)
        shares[rule] = [put_report(client, run, n, report)["changes"] for n, report in enumerate(example.reports)]
    assert shares["fifo"] != shares["equal_share"]


def test_runs_by_a_rule_are_no_evidence_about_agents(client: TestClient, workload: str, backend: Database) -> None:
    plain, ruled = begun(client, workload), begun(client, workload, policy="hold")
    for run in (plain, ruled):
        put_report(client, run, 0)
        assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200
    with backend.session() as session:
        row = workloads.require(session, "default", workload)
        assert [len(one.reports) for one in logged_runs(session, row.id)] == [1]
        assert [run.id for run in repository.runs(session, row.id, ruled=False)] == [plain]
        assert {run.id for run in repository.runs(session, row.id)} == {plain, ruled}

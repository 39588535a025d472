"""Runs that name the rule that decides for them, beside runs that don't."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.kinds.registry import KINDS
from app.main import create_app
from app.settings import Settings
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model

REPORT = {"allocation": {"gpus": 8}, "metrics": {"iteration_seconds": 256.0}, "features": {"batch": 128}}
RULES = {"iterative": "threshold", "workflow": "f4", "inference": "first_come_first_served", "cluster": "tiresias"}


def begun(client: TestClient, workload: str, **body: Any) -> str:
    answer = client.post("/runs", json={"workload": workload, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def told(client: TestClient, run: str, number: int, report: Any = REPORT) -> dict[str, Any]:
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
            decision = told(client, run, number, report)
            assert decision["source"] == ("agent" if rule == "agent" else "heuristic"), decision["reason"]
            assert rule in ("agent", decision["policy"].removesuffix("+easy"))
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
    held, plain = begun(client, workload, policy="hold"), begun(client, workload)
    stepped = begun(client, workload, policy="threshold", probabilities={"iteration_seconds": 0.9})
    first = {run: told(client, run, 0) for run in (held, plain, stepped)}
    assert {run: one["policy"] for run, one in first.items()} == {
        held: "hold",
        plain: "model_predictive",
        stepped: "threshold",  # though it requires a probability, for which model-predictive control answers else
    }
    assert {run: one["agent"] for run, one in first.items()} == {held: None, plain: 1, stepped: None}
    assert (first[held]["allocation"], first[plain]["allocation"]) == ({"gpus": 8}, {"gpus": 6})
    publish_agent(backend, workload, heuristic="pid", promote=True)
    again = TestClient(create_app(settings, backend))  # the run outlives the process, and the champion
    assert told(again, held, 1)["policy"] == "hold"
    assert told(again, plain, 1)["policy"] == "pid"

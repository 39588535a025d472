"""Pages are drawn from what is stored: a process whose cache of decisions is behind tells no past state as the present.

Two services share a database; the one that is read looks for changes once an hour, and its cache is warm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from tests.app.dashboard.test_pages import Texts, shown
from tests.app.domain_models.published import publish_agent, publish_model

HOUR = 3600.0
TWINS = ("resnet18", "resnet50")


@pytest.fixture
def other(client: TestClient, spec: dict[str, Any]) -> TestClient:
    """The service through which changes are made; two workloads are registered."""
    for name in TWINS:
        assert client.post("/workloads", json={**spec, "name": name}).status_code == 201
    return client


@pytest.fixture
def behind(settings: Settings, backend: Database, other: TestClient) -> TestClient:
    """The service that is read; it has decided for both workloads already."""
    reader = TestClient(create_app(settings.model_copy(update={"policy_poll_seconds": HOUR}), backend))
    for name in TWINS:
        assert reader.post("/runs", json={"workload": name}).status_code == 201
    return reader


def drawn(client: TestClient, name: str) -> Texts:
    return shown(client, f"/ui/workloads/{name}")


def policy_map(page: Texts) -> Mapping[str, Any]:
    """The last chart of a workload's page: which allocation its present policy takes where."""
    chart: Mapping[str, Any] = page.charts[-1]
    return chart


def test_a_fitted_model_is_drawn_at_once(other: TestClient, behind: TestClient, backend: Database) -> None:
    first, second = TWINS
    publish_model(backend, first)
    run = other.post("/runs", json={"workload": second}).json()["id"]
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
    other.put(f"/runs/{run}/iterations/0", json=report)
    other.patch(f"/runs/{run}", json={"state": "finished"})
    assert not [text for text in drawn(behind, first).texts if "No model is fitted" in text]
    assert [text for text in drawn(behind, second).texts if "No model is fitted" in text]
    publish_model(backend, second)
    assert not [text for text in drawn(behind, second).texts if "No model is fitted" in text]


def test_a_promoted_agents_map_is_drawn_at_once(other: TestClient, behind: TestClient, backend: Database) -> None:
    first, second = TWINS
    for name in TWINS:
        publish_model(backend, name)
        publish_agent(backend, name, heuristic="hold")
        publish_agent(backend, name, heuristic="threshold")
    rule = policy_map(drawn(behind, first))
    assert policy_map(drawn(behind, second)) == rule
    maps = {}
    for version in (1, 2):
        other.post(f"/workloads/{first}/agents/{version}/promote")
        maps[version] = policy_map(drawn(behind, first))
        agent = shown(behind, f"/ui/workloads/{first}/agents/{version}")
        assert "Policy" in agent.texts
        assert agent.charts[-1] == maps[version]
    assert maps[1] != maps[2]
    assert policy_map(drawn(behind, second)) == rule
    other.post(f"/workloads/{first}/agents/2/rollback")
    assert policy_map(drawn(behind, first)) == maps[1]


def test_a_changed_target_is_drawn_at_once(other: TestClient, behind: TestClient) -> None:
    first, second = TWINS
    runs = {name: behind.post("/runs", json={"workload": name}).json()["id"] for name in TWINS}
    for target, words in ((90, "1 min 30 s"), (1200, "20 min")):
        change = {"targets": {"iteration_seconds": target}}
        assert other.patch(f"/workloads/{first}", json=change).status_code == 200
        assert [text for text in drawn(behind, first).texts if f"deadline {words}" in text]
        assert f"{words} per run" in shown(behind, f"/ui/runs/{runs[first]}").texts
        assert "30 min per run" in shown(behind, f"/ui/runs/{runs[second]}").texts

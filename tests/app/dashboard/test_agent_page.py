"""An agent's page: its verdict, what it would change, and the way to have it answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.base import new_id, utc_now
from app.database.engine import Database
from app.database.tables import Agent, Promotion
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.policies import save
from app.samples.service import layout_of
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.dashboard.test_pages import shown
from tests.app.domain_models.published import TENANT, publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation

MEAN = {"mean": -0.5, "low": -0.6, "high": -0.4}
REPORT: dict[str, Any] = {
    "return": MEAN,
    "heuristics": {"static_best": {**MEAN, "mean": -1234.5}},
    "incumbent": "static_best",
    "gain": {"mean": 0.25, "low": 0.2, "high": 0.3},
    "gap_to_optimum": 0.0123,
    "outcomes": [
        {
            "name": "missed deadlines",
            "unit": "share",
            "policies": {"agent": {"mean": 0.003}, "static_best": {"mean": 0.25}},
        },
    ],
}


HEADROOM = {
    "rule": "model_predictive",
    "served": {"mean": -0.8},
    "tuned": {"mean": -0.7},
    "knowable": {"mean": -0.6},
    "beyond": {"mean": 0.3},
    "text": "tuned by 12.5 %",
}


def trained(database: Database, name: str, **more: Any) -> None:
    """An agent whose report tells all that reports tell, and ``more``."""
    with database.session() as session:
        workload = workloads.require(session, TENANT, name)
        artifact = save(HeuristicPolicy({"heuristic": "hold"}), layout_of(workload))
        agents.publish(
            session, workload.id, TrainingResult(1, 1, "dqn", 3, REPORT | more, artifact, False, "not better")
        )


@on_both
def test_an_agent_is_told_beside_what_answers(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    trained(backend, workload)
    evaluation = publish_evaluation(backend, workload, agent=1)
    picture = shown(client, f"/ui/workloads/{workload}/agents/1")
    assert {"Agent 1", "dqn", "seed 3", "+0.25", "0.2 to 0.3", "1.2 %", "L2", "Promote"} <= set(picture.texts)
    assert {"Mean per episode", "static best", "0.3 %", "25.0 %"} <= set(picture.texts)
    assert {"Recommended change by state", "Current policy"} <= set(picture.texts)
    assert "Better than the built-in policy (static best). Not promoted." in picture.texts
    trained(backend, workload, incumbent="the champion at that time")
    again = shown(client, f"/ui/workloads/{workload}/agents/2").texts
    assert "Better than the champion at that time. Not promoted." in again
    client.post(f"/workloads/{workload}/agents/2/promote", json={"reason": "it is good enough"})
    assert "Better than the champion at that time." in shown(client, f"/ui/workloads/{workload}/agents/2").texts
    assert {f"/evaluations/{evaluation}/report", f"/workloads/{workload}/agents/1"} <= set(picture.links)
    compared, does, now = picture.charts
    assert compared["layer"][0]["data"]["values"][0]["name"] == "agent 1"
    assert does["layer"] != now["layer"]


def test_the_headroom_is_one_bar_with_the_agent_in_it(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    rules = {**REPORT["heuristics"], "tuned_rule": {**MEAN, "mean": -0.55}}
    for room in (HEADROOM, {**HEADROOM, "beyond": None}):
        trained(backend, workload, heuristics=rules, headroom=room)
    bars = [shown(client, f"/ui/workloads/{workload}/agents/{version}").charts[0]["layer"] for version in (1, 2)]
    parts = [[(row["part"], row["low"], row["high"]) for row in bar["data"]["values"]] for bar, _ in bars]
    known = [
        ("the tuned rule", -0.8, -0.7),
        ("the tuned rule that knows each run's law", -0.7, -0.6),
    ]
    assert parts == [[*known, ("hindsight", -0.6, pytest.approx(-0.4))], known]
    assert bars[0][1]["data"]["values"] == [{"part": "agent 1", "low": pytest.approx(-0.65)}]
    words = {"best": "smallest_area", "knows": "true run times", "agent": {"mean": -0.63}}
    trained(backend, workload, headroom=HEADROOM | words)
    bar, mark = shown(client, f"/ui/workloads/{workload}/agents/3").charts[0]["layer"]
    names = [row["part"] for row in bar["data"]["values"]]
    assert names == ["smallest area", "smallest area that knows true run times", "hindsight"]
    assert mark["data"]["values"] == [{"part": "agent 3", "low": pytest.approx(-0.63)}]
    texts = shown(client, f"/ui/workloads/{workload}/agents/1").texts
    assert "Tuned by 12.5 %. The line across the bar is the agent." in texts


def test_a_champion_is_told_of_by_itself(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload, promote=True)
    picture = shown(client, f"/ui/workloads/{workload}/agents/1")
    assert {"champion", "Policy", "Roll back", "not evaluated yet"} <= set(picture.texts)
    assert "Recommended change by state" not in picture.texts
    assert f"/ui/workloads/{workload}/agents/1" in shown(client, f"/ui/workloads/{workload}").links
    assert client.get(f"/ui/workloads/{workload}/agents/2").status_code == 404


def test_an_agent_whose_report_tells_nothing_is_shown(client: TestClient, workload: str, backend: Database) -> None:
    publish_agent(backend, workload)
    with backend.session() as session:
        session.query(Agent).one().report = {}
    assert "re-evaluate" in shown(client, f"/ui/workloads/{workload}/agents/1").texts


@on_both
def test_an_agent_is_what_its_promotions_made_of_it_whatever_its_verdict_was(
    client: TestClient, spec: dict[str, Any], backend: Database
) -> None:
    names = ("resnet18", "resnet50")
    for name in names:
        assert client.post("/workloads", json={**spec, "name": name}).status_code == 201
        publish_model(backend, name)
        trained(backend, name)
        trained(backend, name)
    one, other = (f"/workloads/{name}/agents" for name in names)

    def page(path: str) -> list[str]:
        return [text for text in shown(client, f"/ui{path}").texts if text]

    def read(path: str) -> tuple[str, bool, bool]:
        body = client.get(path).json()
        listed = {item["version"]: item for item in client.get(path.rpartition("/")[0]).json()["items"]}
        members = ("status", "champion_since", "champion_until")
        assert [body[name] for name in members] == [listed[body["version"]][name] for name in members]
        return body["status"], body["champion_since"] is not None, body["champion_until"] is not None

    never, now, former = ("never_promoted", False, False), ("champion", True, False), ("former_champion", True, True)
    assert read(f"{one}/1") == never
    assert "Never promoted" in page(f"{one}/1")
    client.post(f"{one}/1/promote")
    client.post(f"{other}/2/promote")
    assert [read(f"{at}/{version}") for at in (one, other) for version in (1, 2)] == [now, never, never, now]
    (present,) = [text for text in page(f"{one}/1") if text.startswith("Champion since 20")]
    assert present.endswith(" UTC")
    (verdict,) = [text for text in page(f"{one}/1") if text.startswith("Verdict when its training ended, 20")]
    assert verdict.endswith(" UTC")
    assert page(f"{one}/1")[page(f"{one}/1").index(verdict) + 1] == "not better"
    client.post(f"{one}/2/promote")
    assert [read(f"{one}/{version}") for version in (1, 2)] == [former, now]
    client.post(f"{one}/2/rollback")
    assert [read(f"{one}/{version}") for version in (1, 2)] == [now, former]
    assert [text for text in page(f"{one}/2") if text.startswith("Was champion until 20")]
    client.post(f"{one}/1/rollback")
    assert [read(f"{at}/{version}") for at in (one, other) for version in (1, 2)] == [former, former, never, now]
    assert len([text for text in page(one.removesuffix("/agents")) if text.startswith("was champion until")]) == 2


def test_a_former_champion_of_several_roles_was_one_until_the_last_of_them_ended(
    client: TestClient, spec: dict[str, Any], backend: Database
) -> None:
    names, began = ("resnet18", "resnet50"), utc_now() - timedelta(days=1)
    for name in names:
        assert client.post("/workloads", json={**spec, "name": name}).status_code == 201
        publish_model(backend, name)
        trained(backend, name)
        trained(backend, name)
    history = {  # role, version, hours
        "resnet18": [("first", 1, 0), ("second", 1, 1), ("second", 2, 2), ("first", 2, 3)],
        "resnet50": [("first", 1, 0), ("second", 1, 1), ("first", 2, 2), ("second", 2, 3)],
    }
    with backend.session() as session:
        for name, steps in history.items():
            workload = workloads.require(session, "default", name)
            for role, version, hours in steps:
                result = {"workload_id": workload.id, "tenant": "default", "role": role, "agent_version": version}
                at = began + timedelta(hours=hours)
                session.add(Promotion(id=new_id(), created_at=at, previous=None, reason="", **result))
    for name in names:
        body = client.get(f"/workloads/{name}/agents/1").json()
        assert datetime.fromisoformat(body["champion_until"]) == began + timedelta(hours=3)

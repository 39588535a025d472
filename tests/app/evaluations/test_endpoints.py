"""Evaluations over HTTP: asking for one, listing, reading, and its page."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.agents.evidence import JUDGE
from app.database.engine import Database
from app.database.tables import Evaluation, Job
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model
from tests.app.evaluations.published import PAGE, REPORT, publish_evaluation
from tests.app.samples.bodies import csv_of, upload_csv


@pytest.fixture
def trained(workload: str, backend: Database) -> str:
    """A workload with two models and three agents, the second of which is the champion."""
    publish_model(backend, workload)
    publish_model(backend, workload)
    for version in (1, 2, 3):
        publish_agent(backend, workload, promote=version == 2)
    return workload


def requested_evaluation(client: TestClient, backend: Database, **body: Any) -> dict[str, Any]:
    """The request as its job keeps it."""
    answer = client.post("/evaluations", json=body)
    assert answer.status_code == 202, answer.text
    assert (answer.json()["type"], answer.json()["state"]) == ("evaluate", "queued")
    with backend.reading() as session:
        return session.get_one(Job, answer.json()["id"]).request


@on_both
def test_an_evaluation_is_a_job_with_agents_and_model_settled(
    client: TestClient, trained: str, backend: Database
) -> None:
    assert requested_evaluation(client, backend, workload=trained) == {
        "workload": trained,
        "agents": [2],
        "level": "L4",
        "seeds": 5,
        "episodes": 256,
        "seed": 0,
        "model": 2,
        "held_out": {"share": 0.25, "of": "executions", "executions": None},
        "equivalence_margin": 0.01,
    }


@pytest.mark.parametrize(
    ("agents", "versions"),
    [("champion", [2]), ("newest", [3]), (1, [1]), ([3, "champion", 2, "newest"], [3, 2])],
)
def test_agents_are_named_by_version_or_by_role(
    client: TestClient, trained: str, backend: Database, agents: Any, versions: list[int]
) -> None:
    request = requested_evaluation(
        client, backend, workload=trained, agents=agents, model=1, level="L2", held_out={"share": 0.5}
    )
    assert (request["agents"], request["model"], request["level"]) == (versions, 1, "L2")


@pytest.mark.parametrize(
    ("change", "pointer", "accepted"),
    [
        ({"agents": [2, 9]}, "/agents/1", "the newest is 3"),
        ({"agents": [0]}, "/agents/0", "must be an agent's version"),
        ({"agents": ["best"]}, "/agents/0", "'champion' or 'newest'"),
        ({"agents": [True]}, "/agents/0", "must be an agent's version"),
        ({"agents": []}, "/agents", "at least 1"),
        ({"level": "L5"}, "/level", "'L4'"),
        ({"seeds": 4}, "/seeds", "greater than or equal to 5"),
        ({"episodes": 0}, "/episodes", "greater than or equal to 8"),
        ({"seed": -1}, "/seed", "greater than or equal to 0"),
        ({"model": 7}, "/model", "the newest is 2"),
        ({"held_out": {"share": 1.0}}, "/held_out/share", "less than 1"),
        ({"held_out": {"executions": ["a", "b"]}}, "/held_out/executions/1", "must be the name of an execution"),
        ({"held_out": {"executions": ["a", "a"]}}, "/held_out/executions", "each execution once"),
        ({"held_out": {"of": "users"}}, "/held_out/of", "must be one of executions"),
        ({"colour": "red"}, "/colour", "not permitted"),
    ],
)
def test_a_strange_request_is_refused_by_field_value_and_what_is_accepted(
    client: TestClient, trained: str, change: dict[str, Any], pointer: str, accepted: str
) -> None:
    upload_csv(client, trained, csv_of({"a": 3}))
    answer = client.post("/evaluations", json={"workload": trained, **change})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    (error,) = answer.json()["errors"]
    assert error["pointer"] == pointer
    assert accepted in error["message"]
    assert error["value"] == value_at(change, pointer)


def value_at(body: Any, pointer: str) -> Any:
    for part in pointer.strip("/").split("/"):
        body = body[int(part)] if isinstance(body, list) else body[part]
    return body


def test_a_body_is_needed(client: TestClient, trained: str) -> None:
    assert client.post("/evaluations").status_code == 422
    assert client.post("/evaluations", json={}).json()["errors"][0]["pointer"] == "/workload"


def test_what_is_missing_is_said_with_what_to_do(client: TestClient, workload: str, backend: Database) -> None:
    assert client.post("/evaluations", json={"workload": "unknown"}).status_code == 404
    answer = client.post("/evaluations", json={"workload": workload})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (409, "/agents")
    assert f"POST /workloads/{workload}/agents" in answer.json()["detail"]
    publish_agent(backend, workload)
    answer = client.post("/evaluations", json={"workload": workload})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (409, "/agents/0")
    assert "the current policy is a heuristic" in answer.json()["detail"]


@on_both
def test_the_same_key_is_one_evaluation(client: TestClient, trained: str, backend: Database) -> None:
    headers = {"Idempotency-Key": "once"}
    first = client.post("/evaluations", json={"workload": trained}, headers=headers)
    again = client.post("/evaluations", json={"workload": trained}, headers=headers)
    other = client.post("/evaluations", json={"workload": trained, "seed": 1}, headers=headers)
    assert (first.json(), again.headers["Idempotent-Replayed"]) == (again.json(), "true")
    assert (first.status_code, again.status_code, other.status_code) == (202, 202, 422)
    with backend.reading() as session:
        assert session.query(Job).count() == 1


@on_both
def test_evaluations_are_listed_newest_first(
    client: TestClient, trained: str, backend: Database, spec: dict[str, Any]
) -> None:
    evaluations = [publish_evaluation(backend, trained, agent) for agent in (1, 2, 3)]
    client.post("/workloads", json={**spec, "name": "other"})
    body = client.get(f"/evaluations?workload={trained}&limit=2").json()
    assert [item["id"] for item in body["items"]] == evaluations[:0:-1]
    assert "report" not in body["items"][0]
    assert [item["id"] for item in client.get(body["next"]).json()["items"]] == evaluations[:1]
    assert client.get("/evaluations?workload=other").json() == {"items": [], "next": None}
    assert len(client.get("/evaluations").json()["items"]) == 3
    assert client.get("/evaluations?workload=nobodys").status_code == 404


@on_both
def test_an_evaluation_is_read_by_programs_and_by_people(client: TestClient, trained: str, backend: Database) -> None:
    evaluation = publish_evaluation(backend, trained, 3)
    body = client.get(f"/evaluations/{evaluation}").json()
    assert (body["id"], body["workload"], body["model_version"]) == (evaluation, trained, 1)
    present = {"judge": JUDGE, "outdated": False, "current": True}
    assert body["verdicts"] == [{"agent": 3, "level": "L2", "reason": "L3 can't be judged", **present}]
    assert body["report"] == REPORT
    page = client.get(f"/evaluations/{evaluation}/report")
    assert (page.status_code, page.content) == (200, PAGE)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'")


def test_an_unknown_evaluation_is_not_found(client: TestClient) -> None:
    for path in ("/evaluations/none", "/evaluations/none/report"):
        assert (client.get(path).status_code, client.get(path).json()["instance"]) == (404, path)


@on_both
def test_what_no_database_can_hold_is_refused(client: TestClient, trained: str) -> None:
    for body in ({"workload": "a\0b"}, {"workload": trained, "held_out": {"executions": ["\0"]}}):
        assert client.post("/evaluations", json=body).status_code == 422
    for path in ("/evaluations/%00", "/evaluations/%00/report", "/evaluations?workload=%00"):
        assert client.get(path).status_code == 422


@on_both
def test_evaluations_go_with_their_workload(client: TestClient, trained: str, backend: Database) -> None:
    publish_evaluation(backend, trained)
    assert client.delete(f"/workloads/{trained}").status_code == 204
    with backend.reading() as session:
        assert session.query(Evaluation).count() == 0

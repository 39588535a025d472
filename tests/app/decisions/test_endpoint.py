"""`GET /decision` in both forms."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.database.engine import Database
from app.database.tables import DomainModel
from app.kinds.contract.engine import ADDED
from app.kinds.iterative.report import Decision
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model

REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
STATE = "iteration=11&allocation=gpus:4&metric=iteration_seconds:31.5&feature=batch:128"


def pointers(answer: Any) -> list[str]:
    """Pointers of a problem."""
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    return [error["pointer"] for error in answer.json()["errors"]]


@on_both
def test_a_runs_decisions_are_read_as_they_were_given(client: TestClient, workload: str) -> None:
    started = client.post("/runs", json={"workload": workload}).json()
    run = started["id"]
    first = client.get(f"/decision?run={run}")
    assert Decision.model_validate(first.json()) == Decision.model_validate(started["decision"])
    bodies = [client.put(f"/runs/{run}/iterations/{n}", json=REPORT).json() for n in range(3)]
    for n in range(3):
        assert client.get(f"/decision?run={run}&iteration={n}").json() == bodies[n]
    last = client.get(f"/decision?run={run}")
    assert (last.json(), last.headers["cache-control"]) == (bodies[2], "no-store")
    assert list(last.json()) == [name for name in Decision.model_fields if name not in ADDED]
    missing = client.get(f"/decision?run={run}&iteration=3")
    assert (missing.status_code, "the next one to report is 3" in missing.json()["detail"]) == (404, True)


def test_a_state_given_in_full_is_decided(client: TestClient, workload: str) -> None:
    answer = client.get(f"/decision?workload={workload}&{STATE}")
    decision = answer.json()
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert (decision["run"], decision["reported"], decision["iteration"]) == (None, 11, 12)
    assert set(decision["allocation"]) == {"gpus"}
    assert client.get(f"/decision?workload={workload}&{STATE.replace(':', '%3A')}").json()["iteration"] == 12


def test_totals_and_targets_can_be_given(client: TestClient, backend: Database, workload: str) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload, promote=True)
    path = f"/decision?workload={workload}&{STATE}"
    spent = client.get(f"{path}&total=iteration_seconds:1700").json()["reason"]["text"]
    more = client.get(f"{path}&total=iteration_seconds:1700&target=iteration_seconds:3000").json()["reason"]["text"]
    assert "; target 30 min" in spent
    assert "; target 50 min" in more
    sure = client.get(f"{path}&probability=iteration_seconds:0.8").json()["reason"]["text"]
    assert ("at 80 %" in sure, "at 80 %" in more) == (True, False)


def test_nothing_reported_is_answered_by_the_first_allocation(client: TestClient, workload: str) -> None:
    decision = client.get(f"/decision?workload={workload}&feature=batch:16").json()
    assert (decision["reported"], decision["iteration"], decision["allocation"]) == (None, 0, {"gpus": 4})


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        (STATE.replace("gpus:4", "gpus:40"), "/query/allocation/gpus"),
        (STATE.replace("gpus:4", "cpus:4"), "/query/allocation/cpus"),
        (STATE.replace("gpus:4", "gpus:four"), "/query/allocation"),
        (STATE.replace("gpus:4", "gpus:4,gpus:4"), "/query/allocation/gpus"),
        (STATE.replace("31.5", "nan"), "/query/metric/iteration_seconds"),
        (STATE.replace("31.5", "inf"), "/query/metric/iteration_seconds"),
        (STATE.replace("31.5", "-1"), "/query/metric/iteration_seconds"),
        (STATE.replace("&feature=batch:128", ""), "/query/feature/batch"),
        (STATE.replace("iteration=11", "iteration=90"), "/query/iteration"),
        (STATE.replace("iteration=11", "iteration=x"), "/query/iteration"),
        (STATE.replace("iteration=11&", ""), "/query/iteration"),
        (STATE + "&iteration=2", "/query/iteration"),
        (STATE + "&total=loss:3", "/query/total/loss"),
        (STATE + "&total=iteration_seconds:-3", "/query/total/iteration_seconds"),
        (STATE + "&target=iteration_seconds:0", "/query/target/iteration_seconds"),
        (STATE + "&target=iteration_seconds:5e-324", "/query/target/iteration_seconds"),
        (STATE + "&target=iteration_seconds:1e300", "/query/target/iteration_seconds"),
        (STATE + "&probability=iteration_seconds:1.2", "/query/probability/iteration_seconds"),
        (STATE + "&probability=loss:0.9", "/query/probability/loss"),
        (STATE + "&colour=red", "/query/colour"),
        (STATE + "&workload=other", "/query/workload"),
    ],
)
def test_a_state_that_does_not_fit_names_the_parameter(
    client: TestClient, workload: str, query: str, pointer: str
) -> None:
    assert pointer in pointers(client.get(f"/decision?workload={workload}&{query}"))


def test_a_run_or_a_workload_is_needed(client: TestClient) -> None:
    assert pointers(client.get("/decision")) == ["/query/workload"]
    assert pointers(client.get("/decision?run=a&run=b")) == ["/query/run"]
    assert pointers(client.get("/decision?run=a&workload=b")) == ["/query/workload"]


def test_decisions_obey_a_promotion_and_a_rollback(client: TestClient, backend: Database, workload: str) -> None:
    publish_model(backend, workload)
    path = f"/decision?workload={workload}&{STATE}"
    assert client.get(path).json()["source"] == "heuristic"
    publish_agent(backend, workload, promote=True)
    with client:
        time.sleep(0.8)
        assert client.get(path).json()["agent"] == 1


def test_reading_never_writes(client: TestClient, backend: Database, workload: str) -> None:
    run = client.post("/runs", json={"workload": workload}).json()["id"]
    for _ in range(3):
        client.get(f"/decision?run={run}")
        client.get(f"/decision?workload={workload}&{STATE}")
    assert client.get(f"/runs/{run}").json()["iterations"] == 0


def test_the_schema_has_the_hot_routes(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert schema["paths"]["/decision"]["get"]["operationId"] == "get_decision"
    assert schema["paths"]["/runs/{run}/iterations/{iteration}"]["put"]["operationId"] == "report_iteration"
    names = set(schema["components"]["schemas"]["Decision"]["properties"])
    assert names == set(Decision.model_fields)


@pytest.mark.parametrize("promoted", [False, True])
@pytest.mark.parametrize("table", ["other version", "other arrays", "no table"])
def test_a_model_of_another_version_is_said_and_the_heuristic_answers(
    client: TestClient, workload: str, database: Database, table: str, promoted: bool
) -> None:
    publish_model(database, workload)
    if promoted:
        publish_agent(database, workload, promote=True)
    with database.session() as session:
        row = session.scalars(select(DomainModel)).one()
        row.table = {
            "other version": row.table.replace(b'"format":"1"', b'"format":"9"'),
            "other arrays": row.table.replace(b'"noise_sd"', b'"noise_xx"'),
            "no table": b"none",
        }[table]
    started = client.post("/runs", json={"workload": workload})
    assert started.status_code == 201
    assert "model 1 can't be used" in started.json()["decision"]["reason"]["text"]
    decided = client.put(f"/runs/{started.json()['id']}/iterations/0", json=REPORT)
    response = client.get(f"/decision?workload={workload}&{STATE}")
    for answer in (decided, response):
        assert answer.status_code in (200, 201)
        body = answer.json()
        assert (body["source"], body["agent"]) == ("fallback", 1 if promoted else None)
        assert "model 1 can't be used" in body["reason"]["text"]
        assert "decides" in body["reason"]["text"]
    predicted = client.get(f"/workloads/{workload}/models/1/predict?allocation=gpus:4&feature=batch:128")
    assert (predicted.status_code, "fit it again" in predicted.json()["detail"]) == (409, True)

"""Runs over HTTP: a run from its start to the sample it becomes, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.kinds.iterative.report import Decision
from app.main import create_app
from app.settings import Settings
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model

STATE = "iteration=1&allocation=gpus:16&metric=iteration_seconds:31.5&feature=batch:128"
REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}


def pointers(answer: Any) -> list[str]:
    """Pointers of a problem."""
    assert answer.headers["content-type"] == "application/problem+json"
    return [error["pointer"] for error in answer.json()["errors"]]


@pytest.fixture
def run(client: TestClient, workload: str) -> str:
    answer = client.post("/runs", json={"workload": workload})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@on_both
def test_a_run_from_start_to_sample(client: TestClient, workload: str, run: str) -> None:
    decisions = []
    for number in range(3):
        answer = client.put(f"/runs/{run}/iterations/{number}", json=REPORT)
        assert answer.status_code == 201
        decisions.append(answer.json())
        assert (decisions[-1]["reported"], decisions[-1]["iteration"]) == (number, number + 1)
    body = client.get(f"/runs/{run}").json()
    assert (body["state"], body["iterations"], body["finished_at"]) == ("running", 3, None)
    assert Decision.model_validate(body["decision"]) == Decision.model_validate(decisions[-1])
    ended = client.patch(f"/runs/{run}", json={"state": "finished"}).json()
    assert (ended["state"], ended["iterations"], ended["finished_at"] is None) == ("finished", 3, False)
    samples = client.get(f"/workloads/{workload}/samples").json()["items"]
    assert [(s["execution"], s["source"], s["iterations"]) for s in samples] == [(run, "run", 3)]


@on_both
@pytest.mark.parametrize(
    ("target", "price", "text"),
    [
        (60, 3600, "complete after 2 iterations: took 50 s, target 1 min (met); cost $200.00"),
        (49, 3600, "complete after 2 iterations: took 50 s, target 49 s (missed); cost $200.00"),
        (60, 0, "complete after 2 iterations: took 50 s, target 1 min (met)"),
        (None, 3600, "complete after 2 iterations: cost $200.00"),
        (None, 0, "complete after 2 iterations"),
    ],
)
def test_the_last_decision_states_time_against_target_and_cost(
    client: TestClient, spec: dict[str, Any], target: float | None, price: float, text: str
) -> None:
    resource = {**spec["resources"][0], "price_per_hour": price}
    metrics = [
        {**spec["metrics"][0], "target": target},
        {"name": "loss", "unit": "", "target": 2, "goal": "at_most"},  # of each iteration: no total to compare
        {"name": "steps", "unit": "", "target": None if target is None else 9, "scope": "run", "goal": "at_least"},
    ]
    known = client.post("/workloads", json={**spec, "iterations": 2, "resources": [resource], "metrics": metrics})
    assert known.status_code == 201
    started = [client.post("/runs", json={"workload": known.json()["name"]}).json()["id"] for _ in range(2)]
    for seconds, run in zip((50, 40), started, strict=True):  # the second must not show in the first
        for number in range(2):
            measured = {"iteration_seconds": seconds / 2, "loss": 1.0, "steps": 5}
            answer = client.put(f"/runs/{run}/iterations/{number}", json={**REPORT, "metrics": measured}).json()
        assert answer["reason"]["code"] == "complete"
    shown = client.get(f"/runs/{started[0]}").json()["decision"]["reason"]["text"]
    if target is not None:
        text = text.replace("; cost", "; steps 10, target at least 9 (met); cost")
        text += "" if price else "; steps 10, target at least 9 (met)"
    assert shown == text


def test_iterations_page_through_in_order(client: TestClient, run: str) -> None:
    for number in range(7):
        client.put(f"/runs/{run}/iterations/{number}", json=REPORT)
    visited, link = [], f"/runs/{run}/iterations?limit=3"
    while link:
        page = client.get(link).json()
        visited += [item["iteration"] for item in page["items"]]
        assert page["items"][0]["report"] == {"kind": "iterative", **REPORT}
        assert page["items"][0]["decision"]["run"] == run
        link = page["next"]
    assert visited == list(range(7))


@on_both
def test_a_repeated_report_is_answered_the_same(client: TestClient, run: str) -> None:
    first = client.put(f"/runs/{run}/iterations/0", json=REPORT)
    reordered = json.dumps(dict(reversed(REPORT.items())), indent=2).replace("4\n", "4.0\n")
    again = client.put(
        f"/runs/{run}/iterations/0", content=reordered, headers={"content-type": "application/json; charset=utf-8"}
    )
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == client.get(f"/decision?run={run}&iteration=0").json()
    other = client.put(f"/runs/{run}/iterations/0", json=REPORT | {"metrics": {"iteration_seconds": 31.6}})
    assert (other.status_code, pointers(other)) == (409, ["/path/iteration"])


@on_both
def test_ending_twice_changes_nothing_and_otherwise_is_refused(client: TestClient, workload: str, run: str) -> None:
    client.put(f"/runs/{run}/iterations/0", json=REPORT)
    first, again, other = (
        client.patch(f"/runs/{run}", json={"state": state}) for state in ("failed", "failed", "finished")
    )
    assert (first.status_code, again.status_code, other.status_code) == (200, 200, 409)
    assert first.json() == again.json()
    late = client.put(f"/runs/{run}/iterations/1", json=REPORT)
    assert (late.status_code, late.json()["detail"].endswith("has failed; it accepts no more reports")) == (409, True)
    assert len(client.get(f"/workloads/{workload}/samples").json()["items"]) == 1


def test_a_run_without_reports_leaves_no_sample(client: TestClient, workload: str, run: str) -> None:
    assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200
    assert client.get(f"/workloads/{workload}/samples").json()["items"] == []


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"allocation": {"gpus": 17}}, "/allocation/gpus"),
        ({"allocation": {"gpus": 4.5}}, "/allocation/gpus"),
        ({"allocation": {"tpus": 4}}, "/allocation/tpus"),
        ({"metrics": {"iteration_seconds": -1}}, "/metrics/iteration_seconds"),
        ({"metrics": {"iteration_seconds": 0}}, "/metrics/iteration_seconds"),
        ({"metrics": {"iteration_seconds": "fast"}}, "/metrics/iteration_seconds"),
        ({"metrics": {"iteration_seconds": None}}, "/metrics/iteration_seconds"),
        ({"metrics": {"iteration_seconds": 3, "größe": 1}}, "/metrics/größe"),
        ({"features": {}}, "/features/batch"),
        ({"features": {"batch": 0}}, "/features/batch"),
        ({"extra": 1}, "/extra"),
        ({"metrics": [1]}, "/metrics"),
    ],
)
def test_a_report_that_does_not_fit_names_the_field(
    client: TestClient, run: str, change: dict[str, Any], pointer: str
) -> None:
    answer = client.put(f"/runs/{run}/iterations/0", json=REPORT | change)
    assert answer.status_code == 422
    assert pointer in pointers(answer)
    assert client.get(f"/runs/{run}").json()["iterations"] == 0


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused_by_name(client: TestClient, run: str, number: str) -> None:
    body = json.dumps(REPORT).replace("31.5", number)
    headers = {"content-type": "application/json"}
    answer = client.put(f"/runs/{run}/iterations/0", content=body, headers=headers)
    assert (answer.status_code, pointers(answer)) == (422, ["/metrics/iteration_seconds"])


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"null"])
def test_what_is_no_report_is_refused(client: TestClient, run: str, body: bytes) -> None:
    answer = client.put(f"/runs/{run}/iterations/0", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("number", ["-1", "one", "1.0", "99999999999", "٣"])
def test_a_number_that_is_none_is_refused(client: TestClient, run: str, number: str) -> None:
    answer = client.put(f"/runs/{run}/iterations/{number}", json=REPORT)
    assert (answer.status_code, pointers(answer)) == (422, ["/path/iteration"])


def test_another_content_type_is_refused(client: TestClient, run: str) -> None:
    answer = client.put(f"/runs/{run}/iterations/0", content=b"a,b", headers={"content-type": "text/csv"})
    assert (answer.status_code, pointers(answer)) == (415, ["/header/Content-Type"])


def test_unknown_runs_and_workloads_are_404(client: TestClient, workload: str) -> None:
    answers = [
        client.post("/runs", json={"workload": "nobody"}),
        client.get("/runs/nobody"),
        client.get("/runs/nobody/iterations"),
        client.patch("/runs/nobody", json={"state": "failed"}),
        client.put("/runs/nobody/iterations/0", json=REPORT),
        client.get("/decision?run=nobody"),
        client.get("/decision?workload=nobody"),
    ]
    assert [answer.status_code for answer in answers] == [404] * 7


def test_a_runs_own_target_is_what_it_is_decided_by(client: TestClient, backend: Database, workload: str) -> None:
    publish_model(backend, workload)
    texts = []
    for targets in ({}, {"iteration_seconds": 900.0}):
        started = client.post("/runs", json={"workload": workload, "targets": targets, "features": {"batch": 64}})
        identifier = started.json()["id"]
        assert client.get(f"/runs/{identifier}").json()["start"].get("targets", {}) == targets
        texts.append(client.put(f"/runs/{identifier}/iterations/0", json=REPORT).json()["reason"]["text"])
    assert "; target 30 min" in texts[0]
    assert "; target 15 min" in texts[1]


def test_a_changed_target_is_obeyed_by_a_run_that_is_under_way(client: TestClient, workload: str, run: str) -> None:
    client.put(f"/runs/{run}/iterations/0", json=REPORT)
    client.patch(f"/workloads/{workload}", json={"targets": {"iteration_seconds": 1234}})
    with client:  # with what runs in the background
        client.get(f"/decision?workload={workload}")
        time.sleep(0.6)
        decision = client.put(f"/runs/{run}/iterations/1", json=REPORT).json()
    assert "; target 20 min 34 s" in decision["reason"]["text"]


def test_a_runs_own_probability_is_what_it_is_decided_by(client: TestClient, backend: Database, workload: str) -> None:
    """As long as the run lasts, whatever is asked of its workload meanwhile, and its agent stands back."""
    publish_model(backend, workload)
    publish_agent(backend, workload, promote=True)
    for probability, code in ((0.9, "outside_experience"), (None, None)):
        body = {"workload": workload, "probabilities": {"iteration_seconds": probability}}
        started = client.post("/runs", json=body).json()
        assert client.get(f"/runs/{started['id']}").json()["start"]["probabilities"] == body["probabilities"]
        path = f"/runs/{started['id']}/iterations"
        first = client.put(f"{path}/0", json=REPORT).json()
        second = client.put(f"{path}/1", json=REPORT).json()
        assert [one["reason"]["code"] == code for one in (first, second)] == [code is not None] * 2
        text = "agents are not trained for a required probability; model_predictive decides: "
        assert [one["reason"]["text"].startswith(text) for one in (first, second)] == [code is not None, False]
        assert ("at 90 %" in second["reason"]["text"]) == (code is not None)
        assert 0 <= second["chances"]["iteration_seconds"] <= 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"targets": {"loss": 1}}, "/targets/loss"),
        ({"probabilities": {"loss": 0.9}}, "/probabilities/loss"),
        ({"probabilities": {"iteration_seconds": 1}}, "/probabilities/iteration_seconds"),
        ({"targets": {"iteration_seconds": 0}}, "/targets/iteration_seconds"),
        ({"features": {"size": 1}}, "/features/size"),
        ({"features": {"batch": 0}}, "/features/batch"),
        ({"iterations": 4}, "/iterations"),
        ({"first_iteration": 100_000}, "/first_iteration"),
        ({"workload": 7}, "/workload"),
    ],
)
def test_a_start_that_does_not_fit_names_the_field(
    client: TestClient, workload: str, body: dict[str, Any], pointer: str
) -> None:
    answer = client.post("/runs", json={"workload": workload} | body)
    assert answer.status_code == 422
    assert pointer in pointers(answer)


def test_a_run_may_begin_where_others_have_been(client: TestClient, workload: str, database: Database) -> None:
    publish_model(database, workload)
    started = client.post("/runs", json={"workload": workload, "first_iteration": 7}).json()
    path = f"/runs/{started['id']}"
    assert (started["decision"]["iteration"], started["decision"]["reported"]) == (7, None)
    assert client.get(f"/decision?run={started['id']}").json()["iteration"] == 7
    assert client.put(f"{path}/iterations/0", json=REPORT).status_code == 404
    assert client.put(f"{path}/iterations/8", json=REPORT).status_code == 409
    decided = client.put(f"{path}/iterations/7", json=REPORT).json()
    assert (decided["iteration"], client.put(f"{path}/iterations/7", json=REPORT).json()) == (8, decided)
    assert [item["iteration"] for item in client.get(f"{path}/iterations").json()["items"]] == [7]
    for page in ("", "/others"):
        assert client.get(f"/ui/runs/{started['id']}{page}").status_code == 200
    assert client.patch(path, json={"state": "finished"}).json()["iterations"] == 8
    (sample,) = client.get(f"/workloads/{workload}/samples").json()["items"]
    assert (sample["execution"], sample["iterations"]) == (started["id"], 1)
    exported = client.get(f"/workloads/{workload}/samples", headers={"Accept": "text/csv"}).text
    assert exported.splitlines()[1].startswith(f"{started['id']},7,")


def test_a_start_under_a_key_happens_once(client: TestClient, workload: str) -> None:
    headers = {"Idempotency-Key": "start-1"}
    first, again = (client.post("/runs", json={"workload": workload}, headers=headers) for _ in range(2))
    assert first.json() == again.json()


def test_the_start_names_the_agent(client: TestClient, backend: Database, workload: str) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload, promote=True)
    started = client.post("/runs", json={"workload": workload}).json()
    assert (started["agent"], started["workload"], started["decision"]["run"]) == (1, workload, started["id"])
    decision = client.put(f"/runs/{started['id']}/iterations/0", json=REPORT).json()
    assert (decision["agent"], decision["source"] in ("agent", "guard")) == (1, True)


@on_both
def test_a_workload_registered_again_starts_runs_and_decides_by_its_new_spec_at_once(
    client: TestClient, workload: str, spec: dict[str, Any]
) -> None:
    old = client.post("/runs", json={"workload": workload}).json()
    assert client.get(f"/decision?workload={workload}&{STATE}").status_code == 200
    assert client.delete(f"/workloads/{workload}?force=true").status_code == 204
    spec["resources"][0]["maximum"] = 8
    assert client.post("/workloads", json=spec).status_code == 201
    new = client.post("/runs", json={"workload": workload})
    assert (new.status_code, new.json()["id"] != old["id"]) == (201, True)
    refused = client.get(f"/decision?workload={workload}&{STATE}")
    assert refused.status_code == 422
    assert client.put(f"/runs/{old['id']}/iterations/0", json=REPORT).status_code == 404


@on_both
def test_a_run_of_a_workload_that_another_process_deleted_is_not_found(
    client: TestClient, workload: str, run: str, backend: Database
) -> None:
    workloads.delete(backend, "default", workload, force=True)  # this process's cache still has it
    answer = client.post("/runs", json={"workload": workload})
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")
    assert workload in answer.json()["detail"]
    assert client.get(f"/runs/{run}").status_code == 404


@on_both
def test_runs_are_listed_newest_first_with_their_last_decisions(client: TestClient, workload: str) -> None:
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
    result = [client.post("/runs", json={"workload": workload}).json()["id"] for _ in range(4)]
    decision = client.put(f"/runs/{result[3]}/iterations/0", json=report).json()
    client.patch(f"/runs/{result[1]}", json={"state": "failed"})
    first = client.get("/runs?limit=3").json()
    assert [one["id"] for one in first["items"]] == result[:0:-1]
    assert first["items"][0]["decision"]["reason"] == decision["reason"]
    assert [one["id"] for one in client.get(first["next"]).json()["items"]] == result[:1]
    assert [one["id"] for one in client.get(f"/runs?workload={workload}&state=failed").json()["items"]] == [result[1]]
    assert [one["id"] for one in client.get("/runs?state=running").json()["items"]] == [result[3], result[2], result[0]]
    assert client.get("/runs?workload=unknown").status_code == 404
    assert client.get("/runs?state=asleep").status_code == 422


@on_both
def test_a_page_of_large_reports_is_short(
    settings: Settings, backend: Database, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small as they are stored, large as they are read: what a page takes in memory is bounded all the same."""
    client = TestClient(create_app(settings, backend))
    client.post("/workloads", json=spec)
    run = client.post("/runs", json={"workload": spec["name"]}).json()["id"]
    sizes = [
        len(json.dumps(REPORT)) + len(client.put(f"/runs/{run}/iterations/{number}", json=REPORT).content)
        for number in range(10)
    ]
    monkeypatch.setattr("app.http.pagination.HEAVIEST_PAGE", 2.5 * max(sizes))
    monkeypatch.setattr("app.http.pagination.AT_ONCE", 3)
    visited, link = [], f"/runs/{run}/iterations?limit=500"
    while link:
        page = client.get(link).json()
        assert 1 <= len(page["items"]) <= 3
        visited += [item["iteration"] for item in page["items"]]
        link = page["next"]
    assert visited == list(range(10))
    monkeypatch.setattr("app.http.pagination.HEAVIEST_PAGE", 1)
    assert len(client.get(f"/runs/{run}/iterations").json()["items"]) == 1

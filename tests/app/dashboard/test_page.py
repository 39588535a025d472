"""The dashboard: what is there, what was decided, and nothing that a name could smuggle in."""

from html.parser import HTMLParser
from typing import Any

from fastapi.testclient import TestClient

from app.dashboard.page import Link, table
from app.database.engine import Database
from tests.app.evaluations.published import publish_evaluation
from tests.app.runs.test_queue import POOL


class Texts(HTMLParser):
    """Cells and links of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts, self.links = list[str](), list[str]()
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if name == "href" and value]


def page(client: TestClient) -> Texts:
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Texts(answer.text)


def test_an_empty_service_says_so(client: TestClient) -> None:
    assert page(client).texts.count("none yet") == 4


def test_workloads_and_the_last_decisions_are_shown(client: TestClient, workload: str) -> None:
    run = client.post("/runs", json={"workload": workload}).json()
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
    decision: dict[str, Any] = client.put(f"/runs/{run['id']}/iterations/0", json=report).json()
    found = page(client)
    assert decision["reason"]["text"] in found.texts
    assert "iteration_seconds 1800 s per run" in found.texts
    assert {f"/workloads/{workload}", f"/runs/{run['id']}", "/docs"} <= set(found.links)


def test_queues_are_told_beside_allocations(client: TestClient, workload: str) -> None:
    client.post("/workloads", json=POOL)
    client.post("/runs", json={"workload": workload})
    run = client.post("/runs", json={"workload": "pool"}).json()["id"]
    assert "nothing starts" in page(client).texts
    client.put(f"/runs/{run}/iterations/0", json={"now": 1.0, "queued": [{"id": "a", "processors": 2}]})
    assert {"pool 1–1 × 8 processors", "slowdown 1", "1 task starts"} <= set(page(client).texts)


def test_an_evaluation_is_linked_with_what_it_found(client: TestClient, workload: str, backend: Database) -> None:
    made = publish_evaluation(backend, workload, agent=3)
    found = page(client)
    assert "agent 3: L2" in found.texts
    assert f"/evaluations/{made}/report" in found.links


def test_every_link_answers(client: TestClient, workload: str, backend: Database) -> None:
    client.post("/runs", json={"workload": workload})
    publish_evaluation(backend, workload)
    statuses = {path: client.get(path).status_code for path in page(client).links if path != "/readyz"}
    assert set(statuses.values()) == {200}


def test_what_was_given_is_escaped() -> None:
    shown = table("T", ["h"], [["<script>alert(1)</script>", Link("<b>ours</b>")]])
    assert "<script>" not in shown
    assert "<b>ours</b>" in shown

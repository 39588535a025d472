"""What browsers are told beside answers, and that pages need no more than they are let have."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.http.limits import NOTHING, inline, policy
from tests.app.evaluations.published import publish_evaluation
from tests.app.samples.bodies import csv_of, upload_csv

COMMON = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin"}


def directives(answer: Any) -> dict[str, list[str]]:
    """The one policy of an answer, by directive."""
    (values,) = answer.headers.get_list("content-security-policy")
    return {words[0]: words[1:] for words in map(str.split, values.split(";"))}


def test_every_ordinary_answer_and_every_refusal_is_guarded(client: TestClient, workload: str) -> None:
    upload_csv(client, workload, csv_of({"run-1": 3}))
    csv = {"accept": "text/csv"}
    answers = [
        *(
            client.get(path)
            for path in ("/", "/docs", "/openapi.json", "/metrics", "/healthz", "/workloads", "/nowhere")
        ),
        *(client.get(f"/workloads/{workload}/samples", headers=headers) for headers in ({}, csv)),
        client.get("/audit", headers=csv),
        client.delete("/jobs"),
        client.post("/workloads", content=b"{", headers={"content-type": "application/json"}),
        client.get("/decision?run=none"),
        client.put("/runs/none/iterations/0", json={}),
        client.get("/workloads", headers={"host": "evil.example"}),
        client.delete(f"/workloads/{workload}"),
    ]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in COMMON} == COMMON, answer.url
        assert directives(answer)["frame-ancestors"] == ["'none'"]
        assert directives(answer)["default-src"] == ["'none'"]


def test_hot_answers_are_taken_for_what_they_say_they_are(client: TestClient, workload: str) -> None:
    run = client.post("/runs", json={"workload": workload}).json()["id"]
    assert client.get(f"/decision?run={run}").headers["x-content-type-options"] == "nosniff"


def test_pages_may_run_and_load_what_they_hold_themselves_and_nothing_else(
    client: TestClient, workload: str, backend: Database
) -> None:
    evaluation = publish_evaluation(backend, workload)
    for path, scripts in (("/", 0), ("/docs", 1), (f"/evaluations/{evaluation}/report", 0)):
        answer = client.get(path)
        allowed = directives(answer)
        for tag, most in (("script", scripts), ("style", path != "/")):
            matches = re.findall(rf"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
            assert len(matches) <= most, path
            for text in matches:
                digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
                assert f"'sha256-{digest}'" in allowed[f"{tag}-src"], path
        assert "'unsafe-inline'" not in allowed.get("script-src", []), path
        loaded = re.findall(r'(?:src|href)="([^"]*)"', answer.text)
        assert [one for one in loaded if "//" in one] == [], path


def test_the_api_can_be_tried_out_without_asking_anybody_else(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "https://" not in page
    assert "validatorUrl: null" in page
    assert '<a href="/">' in page
    for path, media in (("/docs/swagger-ui.css", "text/css"), ("/docs/swagger-ui-bundle.js", "text/javascript")):
        assert f'"{path}"' in page
        answer = client.get(path)
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, media)


def test_a_policy_names_the_first_style_alone() -> None:
    page = "<style>a</style><style>b</style>"
    assert inline(page, "style") == "a"
    assert inline(page, "script") == ""
    (header,) = policy(style="a", img_src="data:").values()
    assert header.startswith(NOTHING)
    assert header.endswith("; img-src data:; style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='")


@pytest.fixture
def backend(database: Database) -> Database:
    return database

"""Headers and queries of any text: each answer is one that is documented."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ODD = st.sampled_from([*"\t,:;=&%/\"'", "\x7f", "é", "nan", "inf", "1e999", "9" * 400, "-0", "gpus:4", "\\u0000"])
TEXTS = (st.lists(ODD | st.characters(min_codepoint=32, max_codepoint=255), max_size=8)).map("".join)
PARAMETERS = ("iteration", "allocation", "metric", "feature", "total", "target", "probability", "upcoming")
STATE = {"iteration": "3", "allocation": "gpus:4", "metric": "iteration_seconds:21.5", "feature": "batch:64"}
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(name=st.sampled_from(PARAMETERS), text=TEXTS)
def test_queries_of_decisions(client: TestClient, workload: str, name: str, text: str) -> None:
    answer = client.get("/decision", params={"workload": workload, **STATE, name: text})
    assert answer.status_code in (200, 422)
    assert answer.status_code == 422 or answer.json()["predicted"]["iteration_seconds"]["mean"] is not None


@few
@given(text=TEXTS)
@pytest.mark.parametrize("header", ["idempotency-key", "last-event-id", "accept", "traceparent", "x-request-id"])
def test_headers(client: TestClient, workload: str, header: str, text: str) -> None:
    headers = [(header.encode(), text.strip().encode("latin-1"))]
    answers = [
        client.get("/jobs/none/events", headers=headers),
        client.post(f"/workloads/{workload}/models", headers=headers, json={"seed": "x"}),
    ]
    assert all(400 <= answer.status_code < 500 for answer in answers)
    assert not any("\n" in value or "\r" in value for answer in answers for value in answer.headers.values())

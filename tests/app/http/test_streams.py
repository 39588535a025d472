"""Answers that stay open: so many of a tenant, and none of them keeps another tenant waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from fastapi.testclient import TestClient

from app.errors import TooManyRequests
from app.http import streams
from app.http.caller import ANYBODY, current_caller
from tests.batched import SPEC

REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}


@contextmanager
def calling(tenant: str) -> Iterator[None]:
    """As a request of a tenant."""
    token = current_caller.set(ANYBODY._replace(tenant=tenant))
    try:
        yield
    finally:
        current_caller.reset(token)


@pytest.mark.parametrize(("events", "most"), [(True, streams.MOST_EVENTS), (False, streams.MOST_ANSWERS)])
def test_a_tenant_has_so_many_open(events: bool, most: int) -> None:
    with ExitStack() as opened, calling("blue"):
        for _ in range(most):
            opened.enter_context(streams._place(events=events))
        with (
            pytest.raises(TooManyRequests, match=f"tenant blue has {most} .* open, the maximum"),
            streams._place(events=events),
        ):
            pass
        with streams._place(events=not events):  # of the other sort there are none yet
            pass
        with calling("green"), streams._place(events=events):
            pass
    with calling("blue"), streams._place(events=events):
        pass
    assert not streams._open


def test_beyond_them_an_answer_is_refused_and_then_given_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.post("/workloads", json=SPEC).status_code == 201
    for _ in range(2):
        run = client.post("/runs", json={"workload": SPEC["name"]}).json()["id"]
        assert client.put(f"/runs/{run}/iterations/0", json=REPORT).status_code == 201
    path = f"/runs/{run}/iterations"
    for most, status in ((1, 200), (0, 429), (1, 200), (1, 200)):
        monkeypatch.setattr(streams, "MOST_ANSWERS", most)
        answer = client.get(path)
        assert answer.status_code == status
    assert len(answer.json()["items"]) == 1
    monkeypatch.setattr(streams, "MOST_ANSWERS", 0)
    refused = client.get(path)
    assert 'steward_refusals_total{limit="streams"} 2.0' in client.get("/metrics").text
    assert (refused.headers["retry-after"], refused.json()["type"]) == ("5", "/problems/too-many-requests")
    assert client.get(f"/runs/{run}").status_code == 200

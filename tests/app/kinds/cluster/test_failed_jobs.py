"""Why jobs of a cluster failed: reported with their end, shown on the run's page."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.kinds.cluster.kind import KIND


@pytest.fixture
def runs(client: TestClient) -> list[str]:
    """Two runs of two workloads, each with jobs a and b."""
    runs = []
    for name in ("first", "second"):
        spec = {**KIND.example.spec, "name": name}
        assert client.post("/workloads", json=spec).status_code == 201
        run = client.post("/runs", json={"workload": name}).json()["id"]
        submitted = [{"job": job, "gpus": 1, "application": "resnet50"} for job in "ab"]
        answer = client.put(f"/runs/{run}/iterations/0", json={"at": 0.0, "submitted": submitted})
        assert answer.status_code == 201, answer.text
        runs.append(str(run))
    return runs


def test_a_failed_job_s_reason_is_on_its_run_s_page_as_long_as_the_run_is(client: TestClient, runs: list[str]) -> None:
    mine, other = runs
    reason = "CUDA out of memory <b>at step 7</b>"
    ended = [{"job": "a", "state": "failed", "reason": reason}, {"job": "b"}]
    assert client.put(f"/runs/{mine}/iterations/1", json={"at": 60.0, "ended": ended}).status_code == 201
    again = client.put(f"/runs/{mine}/iterations/1", json={"at": 60.0, "ended": ended})
    assert again.status_code == 200
    silent = [{"job": "b", "state": "failed"}]
    assert client.put(f"/runs/{other}/iterations/1", json={"at": 60.0, "ended": silent}).status_code == 201
    for _ in range(2):
        page = client.get(f"/ui/runs/{mine}").text
        assert ("Failed jobs" in page, "CUDA out of memory &lt;b&gt;at step 7" in page) == (True, True)
        client.patch(f"/runs/{mine}", json={"state": "finished"})
    page = client.get(f"/ui/runs/{other}").text
    assert ("Failed jobs" in page, "not reported" in page, "CUDA" in page) == (True, True, False)


def test_a_reason_is_bounded(client: TestClient, runs: list[str]) -> None:
    body = {"at": 60.0, "ended": [{"job": "a", "state": "failed", "reason": "x" * 501}]}
    answer = client.put(f"/runs/{runs[0]}/iterations/1", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/ended/0/reason")

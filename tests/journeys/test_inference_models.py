"""From logs and measured batches to a domain model and what it predicts, over HTTP."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from app.kinds.inference.example import BATCHES, SPEC
from tests.journeys.test_outside_kind import Caller
from tests.servers import StewardServer, wait_until

REQUESTS, RATE = 200_000, 2.0
UPLOAD = "/workloads/vision/samples"


def log() -> bytes:
    """A day of requests of two users as CSV, gzip, of which the first has three quarters."""
    rng = np.random.default_rng(0)
    times = 1_700_006_400 + np.cumsum(rng.exponential(1 / RATE, REQUESTS))  # from 0:00 UTC
    users = np.where(rng.random(REQUESTS) < 0.75, "shop", "archive")
    rows = "".join(f"{time:.6f},{user}\n" for time, user in zip(times.tolist(), users, strict=True))
    return gzip.compress(f"time,user\n{rows}".encode(), 1)


@pytest.mark.slow
def test_logs_and_batches_become_a_model_that_predicts(steward_factory: Callable[..., StewardServer]) -> None:
    server = steward_factory()
    with httpx.Client(base_url=server.url, timeout=120) as client:
        walk(Caller(client))


def walk(call: Caller) -> None:
    """Upload, be refused, fit, predict, take out."""
    call("POST", "/workloads", 201, json=SPEC)
    csv, ndjson = {"Content-Type": "text/csv"}, {"Content-Type": "application/x-ndjson"}
    wrong = call("POST", UPLOAD, 422, content="time,user\n2,shop\n1,shop\n3,nobody\n", headers=csv)
    assert [error["pointer"] for error in wrong["errors"]] == ["/lines/3/time", "/lines/4/user"]
    stored = call("POST", f"{UPLOAD}?execution=monday", 201, content=log(), headers=csv)
    assert (stored["accepted"], stored["iterations"]) == (1, REQUESTS)
    assert call("POST", f"{UPLOAD}?execution=monday", 201, content=log(), headers=csv)["duplicate"] == 1

    job = call("POST", "/workloads/vision/models", 202, json={})["id"]
    wait_for(call, job)
    assert "of resnet18" in json.dumps(call("GET", f"/jobs/{job}"))
    batches = "\n".join(map(json.dumps, BATCHES))
    assert call("POST", UPLOAD, 201, content=batches, headers=ndjson)["iterations"] == len(BATCHES)
    call.job("/workloads/vision/models", {})

    report = call("GET", "/workloads/vision/models/1")["report"]
    assert report["metrics"]["seconds"]["mape"] < report["metrics"]["seconds"]["naive_mape"]
    assert report["arrivals"]["shop"]["per_second"] == pytest.approx(0.75 * RATE, rel=0.02)
    assert report["arrivals"]["shop"]["index_of_dispersion"] == pytest.approx(1, abs=0.1)
    query = {"variant": "resnet50", "batch": 4, "at": 43_200}
    document = call("GET", "/workloads/vision/models/1/predict", params=query)
    assert document["seconds"]["mean"] == pytest.approx(0.05 * 2.2 * 1.03, rel=0.05)
    assert document["arrivals"]["shop"]["mean"] == pytest.approx(0.75 * RATE, rel=0.1)
    bad: dict[str, Any] = {**query, "batch": 3}
    refused = call("GET", "/workloads/vision/models/1/predict", 422, params=bad)
    assert refused["errors"][0]["pointer"] == "/query/batch"

    listed = {one["execution"]: one for one in call("GET", UPLOAD)["items"]}
    assert sum(listed["monday"]["requests"]["of_users"].values()) == REQUESTS
    answer = call.client.get(f"{UPLOAD}?execution=monday", headers={"Accept": "text/csv"})
    again = call("POST", f"{UPLOAD}?execution=monday", 201, content=answer.content, headers=csv)
    assert again["duplicate"] == 1


def wait_for(call: Caller, job: str) -> None:
    """Until a job has failed."""
    wait_until(lambda: call("GET", f"/jobs/{job}")["state"] == "failed", 120, "the fit to fail")

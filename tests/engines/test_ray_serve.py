"""Replicas of a real Ray Serve application under load, which follow decisions for a target in latency."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from statistics import median
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from steward_client.ray_api import RayApi
from steward_client.scaling.amounts import Subject
from steward_client.scaling.cached import CachedFunction
from steward_client.scaling.replicas import APPLICATIONS, ReplicaSetter, Target

from tests.clients.scaling.conftest import Service
from tests.engines.ray_engine import RayEngine, cluster, engine
from tests.servers import free_port, wait_until

__all__ = ["cluster", "engine"]

SERVED = """
import asyncio
from ray import serve

@serve.deployment(max_ongoing_requests=1, ray_actor_options={"num_cpus": 0.1})
class Model:
    async def __call__(self, request):
        await asyncio.sleep(2.0)  # it waits rather than computes: latency tells of replicas, not of the machine
        return "answer"

app = Model.bind()
"""
REQUESTS, TARGET_SECONDS = 4, 4.0
"""So many at a time are answered after 2, 4, 6 and 8 s by one replica, after 2, 2, 4 and 4 s by two."""
WORKLOAD: dict[str, Any] = {
    "name": "shop",
    "kind": "iterative",
    "resources": [{"name": "replicas", "minimum": 1, "maximum": 2, "max_steps": 1, "initial": 1}],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": TARGET_SECONDS}],
    "iterations": 1000,
}
DEPLOY_SECONDS = 180.0


@pytest.fixture
def service(client: TestClient) -> Service:
    assert client.post("/workloads", json=WORKLOAD).status_code == 201
    return Service(client)


@pytest.fixture
def address(cluster: RayEngine) -> Iterator[str]:
    """Address of two applications, ``shop`` for outside scalers and ``closed``; both have one replica."""
    (cluster.code / "served.py").write_text(SERVED)
    port = free_port()
    shop = {"name": "shop", "route_prefix": "/shop", "import_path": "served:app", "external_scaler_enabled": True}
    closed = {"name": "closed", "route_prefix": "/closed", "import_path": "served:app"}
    http = {"host": "127.0.0.1", "port": port}
    with cluster.http as ray:
        body = {"proxy_location": "HeadOnly", "http_options": http, "applications": [shop, closed]}
        ray.put(APPLICATIONS, json=body).raise_for_status()
        for name in ("shop", "closed"):
            until_running(cluster, name, 1)
        wait_until(lambda: _listens(port), DEPLOY_SECONDS, "Ray Serve's proxy")
        yield f"http://127.0.0.1:{port}"
        ray.delete(APPLICATIONS).raise_for_status()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _details(cluster: RayEngine, name: str) -> dict[str, Any]:
    with cluster.http as ray:
        applications: dict[str, Any] = ray.get(APPLICATIONS).raise_for_status().json()["applications"]
    return dict(applications.get(name) or {})


def _running(cluster: RayEngine, name: str) -> int:
    """Number of an application's replicas that run; 0 before it does."""
    details = _details(cluster, name)
    if details.get("status") != "RUNNING":
        return 0
    return sum(one["state"] == "RUNNING" for one in details["deployments"]["Model"]["replicas"])


def until_running(cluster: RayEngine, name: str, replicas: float) -> None:
    """Wait until so many of an application's replicas run."""
    wait_until(lambda: _running(cluster, name) == replicas, DEPLOY_SECONDS, f"{replicas:g} replicas of {name}")


def load(address: str) -> float:
    """Median latency in seconds of some requests that are made at once."""

    def one(_: int) -> float:
        began = time.monotonic()
        assert httpx.get(address, timeout=DEPLOY_SECONDS).raise_for_status().text == "answer"
        return time.monotonic() - began

    with ThreadPoolExecutor(REQUESTS) as callers:
        return median(callers.map(one, range(REQUESTS)))


def test_replicas_follow_a_target_in_latency(
    cluster: RayEngine, service: Service, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    decided = CachedFunction(service.reader().of, 0.0, 300.0)
    targets = [Target.parse("shop/Model=replicas"), Target.parse("closed/Model=replicas")]
    with closing(RayApi()) as api:
        setter = ReplicaSetter(api, decided, Subject("shop"), targets)
        assert setter.look() == 0, "no run is live"
        alone = load(f"{address}/shop")
        assert alone > TARGET_SECONDS
        run = service.client.post("/runs", json={"workload": "shop", "policy": "threshold"}).json()
        replicas, observation = run["decision"]["allocation"]["replicas"], {1: alone}
        assert replicas == 2, "for its target"
        for number in range(3):
            setter.look()
            until_running(cluster, "shop", replicas)
            observation[replicas] = load(f"{address}/shop")
            report = {"allocation": {"replicas": replicas}, "metrics": {"iteration_seconds": observation[replicas]}}
            answer = service.client.put(f"/runs/{run['id']}/iterations/{number}", json=report).json()
            replicas = answer["allocation"]["replicas"]
    assert observation[2] < observation[1] - 1.0
    assert _running(cluster, "closed") == 1
    assert "closed/Model: set `external_scaler_enabled: true`" in caplog.text

    config = {"external_scaler_enabled": True}
    assert _details(cluster, "shop")["deployed_app_config"].items() >= config.items()
    with cluster.http as ray:  # what Ray Serve itself answers, as the double does
        body = {"target_num_replicas": 2}
        path = "/api/v1/applications/{}/deployments/{}/scale"
        assert ray.post(path.format("closed", "Model"), json=body).status_code == 412
        assert ray.post(path.format("shop", "Nothing"), json=body).status_code == 404

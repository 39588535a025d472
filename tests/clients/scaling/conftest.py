"""A service in this process with live runs, and clients of it that threads may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import pytest
from fastapi.testclient import TestClient
from steward_client import Retry
from steward_client.scaling.amounts import Reader

from tests.batched import SPEC

WORKLOAD = "resnet18"


@dataclass
class Service:
    """What the service is asked, through a transport that can be cut."""

    client: TestClient
    away: bool = False
    paths: list[str] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            raise httpx.ConnectError("connection refused", request=request)
        path = request.url.raw_path.decode()
        self.paths.append(path)
        answer = self.client.request(request.method, path, content=request.read())
        return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)

    def reader(self) -> Reader:
        http = httpx.Client(base_url="http://steward", transport=httpx.MockTransport(self))
        return Reader(http, Retry(patience_seconds=0.0))

    def start(self, workload: str = WORKLOAD) -> tuple[str, float]:
        """A live run and the GPUs that it was decided to have."""
        answer = self.client.post("/runs", json={"workload": workload}).json()
        return answer["id"], answer["decision"]["allocation"]["gpus"]

    def report(self, run: str, iteration: int, gpus: float, seconds: float) -> float:
        """Report an iteration; the GPUs of the next one."""
        report = {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": seconds}, "features": {"batch": 128}}
        answer = self.client.put(f"/runs/{run}/iterations/{iteration}", json=report)
        assert answer.status_code == 201, answer.text
        return float(answer.json()["allocation"]["gpus"])

    def finish(self, run: str) -> None:
        assert self.client.patch(f"/runs/{run}", json={"state": "finished"}).is_success


@pytest.fixture
def service(client: TestClient) -> Service:
    assert client.post("/workloads", json=SPEC).status_code == 201
    return Service(client)


@pytest.fixture
def clock() -> Callable[[float], float]:
    """Time that passes when it is told to: ``clock(5)`` later, ``clock(0)`` now."""
    now = [0.0]

    def passing(seconds: float = 0.0) -> float:
        now[0] += seconds
        return now[0]

    return passing

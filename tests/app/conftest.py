"""A client of the application on this test's database, and a registered workload."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.kinds.registry import read_spec
from app.main import create_app
from app.settings import Settings
from app.workloads import service as workloads
from tests.batched import SPEC as EXAMPLE

OTHERS = "others"
"""A tenant beside the tests' own."""


@pytest.fixture
def spec() -> dict[str, Any]:
    """The spec of workload ``resnet18``: 1 to 16 gpus, feature ``batch``, 90 iterations."""
    return copy.deepcopy(EXAMPLE)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Database:
    """The database behind ``client``: SQLite, or what ``tests.app.both`` says."""
    kind = getattr(request, "param", "database")
    database = request.getfixturevalue(kind)
    assert isinstance(database, Database)
    return database


@pytest.fixture
def client(settings: Settings, backend: Database, portal: BlockingPortal) -> TestClient:
    """A client of the application, without its lifespan: nothing runs in the background."""
    client = TestClient(create_app(settings, backend))
    client.portal = portal
    return client


@pytest.fixture
def workload(client: TestClient, backend: Database, spec: dict[str, Any]) -> str:
    """Name of a registered workload; another tenant has one of the same name, whose runs are twice as long."""
    workloads.register(backend, OTHERS, read_spec(spec | {"iterations": 2 * spec["iterations"]}))
    answer = client.post("/workloads", json=spec)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["name"])

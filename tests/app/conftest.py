"""A client of the application on this test's database, and a registered workload."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from app.workloads.schemas import EXAMPLE


@pytest.fixture
def spec() -> dict[str, Any]:
    """The spec of workload ``resnet18``: 1 to 16 gpus, feature ``batch``, 90 iterations."""
    return copy.deepcopy(EXAMPLE)


@pytest.fixture
def client(settings: Settings, any_database: Database) -> Iterator[TestClient]:
    """A client of the application, on SQLite and on PostgreSQL."""
    with TestClient(create_app(settings, any_database)) as client:
        yield client


@pytest.fixture
def workload(client: TestClient, spec: dict[str, Any]) -> str:
    """Name of a registered workload."""
    answer = client.post("/workloads", json=spec)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["name"])

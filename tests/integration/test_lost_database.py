"""A database that goes away: 503 with Retry-After, nothing half-written, and everything goes on when it is back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import DBAPIError

from app.database.engine import Database
from app.database.tables import Workload
from app.main import create_app
from app.settings import Settings
from migrations.runner import upgrade
from tests.integration.caller import SPEC, WORKLOAD, samples
from tests.servers import PostgresServer, postgres_server

CSV = {"Content-Type": "text/csv"}


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL that this test may stop."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_client(server: PostgresServer, tmp_path: Path) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path, database_url=server.url(), database_connect_seconds=2)
    upgrade(settings.database_url)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


def is_away(answer: Any) -> bool:
    """Whether an answer says that the database is away, as it should."""
    body = answer.json()
    document = (answer.status_code, body["type"], answer.headers.get("retry-after"), answer.headers["content-type"])
    return document == (503, "/problems/unavailable", "2", "application/problem+json")


@pytest.mark.servers
def test_every_call_says_so_and_goes_on_afterwards(server: PostgresServer, postgres_client: TestClient) -> None:
    client = postgres_client
    assert client.post("/workloads", json=SPEC).status_code == 201
    server.stop()
    assert is_away(client.post("/workloads", json={**SPEC, "name": "other"}))
    assert is_away(client.get(f"/workloads/{WORKLOAD}"))
    assert is_away(client.get("/jobs"))
    assert is_away(client.post(f"/workloads/{WORKLOAD}/samples", content=samples(), headers=CSV))
    assert is_away(client.get("/decision", params={"workload": "unseen", "iteration": 0}))
    readiness = client.get("/readyz")
    assert (readiness.status_code, readiness.json()["worker"]) == (503, "unknown")
    assert client.get("/healthz").status_code == 200
    assert client.get("/metrics").status_code == 200
    server.start()
    assert client.get("/workloads/other").status_code == 404
    assert client.get(f"/workloads/{WORKLOAD}/samples").json()["items"] == []
    assert client.post("/workloads", json={**SPEC, "name": "other"}).status_code == 201


@pytest.mark.servers
def test_a_unit_of_work_is_lost_as_a_whole(server: PostgresServer) -> None:
    upgrade(server.url())
    database = Database(server.url())
    with pytest.raises(DBAPIError):
        _write_while_it_stops(database, server)
    server.start()
    with database.reading() as session:
        assert session.query(Workload).count() == 0
    database.dispose()


def _write_while_it_stops(database: Database, server: PostgresServer) -> None:
    with database.session() as session:
        session.add(Workload(name="half", kind="iterative", spec={}))
        session.flush()
        server.stop()
        session.add(Workload(name="other-half", kind="iterative", spec={}))


def test_a_locked_sqlite_is_away_for_the_moment(sqlite_url: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=sqlite_url, sqlite_busy_seconds=0.2)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        with closing(sqlite3.connect(tmp_path / "steward.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert is_away(client.post("/workloads", json=SPEC))
            assert client.get("/workloads").json()["items"] == []  # readers are not held up
            other.execute("ROLLBACK")
        assert client.post("/workloads", json=SPEC).status_code == 201

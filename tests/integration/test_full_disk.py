"""A database whose disk is full: it is said, by what fails and by `/readyz`, with what was stored before."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, text

from app.database import leases
from app.database.engine import FULL_SECONDS, Database
from app.http import health
from app.main import create_app
from app.samples import intake
from app.settings import Settings
from tests.integration.caller import SPEC, WORKLOAD

CSV = {"Content-Type": "text/csv"}
FULL_AFTER_PAGES = 120
Free = Callable[[], None]

FULL_ON_POSTGRESQL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT count(*) FROM executions) >= 20 THEN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON executions FOR EACH STATEMENT EXECUTE FUNCTION full_disk();
"""


def executions(number: int) -> str:
    """As many executions of two iterations, whose names alone fill pages."""
    rows = [f"{i:05}{'x' * 240},{k},8,3" for i in range(number) for k in range(2)]
    return "\n".join(["execution,iteration,allocation.executors,metric.iteration_seconds", *rows])


@pytest.fixture(autouse=True)
def looks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question about readiness is answered by new checks."""
    monkeypatch.setattr(health, "KNOWN_SECONDS", 0.0)


@pytest.fixture
def limited(any_database: Database) -> Free:
    """Has the database run full after some executions; the result gives it room again."""
    if not any_database.is_sqlite:
        with any_database.engine.begin() as connection:
            connection.execute(text(FULL_ON_POSTGRESQL))
        return lambda: _without_trigger(any_database)
    pages = [FULL_AFTER_PAGES]

    @event.listens_for(any_database.engine, "checkout")
    def _limit(connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count={pages[0]}")

    return lambda: pages.__setitem__(0, 1 << 20)


def _without_trigger(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("DROP TRIGGER full_disk ON executions"))


def test_a_full_disk_is_said_with_what_was_stored_and_ends_readiness(
    any_database: Database, settings: Settings, limited: Free, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BATCH_EXECUTIONS", 20)
    client = TestClient(create_app(settings, any_database))
    assert client.post("/workloads", json=SPEC).status_code == 201
    with any_database.session() as session:
        leases.beat(session, "worker")
    assert client.get("/readyz").status_code == 200
    answer = client.post(f"/workloads/{WORKLOAD}/samples", content=executions(2000), headers=CSV)
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/disk-full")
    assert "retry-after" in answer.headers
    items = client.get(f"/workloads/{WORKLOAD}/samples?limit=500").json()["items"]
    assert items
    assert f"full; the {len(items)} executions accepted before it are kept" in answer.json()["detail"]
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["database"]) == (503, "its disk is full")
    limited()
    monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + FULL_SECONDS)
    assert client.get("/readyz").status_code == 200
    again = client.post(f"/workloads/{WORKLOAD}/samples", content=executions(100), headers=CSV).json()
    assert again["accepted"] + again["duplicate"] == 100


def test_a_request_that_finds_the_disk_full_wrote_nothing(
    any_database: Database, settings: Settings, limited: Free, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BATCH_EXECUTIONS", 20_000)
    client = TestClient(create_app(settings, any_database))
    assert client.post("/workloads", json=SPEC).status_code == 201
    if not any_database.is_sqlite:
        client.post(f"/workloads/{WORKLOAD}/samples", content=executions(20), headers=CSV)
    answer = client.post(f"/workloads/{WORKLOAD}/samples", content=executions(3000), headers=CSV)
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/disk-full")
    assert answer.json()["detail"] == "the disk of the database is full; nothing was written"


def test_a_host_without_room_is_not_ready(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = TestClient(create_app(settings, database))
    with database.session() as session:
        leases.beat(session, "worker")
    assert client.get("/readyz").status_code == 200
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 0))
    assert client.get("/readyz").json()["database"] == "its disk is full"

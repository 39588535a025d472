"""What the databases' drivers report, as callers are told: in one place, whatever the route."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.database.engine import Database
from app.database.tables import Run, Workload
from app.http import problems
from app.settings import Settings


def client_of(database: Database) -> TestClient:
    app = FastAPI()
    app.state.settings = Settings()
    problems.install(app)

    @app.post("/workloads")
    def register(name: str) -> None:
        with database.session() as session:
            session.add(Workload(name=name, kind="iterative", spec={}))

    @app.post("/runs")
    def start(workload: str) -> None:
        with database.session() as session:
            session.add(Run(workload_id=workload, spec_version=1, start={}, state_vector=[], decision={}))

    @app.post("/broken")
    def broken() -> None:
        with database.session() as session:
            session.execute(text("SELECT nothing FROM nowhere"))

    return TestClient(app, raise_server_exceptions=False)


def test_what_the_database_cant_keep_is_invalid(postgres_database: Database) -> None:
    answer = client_of(postgres_database).post("/workloads", params={"name": "a\0b"})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid")
    assert "can't store" in answer.json()["detail"]


def test_what_contradicts_the_database_is_a_conflict(any_database: Database) -> None:
    client = client_of(any_database)
    assert client.post("/workloads", params={"name": "a"}).status_code == 200
    for path, query in (("/workloads", {"name": "a"}), ("/runs", {"workload": "gone"})):
        answer = client.post(path, params=query)
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/conflict")


def test_a_wrong_statement_is_a_defect(any_database: Database) -> None:
    answer = client_of(any_database).post("/broken")
    assert (answer.status_code, "nowhere" in answer.text) == (500, False)


@pytest.mark.servers
def test_a_lock_of_somebody_else_is_waited_for_so_long_and_no_longer(postgres_url: str) -> None:
    hasty, usual = Database(postgres_url, Settings(database_lock_seconds=0.2)), Database(postgres_url)
    client = client_of(hasty)
    with usual.session() as other:
        other.execute(text("LOCK TABLE workloads"))
        answer = client.post("/workloads", params={"name": "a"})
        assert (answer.status_code, "nothing was written" in answer.json()["detail"]) == (503, True)
    assert client.post("/workloads", params={"name": "a"}).status_code == 200
    for database in (hasty, usual):
        database.dispose()


@pytest.mark.servers
def test_the_server_closes_what_a_vanished_host_has_left(postgres_url: str) -> None:
    """Else its open transaction holds locks for the two hours after which PostgreSQL itself looks."""
    for silence, (idle, interval) in {2: ("1", "1"), 15: ("7", "2")}.items():
        database = Database(postgres_url, Settings(database_silence_seconds=silence))
        with database.reading() as session:
            texts = [session.scalar(text(f"SHOW tcp_{name}")) for name in ("keepalives_idle", "keepalives_interval")]
            assert texts == [idle, interval]
            assert session.scalar(text("SHOW tcp_keepalives_count")) == "3"
            assert session.scalar(text("SHOW tcp_user_timeout")) == str(1000 * silence)
        database.dispose()


@pytest.mark.servers
def test_what_a_url_says_of_locks_holds(postgres_url: str) -> None:
    database = Database(f"{postgres_url}?options=-c%20lock_timeout%3D1234", Settings(database_lock_seconds=0.2))
    with database.reading() as session:
        assert session.scalar(text("SHOW lock_timeout")) == "1234ms"
    database.dispose()

"""Keys, passwords and tokens turn up in no log, no error, no metric, no event and no row, whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import jwt
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import MetaData

from app import startup
from app.database.engine import Database
from app.keys import service
from app.keys.service import KeyRequest
from app.main import create_app
from app.runs.reporter import Reporter
from app.settings import Settings
from tests.integration.caller import SPEC, WORKLOAD, samples
from tests.servers import PostgresServer, free_port

PASSWORD, BROKER_PASSWORD = "hunter2-database", "hunter2-broker"


@pytest.fixture
def settings(postgres: PostgresServer, tmp_path: Path) -> Iterator[Settings]:
    """A database with a password, a broker with one that is away, and an identity provider that is, too."""
    name = f"secrets_{uuid4().hex}"
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE migrated")
    yield Settings(
        data_dir=tmp_path,
        database_url=postgres.url(name).replace("steward@", f"steward:{PASSWORD}@"),
        broker_url=f"redis://:{BROKER_PASSWORD}@127.0.0.1:{free_port()}/0",
        oidc_issuer=f"http://127.0.0.1:{free_port()}/realm",
        database_connect_seconds=2,
    )
    postgres.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}


def rows(database: Database) -> str:
    """All that the database holds."""
    tables = MetaData()
    tables.reflect(database.engine)
    with database.engine.connect() as connection:
        return "".join(str(connection.execute(table.select()).all()) for table in tables.sorted_tables)


@pytest.mark.servers
def test_nothing_that_is_told_or_kept_holds_a_secret(
    settings: Settings, postgres: PostgresServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    database = Database(settings.database_url, settings)
    key = service.create(database, "default", KeyRequest(scopes={"admin"}), "test").key or ""
    token = jwt.encode({"sub": "ann"}, "a shared secret of thirty-two bytes", headers={"kid": "1"})
    asymmetric = token.replace(token.partition(".")[0], "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ")
    known, messages = bearer(key), list[Any]()
    with TestClient(create_app(settings, database), raise_server_exceptions=False) as client:
        body = client.post("/keys", json={"scopes": ["read"]}, headers={**known, "idempotency-key": "again"}).json()
        again = client.post("/keys", json={"scopes": ["read"]}, headers={**known, "idempotency-key": "again"})
        assert client.post("/workloads", json=SPEC, headers=known).status_code == 201
        uploaded = {**known, "content-type": "text/csv"}
        assert client.post(f"/workloads/{WORKLOAD}/samples", content=samples(), headers=uploaded).is_success
        run = client.post("/runs", json={"workload": WORKLOAD, "token": True}, headers=known).json()
        wrong = [
            f"{key[:-1]}{'a' if key[-1] != 'a' else 'b'}",
            token,
            asymmetric,
            run["token"],
            f"{run['token']}x",
            PASSWORD,
        ]
        messages += [client.get("/jobs", headers=bearer(one)) for one in wrong]
        messages += [client.get("/jobs", auth=("any", one)) for one in wrong]
        messages += [client.get("/workloads", params={"colour": "red"}, headers=bearer(body["key"]))]
        job = client.post(f"/workloads/{WORKLOAD}/models", json={}, headers=known)  # its announcement fails
        messages += [job, client.post(f"/jobs/{job.json()['id']}/cancel", headers=known)]
        messages += [client.get(f"/jobs/{job.json()['id']}/events", headers=known)]
        messages += [
            client.delete(f"/keys/{body['id']}", headers=known),
            client.get("/jobs", headers=bearer(body["key"])),
        ]
        messages += [
            client.get(path, headers=known) for path in ("/metrics", "/keys", "/audit", "/", f"/runs/{run['id']}")
        ]
        selection = rows(database)
        with monkeypatch.context() as broken:
            broken.setattr(Reporter, "report", lambda *_: 1 / 0)
            messages += [client.put(f"/runs/{run['id']}/iterations/0", json={}, headers=bearer(run["token"]))]
        postgres.execute(f"DROP DATABASE {database.url.database} WITH (FORCE)")
        messages += [
            client.get(path, headers=known) for path in ("/jobs", "/readyz", "/metrics", "/decision?run=unseen")
        ]
        messages += [client.post("/workloads", json=SPEC, headers=known)]
    statuses = {answer.status_code for answer in messages}
    assert {200, 401, 422, 500, 503} <= statuses
    assert [word for word in ("ZeroDivisionError", "broker away") if word not in caplog.text] == []
    everything = "".join([caplog.text, selection, *(f"{answer.text}{answer.headers}" for answer in messages)])
    credentials = [*wrong, key, body["key"]]
    hidden = [
        PASSWORD,
        BROKER_PASSWORD,
        *credentials,
        *(one.partition("_")[2].partition("_")[2] for one in credentials),
    ]
    assert again.json()["id"] == body["id"]
    assert [one for one in hidden if one and one in everything] == []


@pytest.mark.parametrize("password", ["plain", "sl/ash", "at@sign", "col:on", "a/b:c@d", "per%2Fcent"])
def test_what_is_wrong_at_the_start_is_said_without_passwords(password: str, tmp_path: Path) -> None:
    port = free_port()
    for name, url in (
        ("database", f"postgresql://ann:{password}@127.0.0.1:{port}/none"),
        ("database", f"postgresql://127.0.0.1:{port}/none?password={password}"),
        ("database", f"mysql://ann:{password}@127.0.0.1/none"),
        ("broker", f"redis://:{password}@127.0.0.1:{port}/0"),
        ("broker", f"carrier-pigeon://:{password}@127.0.0.1:{port}/0"),
    ):
        settings = Settings(data_dir=tmp_path, database_connect_seconds=1, **{f"{name}_url": url})  # type: ignore[arg-type]
        result = problem(settings, name)
        assert f"STEWARD_{name.upper()}_URL" in result or url.startswith("redis")  # it can be read, and isn't asked
        assert [part for part in (password, *password.split("/")) if len(part) > 1 and part in result] == [], result


def problem(settings: Settings, name: str) -> str:
    """What is said of a database or broker that can't be used."""
    try:
        if name == "database":
            startup.check_database(settings, creates=False)
        startup.check_broker_url(settings)
    except startup.StartupError as error:
        return str(error)
    return ""

"""Keys: made, shown once, kept hashed, expired and revoked, on one API process and on its neighbour."""

from __future__ import annotations

import base64
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from app.database.engine import Database
from app.database.tables import IdempotencyKey, Key
from app.keys import service as keys
from app.keys import service as secrets
from app.main import create_app
from app.settings import Settings
from tests.app.keys.conftest import MakeKey
from tests.batched import SPEC


def test_a_service_without_keys_asks_for_none_until_there_is_one(client: TestClient, database: Database) -> None:
    assert client.get("/workloads").status_code == 200
    response = client.post("/keys", json={"name": "first", "scopes": ["admin"]})
    assert response.status_code == 201
    assert response.headers["cache-control"] == "no-store"
    assert client.get("/workloads").status_code == 401
    authorised = {"Authorization": f"Bearer {response.json()['key']}"}
    assert client.get("/workloads", headers=authorised).status_code == 200
    assert client.delete(f"/keys/{response.json()['id']}", headers=authorised).status_code == 204
    assert client.get("/workloads", headers=authorised).status_code == 401  # it never opens again


def test_a_key_is_shown_once_and_kept_hashed(client: TestClient, key: MakeKey, database: Database) -> None:
    request = {"json": {"scopes": ["read"]}, "headers": {**key(), "Idempotency-Key": "x"}}
    response, again = client.post("/keys", **request), client.post("/keys", **request)  # type: ignore[arg-type]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (again.json()["id"], again.json()["key"]) == (response.json()["id"], None)
    secret = secrets.parse(response.json()["key"])
    assert secret is not None
    assert len(base64.urlsafe_b64decode(f"{secret.secret}=")) == 32
    with database.reading() as session:
        row = session.scalars(select(Key).where(Key.id == response.json()["id"])).one()
        repeated = session.scalars(select(IdempotencyKey)).one()
    assert row.digest == secrets.digest(secret.secret)
    assert secret.secret not in f"{vars(row)} {vars(repeated)}"
    listed = client.get("/keys", headers=key()).text
    assert secret.id in listed
    assert secret.secret not in listed


def test_a_key_ends_when_it_expires(client: TestClient, key: MakeKey, database: Database) -> None:
    headers = key()
    assert client.get("/keys", headers=headers).status_code == 200
    past = datetime.now(UTC) - timedelta(seconds=1)
    with database.session() as session:
        session.execute(update(Key).values(expires_at=past))
    fresh = TestClient(create_app(Settings(database_url=str(database.url)), database))
    answer = fresh.get("/keys", headers=headers)
    assert (answer.status_code, "expired" in answer.json()["detail"]) == (401, True)
    response = client.post("/keys", json={"expires_at": past.isoformat()}, headers=headers)
    assert response.status_code == 422


def test_a_revoked_key_ends_on_every_process_within_a_second(
    settings: Settings, any_database: Database, client: TestClient
) -> None:
    one, other = (TestClient(create_app(settings, any_database)) for _ in range(2))
    admin = {"Authorization": f"Bearer {one.post('/keys', json={'scopes': ['admin']}).json()['key']}"}
    body = one.post("/keys", json={"scopes": ["report", "read"]}, headers=admin).json()
    headers = {"Authorization": f"Bearer {body['key']}"}
    with one, other:
        assert other.get("/runs/x", headers=headers).status_code == 404  # it knows it at once
        assert one.delete(f"/keys/{body['id']}", headers=admin).status_code == 204
        assert one.get("/runs/x", headers=headers).status_code == 401
        time.sleep(1.0)
        assert other.get("/runs/x", headers=headers).status_code == 401
        assert one.delete(f"/keys/{body['id']}", headers=admin).status_code == 204
        assert one.delete("/keys/0123456789abcdef", headers=admin).status_code == 404


def test_an_event_stream_ends_with_its_key(settings: Settings, database: Database) -> None:

    sample = [{"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 3}, "features": {"batch": 128}}]
    settings = settings.model_copy(update={"stream_seconds": 120.0})
    with TestClient(create_app(settings, database)) as client:
        body = client.post("/keys", json={"scopes": ["admin"]}).json()
        headers = {"Authorization": f"Bearer {body['key']}"}
        client.post("/workloads", json=SPEC, headers=headers)
        home = f"/workloads/{SPEC['name']}"
        client.post(f"{home}/samples", json={"samples": [{"execution": "e", "reports": sample}]}, headers=headers)
        job = client.post(f"{home}/models", json={}, headers=headers).json()["id"]
        revoking = threading.Timer(0.5, keys.revoke, (database, None, body["id"]))
        revoking.start()
        begun = time.monotonic()
        assert "queued" in client.get(f"/jobs/{job}/events", headers=headers).text
        assert time.monotonic() - begun < 60
        revoking.join()


def test_a_runs_token_ends_with_the_key_that_asked_for_it(client: TestClient, key: MakeKey, made_app: FastAPI) -> None:

    admin, reporter = key(), key("default", "report")
    client.post("/workloads", json=SPEC, headers=admin)
    body = {"json": {"workload": SPEC["name"], "token": True}, "headers": {**reporter, "Idempotency-Key": "run"}}
    started, again = client.post("/runs", **body), client.post("/runs", **body)  # type: ignore[arg-type]
    assert started.json()["id"] == again.json()["id"]
    tokens = [{"Authorization": f"Bearer {answer.json()['token']}"} for answer in (started, again)]
    for token in tokens:
        assert client.get(f"/runs/{started.json()['id']}", headers=token).status_code == 200
    reporter_id = reporter["Authorization"].split("_")[1]
    client.delete(f"/keys/{reporter_id}", headers=admin)
    for token in tokens:
        assert client.get(f"/runs/{started.json()['id']}", headers=token).status_code == 401
    without = client.post("/runs", json={"workload": SPEC["name"]}, headers=admin)
    assert without.json()["token"] is None


def test_what_was_begun_with_a_key_ends_when_it_expires(
    client: TestClient, key: MakeKey, settings: Settings, database: Database
) -> None:

    reporter = key("default", "report")
    client.post("/workloads", json=SPEC, headers=key())
    run = client.post("/runs", json={"workload": SPEC["name"], "token": True}, headers=reporter).json()
    token, reporter_id = {"Authorization": f"Bearer {run['token']}"}, reporter["Authorization"].split("_")[1]
    assert client.get(f"/runs/{run['id']}", headers=token).status_code == 200
    with database.session() as session:
        past = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(update(Key).where(Key.id == reporter_id).values(expires_at=past))
    fresh = create_app(settings, database)
    assert TestClient(fresh).get(f"/runs/{run['id']}", headers=token).status_code == 401
    assert not fresh.state.keys.holds(reporter_id)  # by which event streams end


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("bearer {key}", 200),
        ("BEARER   {key}", 200),
        ("Bearer {key}x", 401),
        ("Bearer {key}" + "x" * 9000, 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        ("{key}", 401),
        ("Token {key}", 401),
        ("Bearer stw_run_{key}", 401),
        ("Bearer stw__", 401),
        ("Basic {basic}", 200),
        ("Basic !!", 401),
        ("Basic \u00b2", 401),
    ],
)
def test_how_a_key_is_sent(client: TestClient, key: MakeKey, header: str, status: int) -> None:
    text = key()["Authorization"].removeprefix("Bearer ")
    basic = base64.b64encode(f"anybody:{text}".encode()).decode()
    answer = client.get(
        "/workloads", headers=[(b"Authorization", header.format(key=text, basic=basic).encode("latin-1"))]
    )
    assert answer.status_code == status
    assert text not in answer.text


def test_a_browsers_password_writes_nothing(client: TestClient, key: MakeKey) -> None:
    text = key()["Authorization"].removeprefix("Bearer ")
    basic = {"Authorization": f"Basic {base64.b64encode(f'x:{text}'.encode()).decode()}"}
    assert client.get("/", headers=basic).status_code == 200
    assert client.post("/keys", json={}, headers=basic).status_code == 401
    challenge = client.get("/docs", headers={"accept": "text/html"}).headers["www-authenticate"]
    assert challenge.startswith('Basic realm="Steward", Bearer')


def test_a_header_given_twice_is_refused(client: TestClient, key: MakeKey) -> None:
    twice = [("Authorization", key()["Authorization"]), ("Authorization", "Bearer x")]
    assert client.get("/workloads", headers=twice).status_code == 400


def test_what_no_route_answers_is_told_to_callers_alone(client: TestClient, key: MakeKey) -> None:
    headers = key("default", "read")
    for method, path in (("GET", "/nothing"), ("OPTIONS", "/workloads"), ("TRACE", "/keys"), ("GET", "/workloads/")):
        assert client.request(method, path).status_code == 401
        assert client.request(method, path, headers=headers, follow_redirects=False).status_code in (307, 404, 405)
    assert client.get("/%6beys", headers=headers).status_code == 403  # an encoded path is the same path
    assert client.get("/keys%2F", headers=headers, follow_redirects=False).status_code in (307, 404)
    assert client.get("http://testserver//keys", headers=headers).status_code == 404
    assert client.get("/KEYS", headers=headers).status_code == 404


def test_keys_are_asked_for_from_the_start_where_that_is_required(settings: Settings, database: Database) -> None:
    client = TestClient(create_app(settings.model_copy(update={"authentication": "required"}), database))
    assert client.get("/workloads").status_code == 401
    assert client.get("/healthz").status_code == 200


def signed_in(made_app: FastAPI, key: str) -> TestClient:
    client = TestClient(made_app, follow_redirects=False)
    answer = client.post("/ui/sign-in", data={"key": key}, headers={"sec-fetch-site": "same-origin"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]
    return client


def test_people_sign_in_with_a_key_and_may_do_what_it_may(made_app: FastAPI, key: MakeKey) -> None:
    text = key("default", "read")["Authorization"].removeprefix("Bearer ")
    client = signed_in(made_app, text)
    own = {"sec-fetch-site": "same-origin"}
    assert client.get("/", headers={"accept": "text/html"}).status_code == 200
    assert client.post("/ui/examples/iterative", headers=own).status_code == 403
    client = signed_in(made_app, key("default", "read", "train")["Authorization"].removeprefix("Bearer "))
    assert client.post("/ui/examples/iterative").status_code == 401  # nothing says that one of the pages makes it
    assert client.post("/ui/examples/iterative", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.post("/ui/examples/iterative", headers=own).status_code == 204
    client.post("/ui/sign-out", headers=own)
    assert client.get("/", headers={"accept": "text/html"}).headers["location"] == "/ui/sign-in"


def test_what_is_no_key_signs_nobody_in(client: TestClient, key: MakeKey) -> None:
    right = key()["Authorization"].removeprefix("Bearer ")
    for wrong in ("", "x", right[:-1], right + "0", "stw_0123456789abcdef_wrong", "k" * 10_000):
        answer = client.post("/ui/sign-in", data={"key": wrong})
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert client.get("/", headers={"cookie": f"steward-key={right}x"}).status_code == 401
    assert client.get("/", headers={"cookie": 'steward-key="'}).status_code == 401
    assert client.get("/ui/sign-in").status_code == 200


@pytest.mark.parametrize("fields", [3, 4, 5, 1_000])
def test_a_form_with_other_fields_is_no_error_of_the_service(client: TestClient, fields: int) -> None:
    form = "&".join(f"key=nonsense{number}" for number in range(fields))
    answer = client.post("/ui/sign-in", content=form, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 403


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00%2B23:59"])
def test_times_that_utc_has_not_are_refused(client: TestClient, moment: str) -> None:
    plain = moment.replace("%2B", "+")
    assert client.post("/keys", json={"expires_at": plain}).json()["errors"][0]["pointer"] == "/expires_at"
    for path in ("samples?before=", "exogenous/s?before=", "exogenous/s?since=", "exogenous/s?until="):
        method = "DELETE" if "before" in path else "GET"
        answer = client.request(method, f"/workloads/w/{path}{moment}")
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == f"/query/{path.partition('?')[2].rstrip('=')}"


def test_a_start_that_is_repeated_after_its_run_was_deleted_is_404(client: TestClient, key: MakeKey) -> None:
    headers = {**key(), "Idempotency-Key": "once"}
    client.post("/workloads", json=SPEC, headers=key())
    start = {"workload": SPEC["name"], "token": True}
    runs = [client.post("/runs", json=start, headers=headers).json()["id"] for _ in range(2)]
    assert runs[0] == runs[1]
    other = client.post("/runs", json=start, headers=key()).json()["id"]
    assert client.patch(f"/runs/{runs[0]}", json={"state": "cancelled"}, headers=key()).is_success
    assert client.delete(f"/runs/{runs[0]}", headers=key()).status_code == 204
    again = client.post("/runs", json=start, headers=headers)
    assert (again.status_code, "deleted since" in again.json()["detail"]) == (404, True)
    assert client.get(f"/runs/{other}", headers=key()).is_success

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, Header, Response
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.database.base import utc_now
from app.database.engine import Database, commit_deadline
from app.database.tables import IdempotencyKey, Workload
from app.errors import Conflict
from app.http import problems
from app.http.caller import ANYBODY
from app.http.idempotency import IdempotentPost, IdempotentUpload, Record, claim, find, forget, purge, store
from app.settings import Settings
from tests.callers import called_by

KEY = {"Idempotency-Key": "abc"}


class Service:
    """Creates a workload per call; can be held up or made to fail."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.go_on = threading.Event()
        self.go_on.set()
        self.entered = threading.Event()
        self.fails = False
        self.status: int | None = None
        self.then: Callable[[], object] = lambda: None
        self.at_last: Callable[[], object] = lambda: None

    def create(self, name: str, record: Record) -> dict[str, str]:
        self.entered.set()
        assert self.go_on.wait(10)
        with self.database.session() as session:
            session.add(Workload(name=name, kind="iterative", spec={}))
            session.flush()
            answer = {"name": name}
            self.then()
            record(session, answer, status=self.status, headers={"Location": f"/workloads/{name}"})
            if self.fails:
                raise Conflict("after all, no")
        self.at_last()
        return answer

    def count(self) -> int:
        with self.database.reading() as session:
            return session.scalar(select(func.count()).select_from(Workload)) or 0


@pytest.fixture
def service(any_database: Database) -> Service:
    return Service(any_database)


@pytest.fixture
def client(service: Service, any_database: Database) -> TestClient:
    app = FastAPI()
    app.state.database = any_database
    app.state.settings = Settings()
    problems.install(app)

    @app.post("/things")
    def create(body: dict[str, Any], once: IdempotentPost) -> Response:
        return once.run(lambda record: service.create(body["name"], record))

    @app.post("/secrets")
    def secret(body: dict[str, Any], once: IdempotentPost) -> Response:
        made = once.run(lambda record: service.create(body["name"], record), finish=lambda told: {**told, "secret": 7})
        assert made.headers["cache-control"] == "no-store"
        return made

    @app.post("/repeatable")
    def repeatable(once: IdempotentPost) -> Response:
        return once.run(lambda _record: service.count(), status=202, headers={"X-Count": "yes"})

    @app.post("/uploads")
    def upload(once: IdempotentUpload, x_content: Annotated[str, Header()] = "") -> Response:
        return once.run(lambda _record: {"accepted": 1}, content=x_content)

    return TestClient(called_by(ANYBODY, app), raise_server_exceptions=False)


def test_without_a_key_every_request_counts(client: TestClient, service: Service) -> None:
    assert client.post("/things", json={"name": "a"}).status_code == 201
    assert client.post("/things", json={"name": "b"}).headers["location"] == "/workloads/b"
    assert service.count() == 2


def test_the_same_request_again_is_answered_the_same_and_done_once(client: TestClient, service: Service) -> None:
    first = client.post("/things", json={"name": "a"}, headers=KEY)
    second = client.post("/things", json={"name": "a"}, headers=KEY)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second.headers["location"] == first.headers["location"]
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert service.count() == 1


def test_a_status_of_its_own_is_answered_and_repeated(client: TestClient, service: Service) -> None:
    service.status = 200
    assert [client.post("/things", json={"name": "a"}, headers=KEY).status_code for _ in range(2)] == [200, 200]
    assert service.count() == 1


def test_once_its_answer_is_kept_a_request_needs_its_key_no_more(
    client: TestClient, service: Service, any_database: Database
) -> None:
    def purge() -> None:
        with any_database.session() as session:
            session.delete(session.get_one(IdempotencyKey, ("default", "abc")))

    service.at_last = purge
    assert client.post("/things", json={"name": "a"}, headers=KEY).status_code == 201
    assert service.count() == 1


def aged(database: Database, seconds: float, **values: Any) -> None:
    """Let the key's row be so old, and hold these values."""
    with database.session() as session:
        row = session.get_one(IdempotencyKey, ("default", "abc"))
        for name, value in {**values, "created_at": utc_now() - timedelta(seconds=seconds)}.items():
            setattr(row, name, value)


def test_an_answer_is_repeated_for_as_long_as_the_settings_say(client: TestClient, any_database: Database) -> None:
    first = client.post("/uploads", headers=KEY)
    aged(any_database, Settings().idempotency_seconds - 60)
    assert client.post("/uploads", headers=KEY).headers["idempotent-replayed"] == "true"
    assert client.post("/uploads", headers={**KEY, "X-Content": "2"}).status_code == 422
    aged(any_database, Settings().idempotency_seconds + 60)
    anew = client.post("/uploads", headers={**KEY, "X-Content": "2"})
    assert (first.status_code, anew.status_code, "idempotent-replayed" in anew.headers) == (201, 201, False)


def test_a_claim_without_an_answer_is_free_sooner(client: TestClient, any_database: Database) -> None:
    client.post("/uploads", headers=KEY)
    aged(any_database, Settings().idempotency_claim_seconds - 30, status=None, claim="dead")
    assert client.post("/uploads", headers=KEY).status_code == 409
    aged(any_database, Settings().idempotency_claim_seconds + 30)
    assert client.post("/uploads", headers=KEY).status_code == 201


def test_the_same_key_with_another_body_is_invalid(client: TestClient, service: Service) -> None:
    client.post("/things", json={"name": "a"}, headers=KEY)
    answer = client.post("/things", json={"name": "b"}, headers=KEY)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/header/Idempotency-Key"
    assert service.count() == 1


def test_a_repeat_in_flight_is_a_conflict(client: TestClient, service: Service) -> None:
    service.go_on.clear()
    first = threading.Thread(target=client.post, args=("/things",), kwargs={"json": {"name": "a"}, "headers": KEY})
    first.start()
    assert service.entered.wait(10)
    second = client.post("/things", json={"name": "a"}, headers=KEY)
    service.go_on.set()
    first.join()
    assert (second.status_code, second.headers["retry-after"]) == (409, "1")
    assert client.post("/things", json={"name": "a"}, headers=KEY).status_code == 201
    assert service.count() == 1


def test_a_request_that_failed_leaves_its_key_free(client: TestClient, service: Service) -> None:
    service.fails = True
    assert client.post("/things", json={"name": "a"}, headers=KEY).status_code == 409
    assert service.count() == 0
    service.fails = False
    assert client.post("/things", json={"name": "b"}, headers=KEY).status_code == 201
    assert service.count() == 1


def test_a_claim_whose_process_died_is_free_after_a_while(
    client: TestClient, service: Service, any_database: Database
) -> None:
    old = utc_now() - timedelta(hours=1)
    with any_database.session() as session:
        session.add(IdempotencyKey(key="abc", claim="dead", digest="x", created_at=old))
    assert client.post("/things", json={"name": "a"}, headers=KEY).status_code == 201
    assert service.count() == 1


def test_a_request_that_took_too_long_leaves_its_key_free(client: TestClient, service: Service) -> None:
    token = commit_deadline.set(time.monotonic() + 60)
    service.then = lambda: commit_deadline.set(time.monotonic() - 1)  # its time ends while it works
    try:
        first = client.post("/things", json={"name": "a"}, headers=KEY)
    finally:
        commit_deadline.reset(token)
    assert (first.status_code, first.json()["type"], service.count()) == (503, "/problems/timeout", 0)
    service.then = lambda: None
    assert client.post("/things", json={"name": "a"}, headers=KEY).status_code == 201
    assert service.count() == 1


def test_a_request_whose_key_was_taken_over_writes_nothing(
    client: TestClient, service: Service, any_database: Database
) -> None:
    answers = []
    service.go_on.clear()
    first = threading.Thread(
        target=lambda: answers.append(client.post("/things", json={"name": "late"}, headers=KEY)), name="first"
    )
    first.start()
    assert service.entered.wait(10)
    with any_database.session() as session:  # it is taken for dead
        session.get_one(IdempotencyKey, ("default", "abc")).created_at = utc_now() - timedelta(hours=1)
    service.entered.clear()
    second = threading.Thread(target=lambda: answers.append(client.post("/things", json={"name": "b"}, headers=KEY)))
    second.start()
    assert service.entered.wait(10)  # the second holds the key now, and neither has written
    service.go_on.set()
    first.join()
    second.join()
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    with any_database.reading() as session:
        assert session.scalars(select(Workload.name)).all() == ["b"]
    again = client.post("/things", json={"name": "b"}, headers=KEY)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (201, "true")


def test_a_response_that_was_stored_after_its_key_was_taken_for_dead_stays(any_database: Database) -> None:
    """On PostgreSQL a slow request may end between the steps of the one that takes its key over."""
    answer, old = {"status": 201, "body": {"answer": 1}, "headers": {}}, utc_now() - timedelta(hours=1)
    with any_database.session() as session:
        for key in ("slow", "dead"):
            assert claim(session, "default", key, "first", "digest", old)
    with any_database.reading() as session:
        rows = [find(session, "default", key) for key in ("slow", "dead")]
    with any_database.session() as session:
        assert store(session, "default", "slow", "first", answer)
    with any_database.session() as session:
        for row in rows:
            assert row is not None
            forget(session, row)
        taken = [claim(session, "default", key, "second", "digest", utc_now()) for key in ("slow", "dead")]
        kept = find(session, "default", "slow")
        assert (taken, kept and kept.status) == ([False, True], 201)


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there"])
def test_a_strange_key_is_refused(client: TestClient, service: Service, key: str) -> None:
    answer = client.post("/things", json={"name": "a"}, headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    assert service.count() == 0


def test_an_upload_is_told_apart_by_its_hash(client: TestClient) -> None:
    first = client.post("/uploads", headers={**KEY, "X-Content": "1"})
    again = client.post("/uploads", headers={**KEY, "X-Content": "1"})
    other = client.post("/uploads", headers={**KEY, "X-Content": "2"})
    assert [first.status_code, again.status_code, other.status_code] == [201, 201, 422]
    assert again.json() == {"accepted": 1}


def test_keys_are_forgotten_from_a_moment_on(any_database: Database) -> None:
    now = utc_now()
    with any_database.session() as session:
        for key, seconds in (("old", 61), ("edge", 60), ("young", 59)):
            made = now - timedelta(seconds=seconds)
            session.add(IdempotencyKey(key=key, claim="c", digest="d", created_at=made))
    with any_database.session() as session:
        purge(session, now - timedelta(seconds=60))
    with any_database.reading() as session:
        assert set(session.scalars(select(IdempotencyKey.key))) == {"edge", "young"}


def test_a_secret_is_answered_each_time_and_never_stored(client: TestClient, any_database: Database) -> None:
    answers = [client.post("/secrets", json={"name": "a"}, headers=KEY) for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"name": "a", "secret": 7}] * 2
    assert [answer.status_code for answer in answers] == [201, 201]
    with any_database.reading() as session:
        row = session.get_one(IdempotencyKey, ("default", "abc"))
        assert (row.body, row.status) == ({"answer": {"name": "a"}}, 201)


def test_work_that_keeps_no_answer_itself_is_answered_from_its_result(client: TestClient, service: Service) -> None:
    first = client.post("/repeatable", headers=KEY)
    client.post("/things", json={"name": "a"})
    again, other = client.post("/repeatable", headers=KEY), client.post("/repeatable")
    assert [(one.status_code, one.json(), one.headers["x-count"]) for one in (first, again, other)] == [
        (202, 0, "yes"),
        (202, 0, "yes"),
        (202, 1, "yes"),
    ]
    assert "idempotent-replayed" not in other.headers


def test_a_key_is_of_its_path_its_query_and_its_method(client: TestClient) -> None:
    assert client.post("/things", json={"name": "a"}, headers=KEY).status_code == 201
    for path in ("/things?x=1", "/secrets"):
        assert client.post(path, json={"name": "a"}, headers=KEY).status_code == 422

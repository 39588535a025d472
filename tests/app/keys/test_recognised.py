"""Who was let in on a route before is known at once, and refused all that it would be refused at first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update
from starlette.types import Scope

from app.database.engine import Database
from app.database.tables import Key
from app.errors import BadRequest, Forbidden, Misdirected, TooManyRequests, Unauthorised
from app.keys import service
from app.keys.guard import KeyGuard
from app.keys.ring import KeyRing
from app.main import create_app
from app.settings import Settings
from tests.app.keys.conftest import make_key

ROUTE, RUN_ROUTE = "/runs/{run}/iterations/{iteration}", "/runs/{run}"


@dataclass
class Callers:
    """Who calls the guard of a service, on its report route unless said otherwise."""

    guard: KeyGuard
    key: bytes

    def scope(self, *headers: tuple[bytes, bytes], method: str = "PUT") -> Scope:
        pairs = [(b"host", b"testserver"), (b"authorization", self.key), *headers]
        return {"method": method, "path": "/runs/x/iterations/0", "query_string": b"", "headers": pairs}

    def recognised(self, *headers: tuple[bytes, bytes], method: str = "PUT", route: str = ROUTE) -> bool:
        return self.guard.cached_caller(self.scope(*headers, method=method), route) is not None

    def admit(self, *headers: tuple[bytes, bytes], method: str = "PUT", route: str = ROUTE) -> None:
        asyncio.run(self.guard.admit(self.scope(*headers, method=method), route))


def callers(settings: Settings, database: Database, *scopes: str, admitted: bool = True, **changes: Any) -> Callers:
    key = make_key(database, "default", scopes or ("report",))["Authorization"].encode()
    app: Any = create_app(settings.model_copy(update=changes), database)
    callers = Callers(app.gateway.guard, key)
    if admitted:
        assert not callers.recognised()
        callers.admit()
        assert callers.recognised()
    return callers


def test_it_is_known_on_that_route_and_method_alone(settings: Settings, database: Database) -> None:
    result = callers(settings, database)
    assert not result.recognised(method="GET")
    assert not result.recognised(route=RUN_ROUTE)
    result.key += b"x"
    assert not result.recognised()


def test_a_key_without_the_scope_is_never_known(settings: Settings, database: Database) -> None:
    result = callers(settings, database, "read", admitted=False)
    for _ in range(2):
        with pytest.raises(Forbidden):
            result.admit()
        assert not result.recognised()


def test_its_end_is_noticed(settings: Settings, database: Database) -> None:
    revoked, expired = (callers(settings, database) for _ in range(2))
    identifier = revoked.key.decode().split("_")[1]
    service.revoke(database, None, identifier)
    revoked.guard._keys.refresh()
    assert not revoked.recognised()
    past = datetime.now(UTC) - timedelta(seconds=1)
    for result, entry in expired.guard._keys.admitted.items():
        expired.guard._keys.admitted[result] = entry._replace(expires_at=past)
    assert not expired.recognised()


def test_what_is_known_grows_old(settings: Settings, database: Database) -> None:
    result = callers(settings, database)
    result.guard._keys._checked -= 1.0  # as after a second without a look
    assert not result.recognised()


def test_who_was_revoked_while_it_was_let_in_is_not_kept(settings: Settings, database: Database) -> None:
    result = callers(settings, database, admitted=False)
    result.guard._keys.refresh()
    get, outcome = result.guard._keys.get, result.guard._keys.get(result.key.decode().split("_")[1])

    def revoke_behind(_: str) -> Any:
        with database.session() as session:
            session.execute(update(Key).values(revoked_at=datetime.now(UTC)))
        result.guard._keys.refresh()
        return outcome

    result.guard._keys.get = revoke_behind  # type: ignore[method-assign, assignment]
    result.admit()
    result.guard._keys.get = get  # type: ignore[method-assign]
    assert not result.recognised()


@pytest.mark.parametrize("chunks", [(b"origin", b"http://evil.example"), (b"sec-fetch-site", b"cross-site")])
def test_another_sites_page_is_refused(settings: Settings, database: Database, chunks: tuple[bytes, bytes]) -> None:
    result = callers(settings, database)
    assert not result.recognised(chunks)
    with pytest.raises(Forbidden):
        result.admit(chunks)


def test_another_host_is_refused(settings: Settings, database: Database) -> None:
    result = callers(settings, database, allowed_hosts=("testserver",))
    other = result.scope()
    other["headers"][0] = (b"host", b"evil.example")
    assert result.guard.cached_caller(other, ROUTE) is None
    with pytest.raises(Misdirected):
        asyncio.run(result.guard.admit(other, ROUTE))


def test_a_header_given_twice_is_refused(settings: Settings, database: Database) -> None:
    result = callers(settings, database)
    for other in (result.key, b"Bearer x"):
        assert not result.recognised((b"authorization", other))
        with pytest.raises(BadRequest):
            result.admit((b"authorization", other))


def test_one_caller_keeps_no_other_out(settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.keys.guard.LARGEST_CACHE", 3)
    result = callers(settings, database)
    key = result.key
    for spaces in range(2, 9):  # the same key, written otherwise
        result.key = key.replace(b" ", b" " * spaces)
        result.admit()
        assert result.recognised()
        assert len(result.guard._keys.admitted) <= 3


def test_a_key_in_much_else_is_not_kept(settings: Settings, database: Database) -> None:
    result = callers(settings, database)
    result.key = result.key.replace(b" ", b" " * 1_000)
    result.admit()
    assert not result.recognised()


def test_its_requests_are_counted(settings: Settings, database: Database) -> None:
    result = callers(settings, database, key_requests_per_second=5.0)
    with pytest.raises(TooManyRequests):
        sum(result.recognised() for _ in range(20))


def test_a_cookie_is_looked_at_each_time(settings: Settings, database: Database) -> None:
    result = callers(settings, database, admitted=False)
    cookie = (b"cookie", b"steward-key=" + result.key.removeprefix(b"Bearer "))
    scope = result.scope(cookie, (b"origin", b"http://testserver"), (b"sec-fetch-site", b"same-origin"))
    scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
    asyncio.run(result.guard.admit(scope, ROUTE))
    assert result.guard.cached_caller(scope, ROUTE) is None


ANYBODY: Scope = {
    "method": "PUT",
    "path": "/runs/x/iterations/0",
    "query_string": b"",
    "headers": [(b"host", b"testserver")],
}


def open_guard(settings: Settings, database: Database) -> KeyGuard:
    """Of a service without keys, which has let somebody in."""
    app: Any = create_app(settings, database)
    guard: KeyGuard = app.gateway.guard
    assert guard.cached_caller(ANYBODY, ROUTE) is None
    assert asyncio.run(guard.admit(ANYBODY, ROUTE)) == guard.cached_caller(ANYBODY, ROUTE)
    return guard


def test_without_keys_anybody_is_known_under_the_services_name_alone(settings: Settings, database: Database) -> None:
    guard = open_guard(settings, database)
    for pairs in ([(b"host", b"evil.example")], [], [*ANYBODY["headers"], (b"origin", b"http://evil.example")]):
        other = {**ANYBODY, "headers": pairs}
        assert guard.cached_caller(other, ROUTE) is None
        with pytest.raises((Misdirected, Forbidden)):
            asyncio.run(guard.admit(other, ROUTE))
        assert guard.cached_caller(other, ROUTE) is None


def test_anybody_is_nobody_once_there_is_a_key(settings: Settings, database: Database) -> None:
    guard = open_guard(settings, database)
    make_key(database, "default", ("report",))
    guard._keys.refresh()
    assert guard.cached_caller(ANYBODY, ROUTE) is None
    with pytest.raises(Unauthorised):
        asyncio.run(guard.admit(ANYBODY, ROUTE))


def test_who_is_let_in_while_the_first_key_is_made_is_not_kept(settings: Settings, database: Database) -> None:
    """Whatever order a look at the keys and a request are in, nothing that was true before it outlives it."""
    guard = open_guard(settings, database)
    ring, visited = guard._keys, []

    class Ring(KeyRing):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "admitted":
                visited.append(self.any)
            super().__setattr__(name, value)

    ring.__class__ = Ring
    make_key(database, "default", ("report",))
    ring.refresh()
    assert visited == [True]

"""Fixtures shared by all tests. Databases are built by the migrations, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from migrations.runner import upgrade
from tests.clean_databases import TEMPLATE, CleanDatabases
from tests.servers import PostgresServer, StewardServer, missing, postgres_server, redis_server, start_steward

gc.disable()  # until all tests are known: modules leave no garbage, see `pytest_runtestloop`

# Machines are shared: time says nothing, neither of an example nor of how it was made.
# Examples are drawn anew in each run: half as many as usual find in two runs what all would find in one.
hypothesis_settings.register_profile(
    "untimed", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("untimed")

os.environ["STEWARD_ALLOWED_HOSTS"] = "testserver,steward,test"  # as clients inside this process call the service

SLOW_SECONDS = 900
KERNELS = "kernels"  # compiled once
COMPILED = ("/commands/test_simulate.py", "contracts/test_learned_kind.py")
OTHERS = 2
StartSteward = Callable[..., StewardServer]


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What clients keep for themselves is not the user's who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def group(nodeid: str) -> str:
    """Tests of one group are sent to one process: they share what is costly, a training, a server or a browser."""
    place = nodeid.partition("::")[0].removeprefix("tests/")
    if place.startswith("browser/"):
        return "browser"
    compiled = place.endswith(COMPILED) or (place.startswith("workers/") and "workflow" in place)
    return KERNELS if compiled else place


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests, and those that compile, have more time; they begin first: no process is left alone with them."""
    items.sort(key=_rank)
    for item in items:
        if _rank(item) < OTHERS and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Garbage is looked for again, seldom, and not among all that was loaded: a million objects."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def _rank(item: pytest.Item) -> int:
    if group(item.nodeid) == KERNELS:
        return 0
    return 1 if item.get_closest_marker("slow") else OTHERS


class Grouped(LoadGroupScheduling):  # type: ignore[misc] # xdist ships no types
    """Sends groups of tests to processes, in the order above; xdist's own marks have no effect since pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Grouped | None:
    """With `--dist loadgroup`, groups as above."""
    if config.getoption("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return Grouped(config, log)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets (STEWARD_DATA)."""
    folder = os.environ.get("STEWARD_DATA", "")
    if not folder or not Path(folder).is_dir():
        missing("a folder with the public data sets, named by STEWARD_DATA,")
    return Path(folder)


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "steward.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(_sqlite_template: Path, tmp_path: Path) -> str:
    """URL of a fresh SQLite database, built by the migrations."""
    path = tmp_path / "steward.db"
    shutil.copy(_sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL server for this session; its template database is built by the migrations."""
    with postgres_server() as server:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
        upgrade(server.url(TEMPLATE))
        yield server


@pytest.fixture(scope="session")
def _postgres_databases(postgres: PostgresServer) -> Iterator[CleanDatabases]:
    databases = CleanDatabases(postgres)
    yield databases
    databases.close()


@pytest.fixture
def postgres_url(_postgres_databases: CleanDatabases) -> Iterator[str]:
    """URL of an empty PostgreSQL database, built by the migrations; see `CleanDatabases`."""
    name = _postgres_databases.take()
    yield _postgres_databases.server.url(name)
    _postgres_databases.give_back(name)


@cache
def _settings(environment: frozenset[tuple[str, str]]) -> Settings:
    return Settings()


def read_settings() -> Settings:
    """What the environment says now; it is read anew where it has changed, for that takes as long as two requests."""
    return _settings(frozenset(item for item in os.environ.items() if item[0].startswith("STEWARD_")))


# Statements are compiled once in a process, not once per test: that took half of a request's time. SQLAlchemy keeps
# what it has compiled by the engine's dialect, of which each database has one of its own: those of a class are alike.
STATEMENTS: LRUCache[Any, Any] = LRUCache(3_000)
DefaultDialect.__eq__ = lambda one, other: type(one) is type(other)  # type: ignore[method-assign]
DefaultDialect.__hash__ = lambda one: hash(type(one))  # type: ignore[assignment, method-assign]


def opened(url: str) -> Database:
    """A database for a test."""
    database = Database(url, read_settings())
    for engine in (database.engine, database._reading_engine):
        engine.update_execution_options(compiled_cache=STATEMENTS)
    return database


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    """A fresh SQLite database."""
    database = opened(sqlite_url)
    yield database
    database.dispose()


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    """A fresh PostgreSQL database."""
    database = opened(postgres_url)
    yield database
    database.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def any_database(request: pytest.FixtureRequest) -> Database:
    """The same test on SQLite and on PostgreSQL."""
    name = "database" if request.param == "sqlite" else "postgres_database"
    any_database = request.getfixturevalue(name)
    assert isinstance(any_database, Database)
    return any_database


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """URL of a real Redis server of this session."""
    with redis_server() as url:
        yield url


@pytest.fixture
def settings(tmp_path: Path, sqlite_url: str) -> Settings:
    """Settings of an embedded service in this test's folder, on the `database` of this test."""
    return read_settings().model_copy(update={"data_dir": tmp_path, "database_url": sqlite_url})


@pytest.fixture
def steward_factory(tmp_path: Path) -> Iterator[StartSteward]:
    """Starts real `steward serve` processes (see `start_steward`); ends them after the test.

    `steward_factory()` uses this test's folder; `steward_factory(folder, "--workers", "0", lease_seconds="2")`.
    """
    started: list[StewardServer] = []

    def start(data_dir: Path | None = None, *arguments: str, wait: str = "ready", **knobs: str) -> StewardServer:
        server = start_steward(data_dir or tmp_path / "data", *arguments, wait=wait, **knobs)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def portal() -> Iterator[BlockingPortal]:
    """An event loop in a thread, for clients of applications without a lifespan: else each request starts its own."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture
def app(settings: Settings, database: Database) -> FastAPI:
    """The application of this test, on its `database`."""
    return create_app(settings, database)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """A client of this test's application, in this process; errors come as responses."""
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client

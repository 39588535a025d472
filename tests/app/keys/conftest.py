"""A service with keys, on this test's database."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from anyio.from_thread import BlockingPortal
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.keys import service
from app.keys.service import KeyRequest
from app.main import create_app
from app.settings import Settings

Headers = dict[str, str]
MakeKey = Callable[..., Headers]


def make_key(database: Database, tenant: str, scopes: Iterable[str]) -> Headers:
    """What a caller sends who has such a key."""
    result = service.create(database, tenant, KeyRequest.model_validate({"scopes": list(scopes)}), "test")
    return {"Authorization": f"Bearer {result.key}"}


@pytest.fixture
def made_app(settings: Settings, database: Database) -> FastAPI:
    return create_app(settings, database)


@pytest.fixture
def client(made_app: FastAPI, portal: BlockingPortal) -> TestClient:
    client = TestClient(made_app, raise_server_exceptions=False)
    client.portal = portal
    return client


@pytest.fixture
def key(database: Database) -> MakeKey:
    """Makes a key of a tenant: what is sent of it."""
    return lambda tenant="default", *scopes: make_key(database, tenant, scopes or ("admin",))

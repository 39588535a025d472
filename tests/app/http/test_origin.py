"""Which hosts a service without keys answers for, and from where it lets browsers write."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.main import create_app
from app.settings import Settings


@pytest.fixture
def client(settings: Settings, database: Database) -> TestClient:
    settings = settings.model_copy(
        update={"allowed_hosts": ("steward.example",), "allowed_origins": ("https://portal.example",)}
    )
    return TestClient(create_app(settings, database), base_url="http://127.0.0.1:8080")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8080", 200),
        ("LOCALHOST:80", 200),
        ("[::1]:8080", 200),
        ("[::1]", 200),
        ("steward.example:443", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("evil.example:8080", 421),
        ("localhost@evil.example", 421),
        ("[::1].evil.example", 421),
        ("127.0.0.1:8080:80", 421),
        ("", 421),
    ],
)
def test_only_own_hosts_are_answered_for(client: TestClient, host: str, status: int) -> None:
    for path in ("/workloads", "/", "/openapi.json", "/healthz", "/ui/sign-in"):
        assert client.get(path, headers={"host": host}).status_code == status
    put = client.put("/runs/x/iterations/0", json={}, headers={"host": host})
    assert put.status_code == (404 if status == 200 else status)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 422),
        ({"origin": "http://127.0.0.1:8080"}, 422),
        ({"origin": "http://127.0.0.1:8080", "sec-fetch-site": "same-origin"}, 422),
        ({"sec-fetch-site": "none"}, 422),
        ({"origin": "https://portal.example", "sec-fetch-site": "cross-site"}, 422),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://127.0.0.1:8080", "sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_pages_of_other_origins_write_nothing(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.post("/workloads", json={}, headers=headers).status_code == status
    assert client.get("/workloads", headers=headers).status_code == 200
    put = client.put("/runs/x/iterations/0", json={}, headers=headers)
    assert put.status_code == (404 if status == 422 else status)

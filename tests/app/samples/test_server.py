"""Uploads to a real server: cut off, slow, and many at once."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.app.samples.bodies import HEADER, csv_of
from tests.servers import StewardServer, wait_until


@pytest.fixture
def server(steward_factory: Callable[..., StewardServer], spec: dict[str, Any]) -> StewardServer:
    """A server without workers, on which the example workload is registered."""
    server = steward_factory(None, "--workers", "0", wait="alive")
    data, headers = json.dumps(spec).encode(), {"Content-Type": "application/json"}
    with urlopen(Request(f"{server.url}/workloads", data, headers)) as answer:
        assert answer.status == 201
    return server


def begin(server: StewardServer, length: int) -> socket.socket:
    """Send the head of an upload."""
    parts = urlsplit(server.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=30)
    head = (
        f"POST /workloads/resnet18/samples HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: text/csv\r\nContent-Length: {length}\r\n\r\n"
    )
    connection.sendall(head.encode())
    return connection


def stored(server: StewardServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    link: str | None = "/workloads/resnet18/samples?limit=500"
    while link:
        with urlopen(server.url + link, timeout=10) as answer:
            page = json.load(answer)
        found += page["items"]
        link = page["next"]
    return found


def test_an_upload_that_is_cut_off_keeps_whole_executions_only(server: StewardServer) -> None:
    body = csv_of({f"run-{i:04}": 90 for i in range(1000)}).encode()
    with begin(server, len(body)) as connection:
        connection.sendall(body[: len(body) * 3 // 4])
        wait_until(lambda: len(stored(server)) >= 500, what="the first batch to be stored")
    kept = stored(server)  # or more of them: what the server had not read is lost with the connection
    assert {item["iterations"] for item in kept} == {90}
    assert 500 <= len(kept) < 755
    assert server.alive()


@pytest.fixture
def slow(server: StewardServer) -> Iterator[list[socket.socket]]:
    """More uploads than there are threads, none of which goes on."""
    connections = [begin(server, 1_000_000) for _ in range(60)]
    for connection in connections:
        connection.sendall(HEADER.encode())
    yield connections
    for connection in connections:
        connection.close()


def test_slow_uploads_hold_nobody_else_up(server: StewardServer, slow: list[socket.socket]) -> None:
    time.sleep(0.5)
    begun = time.monotonic()
    assert stored(server) == []
    assert time.monotonic() - begun < 5
    assert len(slow) == 60

"""Uploads to a real server: cut off, slow, and many at once."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.app.samples.bodies import HEADER, csv_of
from tests.batched import SPEC
from tests.servers import StewardServer, start_steward, wait_until

CUT_OFF, SLOW = "cut-off", "slow"
"""A workload for each test."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StewardServer]:
    """A server without workers, on which the workloads are registered."""
    server = start_steward(tmp_path_factory.mktemp("uploads"), "--workers", "0", wait="alive")
    for name in (CUT_OFF, SLOW):
        data, headers = json.dumps({**SPEC, "name": name}).encode(), {"Content-Type": "application/json"}
        with urlopen(Request(f"{server.url}/workloads", data, headers)) as answer:
            assert answer.status == 201
    yield server
    server.stop()


def begin(server: StewardServer, workload: str, length: int) -> socket.socket:
    """Send the head of an upload."""
    parts = urlsplit(server.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=30)
    head = (
        f"POST /workloads/{workload}/samples HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: text/csv\r\nContent-Length: {length}\r\n\r\n"
    )
    connection.sendall(head.encode())
    return connection


def stored(server: StewardServer, workload: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    link: str | None = f"/workloads/{workload}/samples?limit=500"
    while link:
        with urlopen(server.url + link, timeout=10) as answer:
            page = json.load(answer)
        results += page["items"]
        link = page["next"]
    return results


def test_an_upload_that_is_cut_off_keeps_whole_executions_only(server: StewardServer) -> None:
    body = csv_of({f"run-{i:04}": 90 for i in range(1000)}).encode()
    with begin(server, CUT_OFF, len(body)) as connection:
        connection.sendall(body[: len(body) * 3 // 4])
        wait_until(lambda: len(stored(server, CUT_OFF)) >= 500, what="the first batch to be stored")
    selection = stored(server, CUT_OFF)  # or more of them: what the server had not read is lost with the connection
    assert {item["iterations"] for item in selection} == {90}
    assert 500 <= len(selection) < 755
    assert server.alive()


@pytest.fixture
def slow(server: StewardServer) -> Iterator[list[socket.socket]]:
    """More uploads than there are threads, none of which goes on."""
    connections = [begin(server, SLOW, 1_000_000) for _ in range(60)]
    for connection in connections:
        connection.sendall(HEADER.encode())
    yield connections
    for connection in connections:
        connection.close()


def test_slow_uploads_hold_nobody_else_up(server: StewardServer, slow: list[socket.socket]) -> None:
    time.sleep(0.5)
    begun = time.monotonic()
    assert stored(server, SLOW) == []
    assert time.monotonic() - begun < 5
    assert len(slow) == 60

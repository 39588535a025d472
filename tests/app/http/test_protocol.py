"""Connections of a real server: those that never say what they want end, those that only take their time don't."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.conftest import StartSteward
from tests.servers import StewardServer

WHOLE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
HALF = b"GET /healthz HTTP/1.1\r\nhost:"
HEAD = b"POST /workloads HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
PATIENCE = 60.0
REST_SECONDS = 5.0  # uvicorn's default


@pytest.fixture
def server(steward_factory: StartSteward, tmp_path: Path) -> StewardServer:
    return steward_factory(tmp_path / "s", "--workers", "0", wait="alive", header_timeout_seconds="0.5")


@pytest.fixture
def connections(server: StewardServer) -> Iterator[list[socket.socket]]:
    port = int(server.url.rpartition(":")[2])
    with ExitStack() as stack:
        yield [stack.enter_context(closing(socket.create_connection(("127.0.0.1", port), PATIENCE))) for _ in range(6)]


def test_connections_without_a_request_end(connections: list[socket.socket]) -> None:
    silent, half, again, folded, slow, pipelined = connections
    half.sendall(HALF)
    again.sendall(WHOLE)
    assert answered(again) == 200
    again.sendall(HALF)
    folded.sendall(WHOLE)
    assert answered(folded) == 200
    folded.sendall(b"\r\n")  # which may stand before a request, and isn't one
    body = b'{"name": "x"}'
    slow.sendall(HEAD % len(body) + body[:3])
    pipelined.sendall(WHOLE + HALF)
    assert answered(pipelined) == 200
    for connection in (silent, half, again, folded, pipelined):
        assert ended(connection)
    slow.sendall(body[3:])  # a body has its time with its request
    assert answered(slow) == 422


def answered(connection: socket.socket) -> int:
    """The status of the next answer, which is read whole."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += received(connection)
    head, _, body = read.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.splitlines() if line.startswith(b"content-length:"))
    while len(body) < length:
        body += received(connection)
    return int(head.split()[1])


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    assert data, "the connection has ended"
    return data


def ended(connection: socket.socket) -> bool:
    """Waits for the other side to close."""
    try:
        return connection.recv(65536) == b""
    except ConnectionResetError:
        return True


def test_connections_at_rest_end(connections: list[socket.socket]) -> None:
    served, twice, _, _, _, working = connections
    for connection in (served, twice):
        connection.sendall(WHOLE)
        assert answered(connection) == 200
    working.sendall(HEAD % 2 + b"{")
    time.sleep(REST_SECONDS * 0.6)
    twice.sendall(WHOLE)
    assert answered(twice) == 200  # within the time
    begun = time.monotonic()
    assert ended(served)
    assert ended(twice)
    assert time.monotonic() - begun < PATIENCE / 2
    working.sendall(b"}")  # who hasn't sent all yet isn't at rest
    assert answered(working) == 422

"""Connections of a real server: those that never say what they want end; others are answered alike, or are lost."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from typing import NamedTuple

import httpx
import pytest

from app.http.protocol import MOST_HEAD_BYTES
from tests.batched import SPEC as EXAMPLE
from tests.servers import StewardServer, start_steward

WHOLE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
HALF = b"GET /healthz HTTP/1.1\r\nhost:"
HEAD = b"POST /workloads HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
PATIENCE = 60.0
ENDLESS, SENT_AHEAD = 32 << 20, 8 << 20  # what is sent without an end, and what the systems between may hold of it
REST_SECONDS = 5.0  # uvicorn's default
STATE = "iteration=11&allocation=gpus:4&metric=iteration_seconds:31.5&feature=batch:128"
ASKED = b"%b %b HTTP/1.1\r\nhost: localhost\r\n%b\r\n"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, StewardServer]]:
    """One that waits 2 s for a head, and one that waits 60 s."""
    with ExitStack() as stack:
        result = {}
        for seconds in ("2", "60"):
            folder, knobs = tmp_path_factory.mktemp(f"waits-{seconds}"), {"header_timeout_seconds": seconds}
            result[seconds] = start_steward(folder, "--workers", "0", wait="alive", **knobs)
            stack.callback(result[seconds].stop)
        yield result


@pytest.fixture
def server(servers: dict[str, StewardServer], request: pytest.FixtureRequest) -> StewardServer:
    return servers[getattr(request, "param", "2")]  # a busy machine takes long between two requests


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


class Answer(NamedTuple):
    """The lines of its head, and its body."""

    head: list[bytes]
    body: bytes


@pytest.mark.parametrize("server", ["60"], indirect=True)
@pytest.mark.parametrize("piece", [1 << 12, 1 << 18])
def test_a_head_or_trailers_without_an_end_are_refused(
    connections: list[socket.socket], server: StewardServer, piece: int
) -> None:
    chunked = b"POST /workloads HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
    chunked += b"content-type: application/json\r\n\r\n"
    begins = [
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: ",
        b"GET /healthz?x=",
        WHOLE + b"GET /healthz HTTP/1.1\r\nx",
        chunked + b"2\r\n{}\r\n0\r\nx-trailer: ",
        chunked + b"2;extension=",
    ]
    for connection, begin in zip(connections, begins, strict=False):
        assert refused_within(connection, begin, piece) <= MOST_HEAD_BYTES + 4 * piece + SENT_AHEAD
    whole, long, *_ = [socket.create_connection(connection_address(server), PATIENCE) for _ in range(2)]
    with closing(whole), closing(long):
        whole.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: %b\r\n\r\n" % (b"a" * (MOST_HEAD_BYTES - 50)))
        assert answered(whole) == 200
        long.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: %b\r\n\r\n" % (b"a" * MOST_HEAD_BYTES))
        result = answer(long)
        assert result.head[0].split()[1] == b"431"
        assert json.loads(result.body)["type"] == "/problems/head-too-large"
    assert server.alive()
    assert "Traceback" not in server.log.read_text()


def connection_address(server: StewardServer) -> tuple[str, int]:
    return "127.0.0.1", int(server.url.rpartition(":")[2])


def refused_within(connection: socket.socket, begin: bytes, piece: int) -> int:
    """How many bytes are taken of what begins so and doesn't end, before the connection is closed."""
    sent = 0
    connection.sendall(begin)
    with suppress(ConnectionError):
        for _ in range(ENDLESS // piece):
            connection.sendall(b"a" * piece)
            sent += piece
    return sent


@pytest.mark.parametrize("server", ["60"], indirect=True)
def test_trailers_are_no_headers(connections: list[socket.socket]) -> None:
    head = b"POST /workloads HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
    head += b"content-type: application/json\r\n"
    body = json.dumps({**EXAMPLE, "name": "trailing"}).encode()
    chunks = b"%x\r\n%b\r\n0\r\n" % (len(body), body)
    unfit = b"idempotency-key: %b\r\n" % (b"x" * 1_000)
    first, second, *_ = connections
    first.sendall(head + b"\r\n" + chunks + unfit + b"\r\n")
    assert answered(first) == 201
    second.sendall(head + unfit + b"\r\n" + chunks + b"\r\n")
    assert answered(second) == 422


def answer(connection: socket.socket, *, bodiless: bool = False) -> Answer:
    """The next answer, and nothing of what comes after it."""
    with connection.makefile("rb", buffering=0) as stream:
        head = list(iter(lambda: stream.readline().rstrip(b"\r\n"), b""))
        length = next((int(line.split(b":")[1]) for line in head if line.startswith(b"content-length:")), 0)
        body = b""
        while not bodiless and len(body) < length:
            read = stream.read(length - len(body))
            assert read, "the connection has ended"
            body += read
    return Answer(head, body)


def answered(connection: socket.socket) -> int:
    """The status of the next answer, which is read whole."""
    head = answer(connection).head
    assert head, "the connection has ended"
    return int(head[0].split()[1])


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


@pytest.fixture
def decided(server: StewardServer) -> bytes:
    """Where a decision is answered by a hot route."""
    with httpx.Client(base_url=server.url) as client:
        assert client.post("/workloads", json=EXAMPLE).status_code == 201
    return f"/decision?workload={EXAMPLE['name']}&{STATE}".encode()


@pytest.mark.parametrize("server", ["60"], indirect=True)  # connections wait for their turn
def test_an_answer_in_one_piece_is_as_in_two(connections: list[socket.socket], decided: bytes) -> None:
    whole, headed, closing, pipelined, *_ = connections
    get = ASKED % (b"GET", decided, b"")
    whole.sendall(get)
    alone = answer(whole)
    assert alone.head[0] == b"HTTP/1.1 200 OK"
    assert b"x-content-type-options: nosniff" in alone.head
    assert json.loads(alone.body)["workload"] == EXAMPLE["name"]
    pipelined.sendall(get * 2)  # the second is read before the first is answered, which then takes uvicorn's way
    for match in (answer(pipelined), answer(pipelined)):
        assert undated(match.head) == undated(alone.head)
        assert len(match.body) == len(alone.body)
    headed.sendall(ASKED % (b"HEAD", decided, b"") + get)
    assert undated(answer(headed, bodiless=True).head) == undated(alone.head)
    assert undated(answer(headed).head) == undated(alone.head)
    closing.sendall(ASKED % (b"GET", decided, b"connection: close\r\n"))
    assert undated(answer(closing).head) == [*undated(alone.head), b"connection: close"]
    assert ended(closing)


def undated(head: list[bytes]) -> list[bytes]:
    return [line for line in head if not line.startswith(b"date:")]


def test_answers_to_a_connection_that_is_lost_are_no_errors(server: StewardServer) -> None:
    port, body = int(server.url.rpartition(":")[2]), b'{"name": "x"}'
    for _ in range(20):
        with closing(socket.create_connection(("127.0.0.1", port), PATIENCE)) as connection:
            connection.sendall(2 * (HEAD % len(body) + body))  # of which only the second is told that nobody reads on
            connection.shutdown(socket.SHUT_WR)
            while not ended(connection):
                pass
    assert server.alive()
    assert "ERROR" not in server.log.read_text()

"""What a part of the service costs: processor time of an answer by a server with it and by one without, side by side.

The two serve the same code and data. They take turns of milliseconds, each with one request on every connection, so
that what else slows the machine down slows both, and both batch alike. Processor time is what bounds throughput on a
core. On SQLite, with 10,000 keys of others.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Key
from app.keys import service as keys
from app.keys import service as secrets
from app.keys.service import KeyRequest
from app.kinds.iterative.spec import Spec
from app.settings import Settings
from app.workloads import service as workloads
from benchmarks import load
from benchmarks.api_speed import (
    CONNECTIONS,
    ITERATIONS,
    LOAD_CORE,
    SERVER_CORE,
    SPEC,
    Row,
    answers,
    interval,
    publish,
    reports,
    states,
)
from migrations.runner import upgrade
from tests.servers import stop, wait_until

TURNS = 31
ROUNDS = ITERATIONS
OTHER_KEYS = 10_000
PROCESS_CLOCK = 2  # of Linux: in the lowest bits of the clock that tells a process' time, above them its id
ROOT = Path(__file__).parent.parent
Requests = list[list[load.Request]]
"""In order, for each connection."""
Give = Callable[["Server"], Requests]


def prepare(folder: Path) -> str:
    """A database with the benchmark's workload and many keys; gives the header of one of them."""
    settings = Settings(data_dir=folder)
    upgrade(settings.database_url)
    database = Database(settings.database_url, settings)
    workloads.register(database, "default", Spec.model_validate(SPEC))
    publish(settings.database_url, str(SPEC["name"]))
    with database.session() as session:
        session.add_all(_key(number) for number in range(OTHER_KEYS))
    result = keys.create(database, "default", KeyRequest(scopes={"read", "report"}), "benchmark")
    database.dispose()
    return f"authorization: Bearer {result.key}\r\n"


def _key(number: int) -> Key:
    result = secrets.make()
    return Key(
        id=result.id,
        tenant=f"tenant-{number % 100}",
        name="",
        digest=result.digest,
        scopes=["report"],
        created_by="benchmark",
        created_at=utc_now(),
    )


class Server:
    """A running server, and the processor time that it has used.

    Args:
        port: where it listens.
        process: its id.
        headers: of each request, each ending its line.
    """

    def __init__(self, port: int, process: int, headers: str) -> None:
        self.port, self.headers, self._process = port, headers, process

    def used(self) -> float:
        """Processor time in microseconds, of all its threads."""
        return 1e6 * time.clock_gettime((~self._process << 3) | PROCESS_CLOCK)

    def decisions(self) -> Requests:
        """Requests for decisions."""
        return states("/decision")

    def reports(self) -> Requests:
        """Reports of a new run on each connection."""
        return reports(self.port, 1, dict([self.headers.strip().split(": ", 1)]))


@contextmanager
def running(port: int, headers: str, command: Sequence[str], **options: object) -> Iterator[Server]:
    """A server on a core of its own, once it answers."""
    pinned = ["taskset", "-c", str(SERVER_CORE), *command]
    process = subprocess.Popen(pinned, cwd=ROOT, **options)  # type: ignore[call-overload]
    try:
        wait_until(lambda: answers(port), 120, "the server to answer")
        time.sleep(1.0)
        yield Server(port, process.pid, headers)
    finally:
        stop(process)


class _Connections:
    """Keep-alive connections to a server."""

    def __init__(self, server: Server, streams: Sequence[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
        self._server, self._streams = server, streams

    @classmethod
    async def of(cls, server: Server) -> _Connections:
        """New ones."""
        return cls(server, [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(CONNECTIONS)])

    async def round(self, requests: Sequence[load.Request]) -> None:
        """One request on each, and its answer."""
        for request, (_, writer) in zip(requests, self._streams, strict=True):
            writer.write(load.encoded(request, self._server.headers))
        for reader, _ in self._streams:
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 2"):
                raise RuntimeError(f"odd: {head!r}")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))

    def close(self) -> None:
        """Hang up."""
        for _, writer in self._streams:
            writer.close()


class Turn(NamedTuple):
    """What was used while each server answered as many requests.

    Attributes:
        each: processor time of each server, in microseconds.
        wall: seconds that it took.
    """

    each: list[float]
    wall: float


async def _turn(servers: Sequence[Server], requests: Sequence[Requests]) -> Turn:
    connections = [await _Connections.of(server) for server in servers]
    before, begun = [server.used() for server in servers], time.perf_counter()
    pairs = list(zip(connections, requests, strict=True))
    for number in range(ROUNDS):
        for connection, values in pairs if number % 2 else reversed(pairs):
            await connection.round([each[number] for each in values])
    used = [server.used() - was for server, was in zip(servers, before, strict=True)]
    wall = time.perf_counter() - begun
    for connection in connections:
        connection.close()
    return Turn(used, wall)


@contextmanager
def both(start: Callable[[Path, bool], AbstractContextManager[Server]]) -> Iterator[Callable[[Give], list[Turn]]]:
    """Two servers that ``start`` returns, with something and without; gives a function that has them take turns."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-")))
        servers = [stack.enter_context(start(folder / str(on), on)) for on in (True, False)]
        everywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {LOAD_CORE})
        stack.callback(os.sched_setaffinity, 0, everywhere)
        yield lambda give: [asyncio.run(_turn(servers, [give(one) for one in servers])) for _ in range(TURNS)]


def side_by_side(start: Callable[[Path, bool], AbstractContextManager[Server]], what: str, goal: float) -> list[Row]:
    """What something costs.

    Args:
        start: starts a server on data in a folder, with it or without.
        what: it is.
        goal: at most so much more processor time.
    """
    values = {"GET /decision, full state": Server.decisions, "PUT iteration, durable": Server.reports}
    with both(start) as turns:
        outcome = {name: turns(give) for name, give in values.items()}
    answered = ROUNDS * CONNECTIONS
    pairs = {name: [[used / answered for used in turn.each] for turn in taken] for name, taken in outcome.items()}
    return [_row(name, pair, what, goal) for name, pair in pairs.items()]


def _row(name: str, pairs: Sequence[Sequence[float]], what: str, goal: float) -> Row:
    ratios = [dear / plain - 1 for dear, plain in pairs]
    low, high = interval(ratios)
    return {
        "name": f"{name}: processor time more than without {what} (95 %: {low:+.1%} to {high:+.1%}, {TURNS} turns)",
        "value": round(statistics.median(dear for dear, _ in pairs), 1),
        "unit": "us an answer",
        "peer": f"the same server without {what}",
        "peer_value": round(statistics.median(plain for _, plain in pairs), 1),
        "ratio": round(1 + statistics.median(ratios), 3),
        "goal": f"<= {1 + goal:g} x",
    }

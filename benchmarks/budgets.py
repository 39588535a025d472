"""What a request may take, for every operation at its largest legal input, against the budget that the docs state.

``python -m benchmarks budgets`` — one process that serves as ``steward serve`` does, on asyncio's own event loop and
SQLite, with as many workloads, runs, models and agents as the cases of ``benchmarks.budget_cases`` need. Each request
is sent ``TRIES`` times, alone. Told are the processor time of the event loop's thread (of the try with the least: the
sum over its callbacks, and the longest of them), the most memory that Python and NumPy held for it at once, by
``tracemalloc`` in one more try, and the length of the answer.
"""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

from app.cli.server.serve import configuration
from app.database.engine import Database
from app.keys import service as keys
from app.keys.service import KeyRequest
from app.settings import Settings
from benchmarks.api_speed import Row
from benchmarks.budget_cases import CASES, Case, Sent, World, dumped
from migrations.runner import upgrade
from tests.app.domain_models.published import TENANT
from tests.servers import wait_until

TRIES = 3
LOOP_MS, MEMORY_BYTES, BODIES, ANSWER_BYTES = 20.0, 32_000_000, 8, 1_000_000
STREAMED_BYTES = 4_000_000
"""Of a body or an answer that is streamed, for each of which there is the time on the event loop anew."""
OPERATIONS = Path(__file__).parent.parent / "openapi.json"


class Taken(NamedTuple):
    """What one request took: milliseconds on the event loop, of its longest callback, and what was answered."""

    status: int
    answer: int
    loop_ms: float = 0.0
    longest_ms: float = 0.0
    memory: int = 0


class LoopTime:
    """Processor time of the callbacks of the event loop."""

    def __init__(self) -> None:
        self.total = self.longest = 0.0

    def begin(self) -> None:
        """From now on."""
        self.total = self.longest = 0.0

    @contextmanager
    def measured(self, thread: int) -> Iterator[None]:
        """Of the event loop of one thread."""
        handle: Any = asyncio.events.Handle
        before = handle._run  # noqa: SLF001

        def run(one: asyncio.Handle) -> None:
            if threading.get_ident() != thread:
                before(one)
                return
            begun = time.thread_time()
            before(one)
            took = time.thread_time() - begun
            self.total, self.longest = self.total + took, max(self.longest, took)

        handle._run = run  # noqa: SLF001
        try:
            yield
        finally:
            handle._run = before  # noqa: SLF001


class Service:
    """A service in this process."""

    def __init__(self, port: int, database: Database) -> None:
        self.port, self.loop, self.secret = port, LoopTime(), ""
        self.world = World(database, self.call)
        self._into = bytearray(1 << 16)

    def call(self, method: str, path: str, value: Any) -> Any:
        """An answer as JSON."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, dumped(value), {"Content-Type": "application/json"} | self._headers())
        answer = connection.getresponse()
        result = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {result[:2_000].decode()}")
        return json.loads(result) if result else None

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"} if self.secret else {}

    def send(self, sent: Sent) -> Taken:
        """Send one request and count what is answered, without keeping it."""
        headers = {**sent.headers, **self._headers(), "Content-Length": str(len(sent.body)), "Connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection:
            connection.sendall(f"{sent.method} {sent.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n".encode())
            connection.sendall(sent.body)
            length = connection.recv_into(self._into)
            head = bytes(self._into[:4_096])
            total = length
            while length := connection.recv_into(self._into):
                total += length
        return Taken(int(head.split(b" ", 2)[1]), total - head.index(b"\r\n\r\n") - 4)


@contextmanager
def service() -> Iterator[Service]:
    """The API on a free port, in a thread; its database is gone afterwards."""
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as listening:
        settings = Settings(data_dir=Path(name), port=listening.getsockname()[1])
        upgrade(settings.database_url)
        database, thresholds = Database(settings.database_url, settings), gc.get_threshold()
        config = configuration(settings, database)
        config.loop = "asyncio"
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            wait_until(lambda: server.started, what="the service")
            service = Service(settings.port, database)
            service.secret = keys.create(database, TENANT, KeyRequest(scopes={"admin"}), "benchmark").key or ""
            with service.loop.measured(thread.ident or 0):
                yield service
        finally:
            server.should_exit = True
            thread.join()
            gc.set_threshold(*thresholds)


def timed(service: Service, case: Case, tries: int = TRIES) -> Taken:
    """What the event loop did for a case, of some tries that with the least."""
    matches = []
    for _ in range(tries):
        sent = case.prepare(service.world)
        gc.collect()
        service.loop.begin()
        taken = checked(case, service.send(sent))
        matches.append(taken._replace(loop_ms=service.loop.total * 1e3, longest_ms=service.loop.longest * 1e3))
    return min(matches, key=lambda one: one.loop_ms)


def hold(service: Service, case: Case) -> tuple[Taken, int]:
    """The most memory that was held for a case at once, and the bytes of its body."""
    sent = case.prepare(service.world)
    gc.collect()
    tracemalloc.start()
    try:
        taken = checked(case, service.send(sent))
        return taken._replace(memory=tracemalloc.get_traced_memory()[1]), len(sent.body)
    finally:
        tracemalloc.stop()


def checked(case: Case, taken: Taken) -> Taken:
    """What was taken, if the case was answered as it should be.

    Raises:
        RuntimeError: it wasn't.
    """
    if taken.status >= 300 and taken.status != case.status:
        raise RuntimeError(f"{case.operation}, {case.name}: answered {taken.status}, {taken.answer} bytes")
    return taken


def missing() -> set[str]:
    """Operations of the API without a case."""
    paths = json.loads(OPERATIONS.read_text())["paths"]
    every = {one["operationId"] for path in paths.values() for one in path.values() if "operationId" in one}
    return every - {case.operation for case in CASES}


def over(case: Case, taken: Taken, body: int) -> list[str]:
    """Which parts of the budget a case exceeds."""
    times = max(1.0, (body + taken.answer) / STREAMED_BYTES) if case.streamed else 1.0
    over = [f"{taken.loop_ms:.1f} ms on the event loop"] if taken.loop_ms > LOOP_MS * times else []
    if taken.memory > MEMORY_BYTES + BODIES * body:
        over.append(f"{taken.memory:,} bytes of memory")
    if taken.answer > ANSWER_BYTES and not case.streamed:
        over.append(f"an answer of {taken.answer:,} bytes")
    return over


def _row(service: Service, case: Case) -> Row:
    taken = timed(service, case)
    memory, body = hold(service, case)
    taken = taken._replace(memory=memory.memory)
    name = (
        f"{case.operation}{', ' if case.name else ''}{case.name} (longest callback {taken.longest_ms:.1f} ms; memory "
        f"{taken.memory / 1e6:.1f} MB; body {body:,} bytes, answer {taken.answer:,}{', streamed' * case.streamed})"
    )
    exceeded = over(case, taken, body)
    goal = f"≤ {LOOP_MS:g} ms, {BODIES} × body + 32 MB, 1 MB: {'missed' if exceeded else 'met'}"
    return {
        "name": name,
        "value": taken.loop_ms,
        "unit": "ms",
        "peer": None,
        "peer_value": None,
        "ratio": None,
        "goal": goal,
    }


def results() -> list[Row]:
    """A row per case."""
    if lacking := missing():
        raise RuntimeError(f"no case for {', '.join(sorted(lacking))}")
    with service() as result:
        rows = []
        for case in CASES:
            rows.append(_row(result, case))
            print(f"{rows[-1]['value']:8.1f} {rows[-1]['name']} {rows[-1]['goal'][-7:]}", flush=True)
        return rows

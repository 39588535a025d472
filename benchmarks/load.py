"""A cheap HTTP load generator: keep-alive connections, one request in flight on each, no HTTP library.

``python -m benchmarks.load`` reads a plan from standard input (JSON: port, connections, seconds, and per connection a
list of requests that is gone through in order, once or in a circle) and prints what it measured. It runs in a process
of its own, so that it can be pinned to a core that the server does not use.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import uvloop

Request = tuple[str, str, str]
"""Method, target, body."""


@dataclass
class Plan:
    """What to send: ``requests[c]`` on connection c, in a circle when ``circle``, else once, each with ``headers``."""

    port: int
    seconds: float
    requests: list[list[Request]]
    circle: bool = True
    warm_up: float = 0.5
    headers: str = ""


@dataclass
class Measured:
    """Answers a second after the warm-up, latencies in milliseconds, answers by status, and the first odd one."""

    rate: float
    p50: float
    p99: float
    answers: int
    statuses: dict[str, int] = field(default_factory=dict)
    odd: str = ""


def encoded(request: Request, headers: str = "") -> bytes:
    """A request as sent; each header ends its line."""
    method, target, body = request
    head = f"{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body.encode())}\r\n"
    return f"{head}\r\n{body}".encode()


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Sequence[bytes], circle: bool, stop: float, done: asyncio.Future[None]) -> None:
        self.requests, self.circle, self.stop, self.done = requests, circle, stop, done
        self.position, self.sent, self.buffer = 0, 0.0, b""
        self.log: list[tuple[float, float]] = []  # answered at, seconds taken
        self.statuses: Counter[bytes] = Counter()
        self.odd = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.send()

    def send(self) -> None:
        if self.position == len(self.requests) and self.circle:
            self.position = 0
        now = time.perf_counter()
        if self.position == len(self.requests) or now >= self.stop:
            self.transport.close()
            return
        self.sent = now
        self.transport.write(self.requests[self.position])
        self.position += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        start = self.buffer.lower().find(b"content-length: ", 0, end) + 16
        if start < 16:
            raise RuntimeError(f"an answer without content-length: {self.buffer!r}")
        if len(self.buffer) < end + 4 + int(self.buffer[start : self.buffer.find(b"\r", start)]):
            return
        now = time.perf_counter()
        self.log.append((now, now - self.sent))
        status = self.buffer[9:12]
        self.statuses[status] += 1
        if not status.startswith(b"2") and not self.odd:
            self.odd = self.buffer
        self.buffer = b""
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        if not self.done.done():
            self.done.set_result(None)


async def generate(plan: Plan) -> Measured:
    """Send the plan's requests and measure."""
    loop = asyncio.get_running_loop()
    begun = time.perf_counter()
    connections = []
    for requests in plan.requests:
        done: asyncio.Future[None] = loop.create_future()
        stop = begun + plan.warm_up + plan.seconds
        connection = _Connection([encoded(r, plan.headers) for r in requests], plan.circle, stop, done)
        connections.append(connection)
    begun = time.perf_counter()
    for connection in connections:
        connection.stop = begun + plan.warm_up + plan.seconds
        await loop.create_connection(lambda result=connection: result, "127.0.0.1", plan.port)  # type: ignore[misc]
    await asyncio.gather(*(connection.done for connection in connections))
    return _summary(connections, begun + plan.warm_up)


def _summary(connections: Sequence[_Connection], since: float) -> Measured:
    counted = [(at, took) for connection in connections for at, took in connection.log if at >= since]
    took = sorted(took for _, took in counted)
    seconds = max(at for at, _ in counted) - since
    statuses: Counter[str] = Counter()
    for connection in connections:
        statuses.update({status.decode(): count for status, count in connection.statuses.items()})
    odd = next((connection.odd.decode(errors="replace") for connection in connections if connection.odd), "")
    p50, p99 = (1e3 * took[int(share * (len(took) - 1))] for share in (0.5, 0.99))
    return Measured(len(took) / seconds, p50, p99, sum(statuses.values()), dict(statuses), odd)


def run(plan: Plan, core: int | None = None) -> Measured:
    """Run the plan in a process of its own, pinned to ``core``."""
    previous = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.load"],
            input=json.dumps(asdict(plan)).encode(),
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parent.parent,
            check=True,
            timeout=plan.warm_up + plan.seconds + 30,
        )
    finally:
        os.sched_setaffinity(0, previous)
    return Measured(**json.loads(child.stdout))


if __name__ == "__main__":
    print(json.dumps(asdict(uvloop.run(generate(Plan(**json.load(sys.stdin)))))))

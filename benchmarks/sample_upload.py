"""How many iterations a second a sample upload takes in, and what 500 MB of it cost in memory.

``python -m benchmarks.sample_upload`` — a real server on loopback, pinned to one core; the sender runs on the other.
The yardstick reads the same CSV the plain way, in this process: one ``csv.DictReader`` row and one Pydantic model for
each iteration, stored nowhere. While the large upload runs, another connection keeps asking for a workload, which
shows whether the event loop stays free.
"""

from __future__ import annotations

import csv
import gzip
import http.client
import io
import json
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Self

import psutil
from pydantic import BaseModel, Field

from tests.batched import SPEC as EXAMPLE
from tests.servers import StewardServer, start_steward, stop

SERVER_CORE, LOAD_CORE = 0, 1
ITERATIONS = 90
TURNS = 3
EXECUTIONS = 4_000
LARGE_BYTES = 500_000_000
CHUNK_BYTES = 1 << 18
GOAL_PER_SECOND = 30_000
HEADER = "execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\n"
Row = dict[str, Any]


def execution(name: str, rng: random.Random) -> str:
    """The rows of one execution as CSV."""
    gpus, batch = rng.randint(1, 16), rng.choice((32, 64, 128))
    return "".join(f"{name},{i},{gpus},{rng.uniform(10, 90):.6f},{batch}\n" for i in range(ITERATIONS))


def chunks(prefix: str, size: int) -> Iterator[bytes]:
    """About ``size`` bytes of CSV; rows repeat, the names of executions don't."""
    rng = random.Random(0)
    patterns = [execution("{0}", rng) for _ in range(64)]
    yield HEADER.encode()
    sent, number, block = 0, 0, ""
    while sent + len(block) < size:
        block += patterns[number % 64].replace("{0}", f"{prefix}-{number:07}")
        number += 1
        if len(block) >= CHUNK_BYTES:
            yield block.encode()
            sent, block = sent + len(block), ""
    yield block.encode()


def body(prefix: str) -> bytes:
    """CSV of ``EXECUTIONS`` executions."""
    rng = random.Random(prefix)
    return (HEADER + "".join(execution(f"{prefix}-{i}", rng) for i in range(EXECUTIONS))).encode()


def as_ndjson(text: bytes) -> bytes:
    """The same executions as newline-delimited JSON."""
    samples: dict[str, list[dict[str, Any]]] = {}
    for row in csv.DictReader(io.StringIO(text.decode())):
        report = {
            "allocation": {"gpus": float(row["allocation.gpus"])},
            "metrics": {"iteration_seconds": float(row["metric.iteration_seconds"])},
            "features": {"batch": float(row["feature.batch"])},
        }
        samples.setdefault(row["execution"], []).append(report)
    return "".join(json.dumps({"execution": k, "reports": v}) + "\n" for k, v in samples.items()).encode()


class PlainRow(BaseModel):
    """A row as the plain way validates it."""

    execution: Annotated[str, Field(min_length=1, max_length=255)]
    iteration: Annotated[int, Field(ge=0, lt=ITERATIONS)]
    gpus: Annotated[float, Field(alias="allocation.gpus", ge=1, le=16, multiple_of=1)]
    seconds: Annotated[float, Field(alias="metric.iteration_seconds", gt=0, allow_inf_nan=False)]
    batch: Annotated[float, Field(alias="feature.batch", ge=1, le=512)]


def plainly(text: bytes) -> float:
    """Iterations a second that the yardstick reads."""
    begun = time.perf_counter()
    count = len([PlainRow.model_validate(row) for row in csv.DictReader(io.StringIO(text.decode()))])
    return count / (time.perf_counter() - begun)


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """This process, and what it starts, on one core."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core} & everywhere or everywhere)
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)


@contextmanager
def steward() -> Iterator[StewardServer]:
    """A server of its own, with the example workload."""
    with tempfile.TemporaryDirectory() as folder:
        with pinned(SERVER_CORE):
            server = start_steward(Path(folder), "--workers", "0", wait="alive")
        try:
            post(server, "/workloads", json.dumps(EXAMPLE).encode(), "application/json")
            yield server
        finally:
            stop(server.process)


def post(server: StewardServer, path: str, content: bytes | Iterable[bytes], media_type: str, **more: str) -> Row:
    """Post a body and give the answer."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=900)
    try:
        connection.request("POST", path, content, {"Content-Type": media_type, **more})
        answer = connection.getresponse()
        answer_body: Row = json.load(answer)
        if answer.status != 201:
            raise RuntimeError(f"{path}: {answer.status} {answer_body}")
        return answer_body
    finally:
        connection.close()


def upload(server: StewardServer, content: bytes | Iterable[bytes], media_type: str, **more: str) -> float:
    """Upload samples; iterations a second from the first byte to the answer."""
    begun = time.perf_counter()
    response = post(server, f"/workloads/{EXAMPLE['name']}/samples", content, media_type, **more)
    return float(response["iterations"] / (time.perf_counter() - begun))


def median(turn: Callable[[str], float]) -> float:
    """Median over the turns; each gets a name of its own."""
    return statistics.median(turn(f"turn-{number}") for number in range(TURNS))


class Watch:
    """Resident memory of the server, and latency of another request, while something goes on."""

    def __init__(self, server: StewardServer) -> None:
        self._process = psutil.Process(server.process.pid)
        self._host = server.url.removeprefix("http://")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.before = self.peak = self._resident()
        self.latencies: list[float] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        connection = http.client.HTTPConnection(self._host, timeout=60)
        while not self._ended.wait(0.05):
            begun = time.perf_counter()
            connection.request("GET", f"/workloads/{EXAMPLE['name']}")
            connection.getresponse().read()
            self.latencies.append(1e3 * (time.perf_counter() - begun))
            self.peak = max(self.peak, self._resident())
        connection.close()

    def _resident(self) -> float:
        return float(self._process.memory_info().rss / 1e6)


def speeds() -> list[Row]:
    """Iterations a second by format."""
    with steward() as server, pinned(LOAD_CORE):
        upload(server, body("warm-up"), "text/csv")
        peer = median(lambda name: plainly(body(name)))
        csv_rate = median(lambda name: upload(server, body(f"csv-{name}"), "text/csv"))
        packed = {"Content-Encoding": "gzip"}
        gzip_rate = median(lambda n: upload(server, gzip.compress(body(f"gzip-{n}"), 6), "text/csv", **packed))
        json_rate = median(lambda n: upload(server, as_ndjson(body(f"json-{n}")), "application/x-ndjson"))
    rates = {"CSV": csv_rate, "gzipped CSV": gzip_rate, "NDJSON": json_rate}
    return [_rate(f"sample upload, {name}", rate, peer) for name, rate in rates.items()]


def _rate(name: str, rate: float, peer: float) -> Row:
    return {
        "name": name,
        "value": rate,
        "unit": "iterations/s",
        "peer": "DictReader + Pydantic, unstored",
        "peer_value": peer,
        "ratio": rate / peer,
        "goal": f"≥ {GOAL_PER_SECOND:,} iterations/s" if name.endswith(", CSV") else None,
    }


def large(size: int = LARGE_BYTES) -> list[Row]:
    """Memory and other callers' latency during an upload of ``size`` bytes."""
    label = f"{size // 1_000_000} MB upload"
    with steward() as server, pinned(LOAD_CORE):
        upload(server, chunks("warm-up", 5_000_000), "text/csv")
        with Watch(server) as watch:
            rate = upload(server, chunks("large", size), "text/csv")
    slow = statistics.quantiles(watch.latencies, n=100)[98]
    rows = [
        (f"{label}, CSV", rate, "iterations/s", f"≥ {GOAL_PER_SECOND:,} iterations/s"),
        (f"{label}, resident memory before", watch.before, "MB", None),
        (f"{label}, growth of resident memory at its peak", watch.peak - watch.before, "MB", "flat: ≤ 32 MB"),
        (f"{label}, p99 of another request meanwhile", slow, "ms", None),
    ]
    return [
        {"name": name, "value": value, "unit": unit, "peer": None, "peer_value": None, "ratio": None, "goal": goal}
        for name, value, unit, goal in rows
    ]


def results() -> list[Row]:
    """All rows."""
    return [*speeds(), *large()]


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("sample_upload", results())

"""What one tenant's worst costs another: latency of a victim's reports while an attacker sends its largest requests.

``python -m benchmarks victims`` — one API process (``steward serve`` without workers, SQLite, keys) on all cores. The
victim reports to a run of kind ``iterative`` at ``RATE`` a second in an open loop: latency counts from the moment that
a report is due until its answer is there. Meanwhile ``ATTACKERS`` connections of another tenant, of a process at the
lowest priority, send one case after another, as fast as they are answered. Told are the victim's p99, and what an
attacking request costs: processor time and memory of the service, and bytes of its answer.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from app.database.engine import Database
from app.keys import service as keys
from app.keys.service import KeyRequest
from app.kinds.registry import KINDS
from app.settings import Settings
from benchmarks.api_speed import SPEC, Row
from migrations.runner import upgrade
from tests.servers import clean_environment, free_port, stop, wait_until

RATE, SECONDS, ATTACKERS, RUNS, GOAL_MS = 40.0, 10.0, 4, 600, 100.0
VICTIM, ATTACKER = "victim", "attacker"
REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
JSON = {"Content-Type": "application/json"}
Headers = dict[str, str]


class Attack(NamedTuple):
    """One request: method, path, body, headers; ``begins``: of the run that it reports to, if it does."""

    method: str
    path: str
    body: bytes
    headers: Headers
    kind: str = ""


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _jobs(count: int) -> list[dict[str, Any]]:
    return [{"job": f"job-{n}", "application": f"a{n % 100}", "gpus": 1 + n % 4, "maximum": 8} for n in range(count)]


def _requests(count: int) -> list[dict[str, Any]]:
    user = KINDS["inference"].example.spec["users"][0]["name"]
    return [{"user": user, "id": f"r{n}", "at": 9.0} for n in range(count)]


CLUSTER = {
    "name": "cluster",
    "kind": "cluster",
    "nodes": [{"name": "a", "count": 500, "gpus": 64}],
    "queues": [{"name": "batch"}],
}
INVALID, TWICE = b"0," * 7_000_000, b'"x",' * 1_200_000
UNKNOWN = _dumped({**REPORT, "metrics": {f"m{n}": 1 for n in range(200_000)}})
TASKS = [{"id": f"task-{n}", "processors": 1 + n % 16, "estimate": 100.0 + n} for n in range(5_000)]
CASES: dict[str, Attack] = {
    "an invalid body, an error per element": Attack("POST", "/workloads", b'{"resources":[%s0]}' % INVALID, JSON),
    "a report of 200,000 unknown metrics": Attack(
        "PUT", "/runs/{run}/iterations/0", UNKNOWN, JSON, "iterative"
    ),
    "2,000 jobs on 32,000 GPUs": Attack(
        "PUT", "/runs/{run}/iterations/0", _dumped({"at": 10, "submitted": _jobs(2_000)}), JSON, "cluster"
    ),
    "5,000 tasks": Attack("PUT", "/runs/{run}/iterations/0", _dumped({"now": 10, "queued": TASKS}), JSON, "workflow"),
    "10,000 requests": Attack(
        "PUT", "/runs/{run}/iterations/0", _dumped({"at": 10, "arrived": _requests(10_000)}), JSON, "inference"
    ),
    "brackets, 5 MB": Attack("POST", "/workloads", b'{"a":[%s{}]}' % (b"{}," * 1_700_000), JSON),
    "a member twice, at the end of 5 MB": Attack("POST", "/runs", b'{"a":[%s0],"b":1,"b":2}' % TWICE, JSON),
    "blank lines, gzipped": Attack(
        "POST", "/workloads/iterative/samples", gzip.compress(b"\n" * 200_000_000, 9),
        {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"},
    ),
    "one long line": Attack("POST", "/workloads/iterative/samples", b"x" * 40_000_000, {"Content-Type": "text/csv"}),
}  # fmt: skip
STREAMED = ("an endless header without a key", "uploads that stand still", "any bytes at any route")


class Service:
    """An API process with two tenants."""

    def __init__(self, folder: Path, process: psutil.Process, port: int, secrets: dict[str, str | None]) -> None:
        self.folder, self.process, self.port, self._secrets = folder, process, port, secrets

    def headers(self, tenant: str) -> Headers:
        """What names a tenant in a request."""
        return {"Authorization": f"Bearer {self._secrets[tenant]}"}

    def call(self, tenant: str, method: str, path: str, value: Any) -> Any:
        """An answer as JSON."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, _dumped(value), {**JSON, **self.headers(tenant)})
        answer = connection.getresponse()
        result = json.load(answer)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {result}")
        return result


@contextmanager
def service() -> Iterator[Service]:
    """``steward serve`` with keys of two tenants and a workload of each kind for the attacker."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        result = Settings(data_dir=folder)
        upgrade(result.database_url)
        database = Database(result.database_url, result)
        secrets = {
            tenant: keys.create(database, tenant, KeyRequest(scopes={"admin"}), "benchmark").key
            for tenant in (VICTIM, ATTACKER)
        }
        database.dispose()
        settings = {"STEWARD_DATA_DIR": str(folder), "STEWARD_PORT": str(port)}
        command = [sys.executable, "-m", "app.cli", "serve", "--workers", "0"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, env=clean_environment(settings), stderr=log, stdout=log)
        try:
            wait_until(lambda: _listens(port), what="the service")
            service = Service(folder, _serving(process.pid, port), port, secrets)
            for tenant in (VICTIM, ATTACKER):
                service.call(tenant, "POST", "/workloads", {**SPEC, "name": "iterative", "iterations": 100_000})
            service.call(ATTACKER, "POST", "/workloads", CLUSTER)
            for kind in ("inference", "workflow"):
                service.call(ATTACKER, "POST", "/workloads", {**KINDS[kind].example.spec, "name": kind})
            yield service
        finally:
            stop(process)


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def _serving(pid: int, port: int) -> psutil.Process:
    """The process that answers: the command itself, or a child of it."""
    parent = psutil.Process(pid)
    every = [parent, *parent.children(recursive=True)]
    return next(one for one in every if any(c.laddr and c.laddr.port == port for c in one.net_connections()))


def attack(case: str, port: int, headers: Headers, until: float, runs: list[str]) -> tuple[Counter[str], int]:
    """Send a case until a time, on one connection after another, to one run after another.

    Returns:
        How often it was answered how: by status, or "cut off"; and the bytes of the largest answer.
    """
    answers, largest = Counter[str](), 0
    values, rng = CASES.get(case), random.Random(os.getpid())
    while time.monotonic() < until:
        try:
            if values is None:
                STREAMS[case](port, headers, until, rng)
                answers["sent"] += 1
                continue
            path = values.path.replace("{run}", runs[answers.total() % len(runs)]) if runs else values.path
            with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request(values.method, path, values.body, {**values.headers, **headers})
                answer = connection.getresponse()
                largest = max(largest, len(answer.read()))
                answers[str(answer.status)] += 1
        except OSError:
            answers["cut off"] += 1
    return answers, largest


def _endless_header(port: int, _headers: Headers, until: float, _rng: random.Random) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /decision HTTP/1.1\r\nHost: x\r\nX-Long: ")
        for _ in range(1_500):
            if time.monotonic() > until:
                return
            connection.sendall(b"x" * 100_000)


def _stalled(port: int, headers: Headers, until: float, _rng: random.Random) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "Content-Type": "text/csv"}.items())
    every = []
    for _ in range(40):
        connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        connection.sendall(
            f"POST /workloads/iterative/samples HTTP/1.1\r\nHost: x\r\n{head}Content-Length: 99999\r\n\r\nexec".encode()
        )
        every.append(connection)
    time.sleep(max(until - time.monotonic(), 0))
    for connection in every:
        connection.close()


def _fuzzed(port: int, headers: Headers, _until: float, rng: random.Random) -> None:
    routes = (
        "/workloads",
        "/runs",
        "/evaluations",
        "/workloads/iterative/samples",
        "/workloads/iterative/models",
        "/keys",
    )
    bodies = (
        rng.randbytes(rng.randrange(1, 200_000)),
        b"[" * rng.randrange(1, 100_000),
        b'{"name":"' + b"\\u0000" * 20_000 + b'"}',
    )
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(
        rng.choice(("POST", "PUT", "PATCH", "DELETE")), rng.choice(routes), rng.choice(bodies), {**JSON, **headers}
    )
    connection.getresponse().read()
    connection.close()


STREAMS: dict[str, Callable[[int, Headers, float, random.Random], None]] = dict(
    zip(STREAMED, (_endless_header, _stalled, _fuzzed), strict=True)
)


def victim(service: Service, seconds: float) -> list[float]:
    """Seconds from when each report was due until it was answered."""
    run = service.call(VICTIM, "POST", "/runs", {"workload": "iterative"})["id"]
    connection, headers = HTTPConnection("127.0.0.1", service.port, timeout=60), {**JSON, **service.headers(VICTIM)}
    body, taken = _dumped(REPORT), []
    begun = time.perf_counter()
    for number in range(int(seconds * RATE)):
        due = begun + number / RATE
        time.sleep(max(due - time.perf_counter(), 0))
        connection.request("PUT", f"/runs/{run}/iterations/{number}", body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 201:
            raise RuntimeError(f"the victim is answered {answer.status}")
        taken.append(time.perf_counter() - due)
    return taken


def _tried(service: Service, case: str) -> list[Row]:
    """The victim's latency and the attacker's cost in one case; "" is the victim alone."""
    values = CASES.get(case)
    runs: list[str] = []
    if values is not None and values.kind:
        starts = [service.call(ATTACKER, "POST", "/runs", {"workload": values.kind}) for _ in range(RUNS)]
        runs = [one["id"] for one in starts]
    before, memory, peak = sum(service.process.cpu_times()[:2]), service.process.memory_info().rss, [0]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            peak[0] = max(peak[0], service.process.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    command = ["nice", "-n", "19", sys.executable, "-m", "benchmarks.victims", case, str(service.port)]
    command.append(json.dumps(service.headers(ATTACKER)))
    attackers = [
        subprocess.Popen([*command, json.dumps(runs[number::ATTACKERS])], stdout=subprocess.PIPE)
        for number in range(ATTACKERS if case else 0)
    ]
    if case:
        time.sleep(2.0)  # they begin
    taken = np.array(victim(service, SECONDS)) * 1000
    bodies = [json.loads(one.communicate(timeout=180)[0]) for one in attackers]
    over.set()
    watching.join()
    answers = sum((Counter(one["answers"]) for one in bodies), Counter[str]())
    sent = answers.total()
    used = sum(service.process.cpu_times()[:2]) - before
    p50, p99 = np.quantile(taken, [0.5, 0.99])
    cost = ""
    if case:
        told_how = ", ".join(f"{how}: {count:,}" for how, count in answers.items())
        cost = (
            f"; the attacker's requests: {told_how}; {used / max(sent, 1):.3f} CPU-s each with the victim's, memory up "
            f"to {(peak[0] - memory) / 1e6:+.0f} MB, answers up to {max(one['largest'] for one in bodies):,} bytes"
        )
    name = f"{case or 'alone'}: p99 of a report of the other tenant (p50 {p50:.1f}, most {taken.max():.1f} ms{cost})"
    goal = f"≤ {GOAL_MS:g} ms: {'met' if p99 <= GOAL_MS else 'missed'}" if case else ""
    return [
        {"name": name, "value": float(p99), "unit": "ms", "peer": None, "peer_value": None, "ratio": None, "goal": goal}
    ]


def results() -> list[Row]:
    """A row per case."""
    with service() as result:
        rows: list[Row] = []
        for case in ("", *CASES, *STREAMED):
            rows += _tried(result, case)
            print(rows[-1]["name"], f"{rows[-1]['value']:.1f}", flush=True)
        return rows


def main(case: str, port: str, headers: str, runs: str) -> None:
    """The process of one attacker: prints what ``attack`` gives, as JSON."""
    answers, largest = attack(case, int(port), json.loads(headers), time.monotonic() + 2.0 + SECONDS, json.loads(runs))
    print(json.dumps({"answers": answers, "largest": largest}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What Steward holds under load: the highest rate of reports whose p99 stays in time, what is refused beyond, a soak.

``python -m benchmarks held_load:sqlite-1-iterative`` — database, API processes, kind. A thousand runs report in an open
loop (``benchmarks.open_loop``): latency counts from the moment that a report was due. The rate rises until p99 exceeds
``LIMIT_MS``, or reports are refused; the last rate that held is told. A rate holds where it does in two of three steps:
a disk that others use stalls now and then, whatever the rate, and what a small write costs on it alone is told beside,
and how much of the processors' time other machines on the same host took.
Every run has reported twice before: a service reads a run once. Then come ``BEYOND`` times as many for some seconds,
at least ``FLOOD``, which is too much also where few held because the machine stalled, and then half as many, which must
be in time again; three times, of which the slowest counts: within three seconds the disk needs to stall once for some
50 ms, and p99 is that stall. One API process and the load have a core each; two
API processes have one each, and the load runs beside them.

``held_load:sqlite-beside``: p99 at ``BESIDE_RATE`` while nothing else is done, and while a fit and a training are, by a
worker of the same service on the same cores. ``held_load:soak``: all kinds at once for half an hour
(``STEWARD_SOAK_SECONDS``), with memory that is the process's own (USS), handles, and latency, each as a trend.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import numpy as np
import psutil

from app.kinds.iterative.example import EXAMPLE
from benchmarks import inference_serving, open_loop
from benchmarks.api_speed import SPEC, Row, _post, answers, publish
from benchmarks.footprint import listening
from benchmarks.open_loop import Measured, Plan, Run
from tests.servers import clean_environment, free_port, postgres_server, stop, wait_until

RUNS, LIMIT_MS, BEYOND, FLOOD = 1_000, 25.0, 2.0, 4_000.0
STEP_SECONDS, GROWTH, SEARCH_SECONDS, WARM_RATE = 3.0, 1.25, 90.0, 300.0
BESIDE_RATE, BESIDE_SECONDS, BESIDE_GOAL = 300.0, 8.0, 2.0
SOAK_SECONDS, SOAK_RATE, SOAK_RUNS, SAMPLE_SECONDS = 1_800.0, 100.0, 400, 5.0
ROOT = Path(__file__).parent.parent
POOL = {"name": "pool", "processors": 64, "minimum": 1, "maximum": 1}
SPECS: dict[str, dict[str, Any]] = {
    "iterative": {**SPEC, "name": "iterative", "iterations": 2_000},
    "inference": {**inference_serving.ONE_SERVER, "name": "inference"},
    "cluster": {
        "name": "cluster",
        "kind": "cluster",
        "nodes": [{"name": "n", "count": 2, "gpus": 4}],
        "queues": [{"name": "batch"}],
    },
    "workflow": {"name": "workflow", "kind": "workflow", "nodes": [POOL], "strategy": "sjf", "backfilling": "easy"},
}
GUESSES = {"iterative": 800.0, "inference": 600.0, "cluster": 400.0, "workflow": 300.0}
DATABASES = ("sqlite", "postgresql")
PARTS = (
    *(f"{database}-{count}-{kind}" for database in DATABASES for count in (1, 2) for kind in SPECS),
    *(f"{database}-beside" for database in DATABASES),
    "soak",
)


class Service(NamedTuple):
    """API processes on one database, by their ports."""

    ports: list[int]
    load_core: int | None

    def start(self, kind: str, count: int) -> list[Run]:
        """New runs, which take turns at the processes."""
        connection = HTTPConnection("127.0.0.1", self.ports[0])
        result = []
        for number in range(count):
            body = f'{{"workload": "{kind}"}}'
            connection.request("POST", "/runs", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 201:
                raise RuntimeError(f"{answer.status}: {content.decode()}")
            result.append(Run(self.ports[number % len(self.ports)], kind, answer_id(content)))
        return result


def answer_id(content: bytes) -> str:
    """The id of what was made."""
    return str(json.loads(content)["id"])


@contextmanager
def service(database: str, processes: int, kinds: Sequence[str], workers: int = 0) -> Iterator[Service]:
    """Steward with a workload of each kind; ``iterative`` has a domain model and a champion."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-")))
        url = f"sqlite:///{folder}/steward.db"
        if database == "postgresql":
            url = stack.enter_context(postgres_server(durable=True)).url()
        ports = [stack.enter_context(_process(folder, url, core, workers)) for core in range(processes)]
        for kind in kinds:
            _post(ports[0], "/workloads", SPECS[kind])
        if "iterative" in kinds:
            publish(url, "iterative")
        time.sleep(1.5)  # an API process looks for a new champion twice a second
        yield Service(ports, 1 if processes == 1 else None)


@contextmanager
def _process(folder: Path, url: str, core: int, workers: int) -> Iterator[int]:
    port = free_port()
    command = ["taskset", "-c", str(core)] if not workers else []
    command += [sys.executable, "-m", "app.cli", "serve", "--workers", str(workers), "--port", str(port)]
    environment = clean_environment({"STEWARD_DATABASE_URL": url, "STEWARD_LOG_LEVEL": "error"})
    process = subprocess.Popen([*command, "--data", str(folder)], env=environment, cwd=ROOT)
    try:
        wait_until(lambda: answers(port), 120, "the server to answer")
        yield port
    finally:
        stop(process)


def holds(measured: Measured, rate: float) -> bool:
    """Whether p99 is in time, nothing was refused, and as many were taken as came."""
    return measured.p99 <= LIMIT_MS and not measured.refused and measured.taken >= 0.9 * rate * STEP_SECONDS


def step(here: Service, runs: list[Run], rate: float) -> tuple[bool, Measured]:
    """Whether a rate holds, two of three times, and what was measured in the slower of those that say so."""
    tried = dict[bool, list[Measured]]({False: [], True: []})
    while True:
        plan = Plan(runs, rate, STEP_SECONDS, seed=int(rate) + sum(map(len, tried.values())))
        measured = open_loop.run(plan, here.load_core)
        alike = tried[holds(measured, rate)]
        alike.append(measured)
        if len(alike) == 2:
            return alike is tried[True], max(alike, key=lambda one: one.p99)


def highest(here: Service, runs: list[Run], rate: float) -> tuple[float, Measured | None]:
    """The highest rate that held, of those that were tried, and what was measured there; 0 where none did."""
    best: tuple[float, Measured | None] = (0.0, None)
    failed, until = float("inf"), time.monotonic() + SEARCH_SECONDS
    while time.monotonic() < until and failed >= GROWTH * max(best[0], 1.0) and failed >= 20:
        holds, measured = step(here, runs, rate)
        if holds:
            best = rate, measured
        else:
            failed = rate
        rate = best[0] * GROWTH if failed == float("inf") else (best[0] * failed) ** 0.5 if best[0] else failed / 2
    return best


def disk_milliseconds(seconds: float = 3.0) -> float:
    """The 99th percentile of what a small durable write takes where databases are, with nothing else at it."""
    taken, until = list[float](), time.monotonic() + seconds
    with tempfile.TemporaryFile(prefix="steward-bench-") as file:
        while time.monotonic() < until:
            begun = time.perf_counter()
            file.write(bytes(8_192))
            file.flush()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - begun)
    return 1e3 * float(np.quantile(taken, 0.99))


def stolen(since: Any) -> float:
    """Per cent of the processors' time that other machines on the host took since ``psutil.cpu_times()``."""
    now = psutil.cpu_times()
    return 100 * float((now.steal - since.steal) / (sum(now[:8]) - sum(since[:8])))  # the last two are in the first


def beyond(here: Service, runs: list[Run], rate: float, seed: int) -> tuple[Measured, Measured]:
    """What is measured while more comes than holds, and then at half of what holds."""
    flood = open_loop.run(Plan(runs, max(BEYOND * rate, FLOOD), STEP_SECONDS, seed=seed), here.load_core)
    after = Plan(runs, max(rate, 20.0) / 2, STEP_SECONDS, warm_up=1.5, seed=seed)
    return flood, open_loop.run(after, here.load_core)


def under_load(database: str, processes: int, kind: str) -> list[Row]:
    """The highest rate, and what happens beyond."""
    with service(database, processes, [kind]) as here:
        runs, disk = here.start(kind, RUNS), disk_milliseconds()
        open_loop.run(Plan(runs, WARM_RATE, 2 * RUNS / WARM_RATE), here.load_core)
        begun = psutil.cpu_times()
        rate, measured = highest(here, runs, GUESSES[kind])
        floods, afters = zip(*(beyond(here, runs, rate, seed) for seed in range(3)), strict=True)
    name = f"{database}, {processes} API process{'es' if processes > 1 else ''}, {kind}"
    reported = {"p50_ms": round(measured.p50, 1), "p99_ms": round(measured.p99, 1)} if measured else {}
    reported |= {"disk_p99_ms": round(disk, 1), "stolen_percent": round(stolen(begun), 1)}
    reported |= {"refused_beyond": round(max(flood.refused for flood in floods), 3)}
    reported |= {"longest_beyond_ms": round(max(flood.longest for flood in floods))}
    calm = sorted(round(after.p99, 1) for after in afters)
    return [
        _row(f"{name}: highest rate with p99 <= {LIMIT_MS:g} ms, {RUNS:,} runs", round(rate), "1/s") | reported,
        _row(
            f"{name}: p99 at half of it, 1.5 s after {max(BEYOND * rate, FLOOD):,.0f}/s, slowest of three",
            calm[-1],
            "ms",
            LIMIT_MS,
        )
        | {"each_ms": calm},
    ]


def _row(name: str, value: float, unit: str, goal: float | None = None) -> Row:
    limit = "" if goal is None else f"<= {goal:g} {unit}"
    ratio = None if goal is None else round(value / goal, 2)
    return {"name": name, "value": value, "unit": unit, "peer": "", "peer_value": None, "ratio": ratio, "goal": limit}


def beside(database: str) -> list[Row]:
    """p99 without and with a fit and a training, in turns: before, while, after."""
    with service(database, 1, ["iterative"], workers=1) as here:
        runs, port = here.start("iterative", RUNS), here.ports[0]
        _post(port, "/workloads", dict(EXAMPLE.spec))
        samples = Request(f"http://127.0.0.1:{port}/workloads/{EXAMPLE.spec['name']}/samples")
        samples.data, samples.headers = EXAMPLE.samples["text/csv"], {"Content-type": "text/csv"}
        urlopen(samples).close()
        plan = Plan(runs, BESIDE_RATE, BESIDE_SECONDS)
        open_loop.run(Plan(runs, BESIDE_RATE, 2.0))
        before = open_loop.run(plan)
        jobs = [_post(port, f"/workloads/{EXAMPLE.spec['name']}/models", {})["id"]]
        wait_until(lambda: _job(port, jobs[0])["state"] == "succeeded", 60, "the fit")
        jobs = [_post(port, f"/workloads/{EXAMPLE.spec['name']}/models", {})["id"]]
        jobs += [
            _post(port, f"/workloads/{EXAMPLE.spec['name']}/agents", {"algorithm": "dqn", "budget": 10_000_000})["id"]
        ]
        wait_until(lambda: any(_job(port, job)["state"] == "running" for job in jobs), 30, "a job to run")
        during = open_loop.run(plan)
        going = [_job(port, job)["state"] for job in jobs]
    ratio = during.p99 / before.p99
    name = f"{database}: p99 at {BESIDE_RATE:g} reports/s beside a fit and a training ({', '.join(going)} at the end)"
    row = _row(name, round(during.p99, 1), "ms")
    peer = {"peer": "the same without", "peer_value": round(before.p99, 1), "ratio": round(ratio, 2)}
    return [row | peer | {"goal": f"<= {BESIDE_GOAL:g} x"}]


def _job(port: int, job: str) -> Any:
    with urlopen(f"http://127.0.0.1:{port}/jobs/{job}") as answer:
        return json.load(answer)


class Sample(NamedTuple):
    """A process at a moment: megabytes of its own memory, open handles, threads."""

    second: float
    megabytes: float
    handles: int
    threads: int


def watched(process: psutil.Process, ended: threading.Event, into: list[Sample]) -> None:
    """Take samples until the end."""
    begun = time.monotonic()
    while not ended.wait(SAMPLE_SECONDS):
        own = process.memory_full_info().uss / 1e6
        into.append(Sample(time.monotonic() - begun, own, process.num_fds(), process.num_threads()))


def soak() -> list[Row]:
    """All kinds at once, for long."""
    seconds = float(os.environ.get("STEWARD_SOAK_SECONDS", SOAK_SECONDS))
    with service("sqlite", 1, [*SPECS]) as here:
        mixed = [here.start(kind, SOAK_RUNS // len(SPECS)) for kind in SPECS]
        runs = [run for several in zip(*mixed, strict=True) for run in several]
        samples, ended = list[Sample](), threading.Event()
        watcher = threading.Thread(target=watched, args=(listening(here.ports[0]), ended, samples))
        watcher.start()
        try:
            plan = Plan(runs, SOAK_RATE, seconds, window=seconds / 10)
            measured = open_loop.run(plan, here.load_core)
        finally:
            ended.set()
            watcher.join()
    return [*_trends(samples, seconds), _latency(measured, seconds)]


def _trends(samples: Sequence[Sample], seconds: float) -> Iterator[Row]:
    """The second half against the second tenth: caches fill at the beginning."""
    table = np.array(samples)
    early = table[(table[:, 0] > seconds / 10) & (table[:, 0] <= seconds / 5)]
    late = table[table[:, 0] > seconds / 2]
    for column, what, unit in ((1, "memory of its own (USS)", "MB"), (2, "open handles", ""), (3, "threads", "")):
        first, last = np.median(early[:, column]), np.median(late[:, column])
        hourly = 3_600 * np.polyfit(late[:, 0], late[:, column], 1)[0]
        name = f"soak of {seconds:,.0f} s at {SOAK_RATE:g} reports/s of all kinds: {what}"
        row = _row(name, round(float(last), 1), unit)
        peer = {"peer": "in the second tenth", "peer_value": round(float(first), 1)}
        yield row | peer | {"ratio": round(float(last / first), 3), "per_hour": round(float(hourly), 2), "goal": "flat"}


def _latency(measured: Measured, seconds: float) -> Row:
    p99 = [window[1] for window in measured.windows]
    row = _row(f"soak of {seconds:,.0f} s: p99 of its last half", round(float(np.median(p99[5:])), 1), "ms")
    first = round(float(np.median(p99[:5])), 1)
    reported = {"p99_ms": [round(one, 1) for one in p99], "reports": measured.taken, "statuses": measured.statuses}
    return row | {"peer": "of its first", "peer_value": first, "ratio": round(row["value"] / first, 2), **reported}


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Every figure of these parts."""
    rows: list[Row] = []
    for part in parts:
        if part == "soak":
            rows += soak()
        elif part.endswith("beside"):
            rows += beside(part.partition("-")[0])
        else:
            database, processes, kind = part.split("-")
            rows += under_load(database, int(processes), kind)
    return rows


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PARTS:
        for row in results([chosen]):
            print(row, flush=True)

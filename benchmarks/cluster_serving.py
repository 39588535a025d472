"""How fast a cluster of a thousand jobs is decided: in process, and over HTTP, durably; and one of 160 jobs on 64 GPUs.

``python -m benchmarks cluster_serving[:PART]``. **thousand**: 512 GPUs on 64 nodes, two queues, six applications with
a domain model; 500 jobs run and 500 wait. Every report has the progress of fifty jobs, five ends and five arrivals, and
is answered with all changes; the median, the 95th percentile and the longest of the reports are stated, of one
connection, by the clock. **choosing**: the 160 jobs are all there, choose their batches, and report steps and noise
scales each minute; processor time. **apart**: the same of 500 jobs on the 512 GPUs, each of which has other limits of
its batch, with noise scales that past jobs reported, so that each end is expected by how its own goes on.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.cluster.kind import KIND
from app.kinds.cluster.samples import Content
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.contract.kind import RunStart
from app.workloads import service as workloads
from benchmarks.api_speed import Row, _post, served
from tests.answers import all_answered
from workers.inputs import Workload
from workers.kinds.cluster import KIND as LEARNED

RUNNING, WAITING, REPORTS, LIMIT_MS = 500, 500, 40, 20.0
JOBS, JOBS_LIMIT_MS = 160, 50.0
APART_REPORTS = 10
NODES, NODE = 64, 8
APPLICATIONS = tuple(f"application-{number}" for number in range(6))
JSON = {"content-type": "application/json"}
SPEC: dict[str, Any] = {
    "name": "bench",
    "kind": "cluster",
    "nodes": [{"name": "n", "count": NODES, "gpus": NODE}],
    "queues": [{"name": "urgent", "weight": 4}, {"name": "batch", "ageing_seconds": 14_400}],
}

SMALL = SPEC | {"nodes": [{"name": "n", "count": 16, "gpus": 4}]}


def domain_model(spec: dict[str, Any] = SPEC, *, noise: bool = False) -> bytes:
    """Fitted to measured steps that scale more and less well; ``noise``: also to a past job of each application, whose
    noise scale grew a hundredfold."""
    gpus = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    rows = [
        [place, count, np.ceil(count / NODE), 0, count * local, 0.02 * local / 32 + 0.01 * (place + 1) * (count > 1)]
        for place in range(len(APPLICATIONS))
        for count in gpus.tolist()
        for local in (16.0, 32.0)
    ]
    steps = np.column_stack([np.array(rows), np.full(len(rows), np.nan), np.full((len(rows), 4), -1.0)])
    scales = np.geomspace(100.0, 10_000.0, 10).tolist() if noise else ()
    rows = [
        [at, at, 10 * k, 1 / (k + 1), 0, 64, one] for at in range(len(APPLICATIONS)) for k, one in enumerate(scales)
    ]
    curves = np.array(rows, np.float64).reshape(-1, 7)
    content = Content(APPLICATIONS, APPLICATIONS if noise else (), steps, curves, np.zeros((0, 6)))
    return LEARNED.fit(Workload(KIND.spec.model_validate(spec), samples=[("bench", content)]), 0).model


class Launcher:
    """Reports of a thousand jobs: as many come as end."""

    jobs = RUNNING + WAITING

    def __init__(self) -> None:
        self.now, self.number, self.running = 0.0, 0, dict[str, int]()
        self._random = np.random.default_rng(0)

    def first(self) -> dict[str, Any]:
        """All that run, a GPU or more each, and all that wait: they need more than is left beside those."""
        running = [self._urgent() for _ in range(RUNNING)]
        waiting = [self._job(NODES * NODE - RUNNING + 1, 64, "batch") for _ in range(WAITING)]
        return {"at": self._later(), "submitted": running + waiting}

    def following(self) -> dict[str, Any]:
        """A tenth of those that run have gone on, a hundredth has ended, and as many came."""
        names = self._random.permutation([*self.running]).tolist()
        ended, on = names[:5], names[5:55]
        for name in ended:
            del self.running[name]
        for name in on:
            self.running[name] += 1
        progressed = [{"job": name, "iteration": self.running[name], "loss": 1.0} for name in on]
        came = [self._urgent() for _ in ended]
        return {
            "at": self._later(),
            "submitted": came,
            "progressed": progressed,
            "ended": [{"job": name} for name in ended],
        }

    def _later(self) -> float:
        self.now += 60.0
        return self.now

    def _urgent(self) -> dict[str, Any]:
        job = self._job(1, NODE)
        self.running[job["job"]] = 0
        return job

    def _job(self, minimum: int, maximum: int, queue: str = "urgent") -> dict[str, Any]:
        name = f"job-{self.number}"
        self.number += 1
        reported = {"application": APPLICATIONS[self.number % 6], "batch": 64, "iterations": 1_000}
        return {"job": name, "gpus": minimum, "minimum": minimum, "maximum": maximum, "queue": queue, **reported}


class Choosing:
    """Reports of jobs that choose their batches, of which all are there and none ends; ``apart``: the largest batch of
    each is another."""

    def __init__(self, jobs: int = JOBS, *, apart: bool = False) -> None:
        self.number, self.jobs, self._more = 0, jobs, 8 * apart

    def first(self) -> dict[str, Any]:
        """All come at once."""
        limits = {"batch": 32, "gpu_batch_minimum": 8, "gpu_batch_maximum": 64}
        reported = {"gpus": 4, "maximum": 64, "iterations": 1_000, **limits}
        jobs = [
            {"job": f"j{one}", "application": self._of(one), "batch_maximum": 4_096 + self._more * one, **reported}
            for one in range(self.jobs)
        ]
        return {"at": 60, "submitted": jobs}

    def following(self) -> dict[str, Any]:
        """Each has gone on, by steps and a noise scale that change."""
        self.number += 1
        reported = {"iteration": self.number, "gpus": 4, "nodes": 1, "batch": 256}
        steps = [
            {
                "job": f"j{one}",
                "seconds": 0.04 + 0.0001 * (one + self.number),
                "noise_scale": 100.0 * (one + 1),
                **reported,
            }
            for one in range(self.jobs)
        ]
        return {"at": 60 * (self.number + 1), "progressed": steps}

    @staticmethod
    def _of(one: int) -> str:
        return APPLICATIONS[one % len(APPLICATIONS)]


def in_process(
    model: bytes,
    launcher: Launcher | Choosing,
    of: dict[str, Any] = SPEC,
    clock: Callable[[], float] = time.perf_counter,
    reports: int = REPORTS,
) -> Iterator[float]:
    """Milliseconds of each answer: read, decided, encoded, and its state, too."""
    spec = KIND.spec.model_validate(of)
    layout, engine, now = KIND.layout(spec), KIND.engine, datetime(2026, 1, 1, tzinfo=UTC)
    on = engine.compile(Snapshot("w", "bench", 1, spec, layout, KIND.model(model), 1, None, None, 1))
    run_state = engine.begin(on, "r", RunStart(workload="bench"), now).state
    for number in range(reports + 1):
        body = json.dumps(launcher.following() if number else launcher.first()).encode()
        before = clock()
        read = engine.read(on, run_state, number, engine.decode(body))
        [answered] = all_answered(engine.answer(on, [Pending("r", number, run_state, read, {}, None)], now))
        run_state = answered.state
        engine.serialise(run_state)
        if number:
            yield 1e3 * (clock() - before)
    state = run_state.state
    running = int((state.jobs.gpus > 0).sum())
    counts, expected = (len(state.names), running), RUNNING if isinstance(launcher, Launcher) else running
    assert counts == (launcher.jobs, expected), counts  # noqa: S101


def over_http(model: bytes) -> Iterator[float]:
    """Milliseconds of each report, from its first byte to the last of its answer, durable by then."""
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
        url = f"sqlite:///{Path(folder)}/steward.db"
        with served(Path(folder), STEWARD_DATABASE_URL=url) as port:
            _post(port, "/workloads", SPEC)
            database = Database(url)
            with database.session() as session:
                workload = workloads.require(session, "default", "bench")
                domain_models.publish(session, workload.id, 1, {"family": "none"}, model)
            database.dispose()
            time.sleep(1.5)  # the API looks for a new model twice a second
            run, launcher = _post(port, "/runs", {"workload": "bench"})["id"], Launcher()
            connection = HTTPConnection("127.0.0.1", port)
            for number in range(REPORTS + 1):
                body = json.dumps(launcher.following() if number else launcher.first())
                before = time.perf_counter()
                connection.request(
                    "PUT", f"/runs/{run}/iterations/{number}", body, {"content-type": "application/json"}
                )
                answer = connection.getresponse()
                decision = json.loads(answer.read())
                if number:
                    yield 1e3 * (time.perf_counter() - before)
                assert (answer.status, decision["running"]) == (201, RUNNING), decision  # noqa: S101


def _row(name: str, taken: list[float], limit: float | None = LIMIT_MS) -> Row:
    """The row of so many milliseconds by report; ``limit``: the goal of their median, None: there is none."""
    value = float(np.median(taken))
    row = {"name": name, "value": round(value, 2), "unit": "ms", "peer": "", "peer_value": None}
    spread = {"p95": round(float(np.quantile(taken, 0.95)), 2), "longest": round(max(taken), 2), "reports": len(taken)}
    if limit is None:
        return {**row, "ratio": None, "goal": "", **spread}
    return {**row, "ratio": round(value / limit, 2), "goal": f"<= {limit:g} ms", **spread}


PARTS = ("choosing", "thousand", "apart")


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """The rows of each part, with their goals."""
    known = {"choosing": _choosing, "thousand": _thousand, "apart": _apart}
    return [row for part in parts for row in known[part]()]


def _choosing() -> list[Row]:
    named = f"{JOBS} jobs that choose their batches on 64 GPUs: decided in process, processor time"
    taken = [*in_process(domain_model(SMALL), Choosing(), SMALL, time.process_time)]
    return [_row(named, taken, JOBS_LIMIT_MS)]


def _apart() -> list[Row]:
    model = domain_model(noise=True)
    scales = KIND.model(model).noise_scale
    assert np.isfinite(scales).all(), scales  # noqa: S101 - else ends are expected at present speeds
    taken = [*in_process(model, Choosing(RUNNING, apart=True), SPEC, time.process_time, APART_REPORTS)]
    named = f"{RUNNING} jobs with limits of their own on 512 GPUs, noise scales learned: decided in process"
    return [_row(f"{named}, processor time", taken, None)]


def _thousand() -> list[Row]:
    model, named = domain_model(), f"{RUNNING} jobs run, {WAITING} wait"
    return [
        _row(f"{named}: decided in process", [*in_process(model, Launcher())]),
        _row(f"{named}: decided over HTTP, durable, sqlite", [*over_http(model)]),
    ]


if __name__ == "__main__":
    for row in results():
        print(row)

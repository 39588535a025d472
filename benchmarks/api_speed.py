"""How many decisions and durable reports a second one API process answers, against an empty endpoint.

``python -m benchmarks.api_speed`` — the server is pinned to one core, the load generator to another; yardstick and
Steward take turns, and each ratio is the median over the turns, with its 95 % interval by a sign test. The workload has
a domain model and a champion network of the usual size; every request differs. PostgreSQL, where it is installed, runs
on both cores.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import numpy as np

from app.database.engine import Database
from app.database.tables import Agent, Champion, DomainModel, Workload
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.iterative import policies
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from app.policies.network import NetworkPolicy
from benchmarks import load
from benchmarks.load import Measured, Plan
from tests.servers import clean_environment, free_port, postgres_server, stop, wait_until

CONNECTIONS = 32
TURNS = 31
SECONDS = 1.0
SERVER_CORE, LOAD_CORE = 0, 1
ITERATIONS = 90
SPEC: dict[str, Any] = {
    "name": "bench",
    "resources": [
        {
            "name": "gpus",
            "minimum": 1,
            "maximum": 16,
            "max_steps": 2,
            "initial": 4,
            "price_per_hour": 2.5,
            "change_seconds": 10,
        }
    ],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 1800, "scope": "run"}],
    "features": [{"name": "batch", "minimum": 1, "maximum": 512}],
    "iterations": ITERATIONS,
}
Row = dict[str, Any]


@contextmanager
def server(command: Sequence[str], port: int, **settings: str) -> Iterator[int]:
    """A server process on ``SERVER_CORE``; gives its port."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {SERVER_CORE})
    try:
        process = subprocess.Popen([sys.executable, *command], env=clean_environment(settings), cwd=_ROOT)
    finally:
        os.sched_setaffinity(0, everywhere)
    try:
        wait_until(lambda: answers(port, "/openapi.json"), what="the server to answer")
        yield port
    finally:
        stop(process)


_ROOT = Path(__file__).parent.parent


def answers(port: int, path: str = "/healthz") -> bool:
    """Whether a server has started there."""
    try:
        urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).close()
    except OSError:
        return False
    return True


def _post(port: int, path: str, body: object) -> Any:
    data, headers = json.dumps(body).encode(), {"content-type": "application/json"}
    with urlopen(HttpRequest(f"http://127.0.0.1:{port}{path}", data, headers)) as answer:
        return json.load(answer)


@contextmanager
def steward(database_url: str, folder: Path) -> Iterator[int]:
    """A Steward with the benchmark's workload, its model and champion; gives its port."""
    with served(folder, STEWARD_DATABASE_URL=database_url) as port:
        _post(port, "/workloads", SPEC)
        publish(database_url, SPEC["name"])
        time.sleep(1.5)  # the API looks for a new champion twice a second
        yield port


@contextmanager
def served(folder: Path, **settings: str) -> Iterator[int]:
    """An empty Steward without workers; gives its port."""
    port = free_port()
    command = ["-m", "app.cli", "serve", "--workers", "0", "--port", str(port), "--data", str(folder)]
    with server(command, port, **settings):
        yield port


def publish(database_url: str, name: str) -> None:
    """Give a workload a domain model and a champion network, as the workers would."""
    database = Database(database_url)
    with database.session() as session:
        workload = session.query(Workload).filter_by(name=name).one()
        layout = Layout(Spec.model_validate(workload.spec))
        table, policy = ernest_table(layout).to_bytes(), policies.save(network(layout), layout)
        session.add(DomainModel(workload_id=workload.id, version=1, spec_version=1, report={}, table=table))
        session.add(
            Agent(
                workload_id=workload.id,
                version=1,
                spec_version=1,
                model_version=1,
                algorithm="dueling_double_dqn",
                seed=0,
                report={},
                artifact=policy,
                promoted=True,
            )
        )
        workload.champions[DEFAULT_ROLE] = Champion(role=DEFAULT_ROLE, version=1)
        workload.revision += 1
    database.dispose()


def ernest_table(layout: Layout) -> ModelTable:
    """A model whose seconds fall with the allocation, and rise again a little."""
    units = layout.allocations[:, 0]
    seconds = np.log(2 + 60 / units + 0.1 * units)
    one = np.ones(len(layout.metrics))
    return ModelTable(
        log_mean=np.tile(seconds.astype(np.float32)[None, :, None, None], (len(one), 1, 1, 1)),
        iteration_bin=np.zeros(layout.iterations, np.int32),
        feature_nodes=tuple(np.array([(f.minimum + f.maximum) / 2]) for f in layout.spec.features),
        effect_sd=0.2 * one,
        noise_sd=0.05 * one,
        drift_sd=0.01 * one,
        marginal_low=-0.35 * one,
        marginal_high=0.35 * one,
        residual_low=-0.09 * one,
        residual_high=0.09 * one,
        change_seconds=np.array([r.change_seconds for r in layout.spec.resources]),
        seen_low=np.array([r.minimum for r in layout.spec.resources]),
        seen_high=np.array([r.maximum for r in layout.spec.resources]),
        feature_low=np.array([f.minimum for f in layout.spec.features]),
        feature_high=np.array([f.maximum for f in layout.spec.features]),
    )


def network(layout: Layout, width: int = 64) -> NetworkPolicy:
    """A dueling network of two hidden layers with small random weights."""
    rng, actions = np.random.default_rng(0), len(layout.deltas)
    sizes = [layout.observation_size, width, width]
    shapes = {f"trunk.{i}": (sizes[i + 1], sizes[i]) for i in range(2)}
    shapes |= {"advantage": (actions, width), "value": (1, width)}
    arrays: dict[str, Any] = {}
    for name, shape in shapes.items():
        arrays[f"{name}.weight"] = rng.normal(0, 0.05, shape).astype(np.float32)
        arrays[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    config = {
        "algorithm": "dueling_double_dqn",
        "layers": [width, width],
        "activation": "relu",
        "dueling": True,
        "advice": None,
    }
    return NetworkPolicy.build(config, arrays)


def states(path: str) -> list[list[load.Request]]:
    """Requests for decisions, each for another state."""
    rng = random.Random(0)

    def one() -> load.Request:
        state = {
            "iteration": rng.randrange(ITERATIONS),
            "allocation": f"gpus:{rng.randint(1, 16)}",
            "metric": f"iteration_seconds:{rng.uniform(5, 60):.3f}",
            "feature": f"batch:{rng.randint(1, 512)}",
        }
        return "GET", f"{path}?workload=bench&" + "&".join(f"{k}={v}" for k, v in state.items()), ""

    return [[one() for _ in range(256)] for _ in range(CONNECTIONS)]


def reports(port: int, count: int, headers: Mapping[str, str] | None = None) -> list[list[load.Request]]:
    """Reports of ``count`` new runs per connection, one run after the other; they are started with ``headers``."""
    rng = random.Random(0)
    connection, sent = HTTPConnection("127.0.0.1", port), {"content-type": "application/json", **(headers or {})}

    def run() -> list[load.Request]:
        connection.request("POST", "/runs", b'{"workload": "bench"}', sent)
        identifier = json.load(connection.getresponse())["id"]
        return [("PUT", f"/runs/{identifier}/iterations/{n}", _report(rng)) for n in range(ITERATIONS)]

    return [[request for _ in range(count) for request in run()] for _ in range(CONNECTIONS)]


def _report(rng: random.Random) -> str:
    report = {
        "allocation": {"gpus": rng.randint(1, 16)},
        "metrics": {"iteration_seconds": round(rng.uniform(5, 60), 3)},
        "features": {"batch": rng.randint(1, 512)},
    }
    return json.dumps(report, separators=(",", ":"))


def _measure(port: int, requests: list[list[load.Request]], circle: bool = True) -> Measured:
    measured = load.run(Plan(port, SECONDS, requests, circle), LOAD_CORE)
    if measured.odd:
        raise RuntimeError(f"{measured.statuses}: {measured.odd}")
    return measured


def _turns(yardstick: int, sqlite: int, postgres: int | None) -> dict[str, list[Measured]]:
    """What each server answers, turn by turn: right after one another, as the machine's pace changes, to and fro."""
    runs = 1 + int((SECONDS + 0.5) * 9_000 / CONNECTIONS / ITERATIONS)
    databases = {"sqlite": sqlite} | ({} if postgres is None else {"postgresql": postgres})
    measured: dict[str, list[Measured]] = {name: [] for name in ("empty", "get", *databases)}
    for turn in range(TURNS):
        values = {"empty": (yardstick, states("/empty"), True), "get": (sqlite, states("/decision"), True)}
        values |= {name: (port, reports(port, runs), False) for name, port in databases.items()}
        for name, (port, requests, circle) in list(values.items())[:: -1 if turn % 2 else 1]:
            measured[name].append(_measure(port, requests, circle))
    return measured


def _row(name: str, measured: Sequence[Measured], peer: Sequence[Measured], goal: float) -> Row:
    ratios = [m.rate / p.rate for m, p in zip(measured, peer, strict=True)]
    low, high = interval(ratios)
    return {
        "name": f"{name} (95 %: {low:.2f} to {high:.2f} x, {len(ratios)} turns)",
        "value": round(statistics.median(m.rate for m in measured)),
        "unit": "1/s",
        "peer": "empty FastAPI endpoint with the same parameters",
        "peer_value": round(statistics.median(m.rate for m in peer)),
        "ratio": round(statistics.median(ratios), 2),
        "goal": f">= {goal:g} x",
    }


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median lies by 95 %, by a sign test."""
    ordered = sorted(values)
    outer = max(0, int((len(ordered) - 1.96 * len(ordered) ** 0.5) / 2) - 1)
    return ordered[outer], ordered[-1 - outer]


def _latency(name: str, measured: Sequence[Measured], peer: Sequence[Measured], goal: float) -> Row:
    value, other = (statistics.median(m.p99 for m in each) for each in (measured, peer))
    return {
        "name": f"{name} (median {statistics.median(m.p50 for m in measured):.1f} ms)",
        "value": round(value, 1),
        "unit": "ms",
        "peer": "the empty endpoint's",
        "peer_value": round(other, 1),
        "ratio": round(value / other, 2),
        "goal": f"<= {goal:g} ms",
    }


def results() -> list[Row]:
    """Every figure with its peer, ratio and goal."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-")))
        port = free_port()
        yardstick = stack.enter_context(server(["-m", "benchmarks.yardstick", str(port)], port))
        sqlite = stack.enter_context(steward(f"sqlite:///{folder}/steward.db", folder / "sqlite"))
        postgres = None
        if shutil.which("postgres") or Path("/usr/lib/postgresql").exists():
            url = stack.enter_context(postgres_server(durable=True)).url()
            postgres = stack.enter_context(steward(url, folder / "postgresql"))
        measured = _turns(yardstick, sqlite, postgres)
    empty = measured["empty"]
    rows = [_row("GET /decision, full state", measured["get"], empty, 1.5)]
    for name in list(measured)[2:]:
        rows.append(_row(f"PUT iteration, durable, {name}", measured[name], empty, 1.0))
        rows.append(_latency(f"PUT iteration, durable, {name}, p99 at {CONNECTIONS}", measured[name], empty, 15))
    return rows


if __name__ == "__main__":
    for row in results():
        print(row)

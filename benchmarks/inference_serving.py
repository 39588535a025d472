"""How fast requests on servers are decided: carried in the client, a long queue, and over HTTP, durably.

``python -m benchmarks.inference_serving`` — a workload of two users, three variants, four batch sizes and four servers,
with a domain model and a champion network of the usual size. Carried decisions are timed one by one while a loaded
system is played, each with the state that it has then: the policy's answer, the start, and the note of it for the next
report. Over HTTP every report has an arrival and the end of a batch, and is answered with the next start; server and
load are pinned as in ``benchmarks.api_speed``.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.inference.carried import Carried
from app.kinds.inference.decision import InferenceStart
from app.kinds.inference.kind import KIND
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.spec import InferenceSpec
from app.policies.artifact import save
from app.policies.network import NetworkPolicy
from app.workloads import service as workloads
from benchmarks import load
from benchmarks.api_speed import CONNECTIONS, SECONDS, TURNS, Row, _measure, _post, _row, served, server, states
from tests.answers import all_answered
from tests.servers import free_port

DECISIONS, WAITING, REPORTS = 20_000, 1_000, 90
SPEC: dict[str, Any] = {
    "name": "bench",
    "kind": "inference",
    "variants": [
        {"name": "resnet18", "accuracy": 0.698},
        {"name": "resnet50", "accuracy": 0.803},
        {"name": "resnet152", "accuracy": 0.823},
    ],
    "servers": [{"name": "cpu", "minimum": 4, "maximum": 4, "cores": 8}],
    "users": [
        {"name": "shop", "weight": 2, "quality": {"full_until": 0.1, "zero_at": 0.5}},
        {"name": "archive", "quality": {"full_until": 1, "zero_at": 10}},
    ],
    "batches": [1, 2, 4, 8],
    "queue_limit": WAITING,
}
ONE_SERVER = {**SPEC, "servers": [{"name": "cpu", "minimum": 1, "maximum": 1}]}


def model(layout: Layout) -> ServiceModel:
    """Larger variants take longer, and larger batches less than their share."""
    users, variants, _ = layout.shape
    seconds = np.array([0.02, 0.05, 0.12])[:, None] * (0.6 + 0.4 * layout.batches)
    log_seconds = np.broadcast_to(np.log(seconds), (16, len(layout.servers), *seconds.shape))
    measured = np.ones((len(layout.servers), variants), np.bool_)
    return ServiceModel(log_seconds, np.full(variants, 0.05), np.ones((users, 1)), np.zeros(users), measured)


def network(layout: Layout, width: int = 64) -> bytes:
    """A dueling network of two hidden layers with small random weights, which starts a batch whenever it may."""
    rng, actions = np.random.default_rng(0), layout.actions
    sizes = [len(layout.entries), width, width]
    shapes = {f"trunk.{i}": (sizes[i + 1], sizes[i]) for i in range(2)}
    shapes |= {"advantage": (actions, width), "value": (1, width)}
    arrays: dict[str, Any] = {}
    for name, shape in shapes.items():
        arrays[f"{name}.weight"] = rng.normal(0, 0.05, shape).astype(np.float32)
        arrays[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    arrays["advantage.bias"][WAIT] = -9.0
    config = {"algorithm": "dueling_double_dqn", "layers": [width] * 2, "activation": "relu", "dueling": True}
    policy = NetworkPolicy.build({**config, "advice": None}, arrays)
    return save(policy, "inference", layout.entries, actions, {})


def carried_seconds(decisions: int = DECISIONS) -> list[float]:
    """Seconds of each call that decided one start, in a system under load."""
    layout = Layout(InferenceSpec.model_validate(SPEC))
    expected = {"cpu": dict(zip(layout.variants, model(layout).seconds()[0].tolist(), strict=True))}
    run, rng, now = Carried(SPEC, {"default": network(layout)}, expected), np.random.default_rng(1), 0.0
    ends, took = dict[str, float](), list[float]()
    while len(took) < decisions:
        coming = now + float(rng.exponential(0.01))
        server = min(ends, key=lambda name: ends[name], default="")
        if server and ends[server] <= coming:
            now = ends.pop(server)
            run.finished(server, now)
        else:
            now = coming
            run.arrived("shop" if rng.random() < 0.6 else "archive", now)
        before = time.perf_counter()
        starts = run.decide(now).start
        elapsed = time.perf_counter() - before
        ends |= {one.server: now + 0.04 for one in starts}
        took += [elapsed] if len(starts) == 1 else []
        if run.full:
            run.report()
    return took


def queue_seconds(repeats: int = 200) -> list[float]:
    """Seconds of an answer while ``WAITING`` requests wait and all four servers got free: read, decided, encoded."""
    spec = InferenceSpec.model_validate(SPEC)
    layout, engine, now = KIND.layout(spec), KIND.engine, datetime(2026, 1, 1, tzinfo=UTC)
    artifact = KIND.artifact(network(layout))
    on = engine.compile(Snapshot("w", "bench", 1, spec, layout, model(layout), 1, 1, artifact, 1))
    state = engine.begin(on, "r", InferenceStart(workload="bench"), now).state
    arrived = [{"user": ("shop", "archive")[i % 2], "id": f"r{i}", "at": 0.0001 * i} for i in range(WAITING)]

    def answer(state: Any, report: dict[str, Any]) -> Any:
        read = engine.read(on, state, 0, engine.decode(json.dumps(report).encode()))
        return all_answered(engine.answer(on, [Pending("r", 0, state, read, {}, None)], now))[0].state

    state = answer(state, {"at": 0.2, "arrived": arrived})
    report = {"at": 0.21, "finished": [{"server": f"cpu-{i}", "at": 0.21} for i in range(4)]}
    took = []
    for _ in range(repeats):
        before = time.perf_counter()
        after = answer(state, report)
        engine.serialise(after)
        took.append(time.perf_counter() - before)
    return took


@contextmanager
def steward(folder: Path) -> Iterator[int]:
    """A Steward with one server's workload, its model and champion; gives its port."""
    url = f"sqlite:///{folder}/steward.db"
    with served(folder, STEWARD_DATABASE_URL=url) as port:
        _post(port, "/workloads", ONE_SERVER)
        layout, database = Layout(InferenceSpec.model_validate(ONE_SERVER)), Database(url)
        with database.session() as session:
            workload = workloads.require(session, "default", "bench")
            domain_models.publish(session, workload.id, 1, {"family": "none"}, model(layout).to_bytes())
            trained = TrainingResult(1, 1, "dqn", 0, {"algorithm": "dqn"}, network(layout), True, "as said")
            agents.publish(session, workload.id, trained)
        database.dispose()
        time.sleep(1.5)  # the API looks for a new champion twice a second
        yield port


def reports(port: int, count: int) -> list[list[load.Request]]:
    """Reports of ``count`` new runs per connection, one run after the other: a request, and the end of a batch."""
    connection = HTTPConnection("127.0.0.1", port)

    def run() -> list[load.Request]:
        connection.request("POST", "/runs", b'{"workload": "bench"}', {"content-type": "application/json"})
        identifier = json.load(connection.getresponse())["id"]
        return [("PUT", f"/runs/{identifier}/iterations/{n}", _report(n)) for n in range(REPORTS)]

    return [[request for _ in range(count) for request in run()] for _ in range(CONNECTIONS)]


def _report(n: int) -> str:
    report: dict[str, Any] = {"at": 0.1 * n, "arrived": [{"user": ("shop", "archive")[n % 2], "at": 0.1 * n}]}
    if n:
        report["finished"] = [{"server": "cpu-0", "at": 0.1 * n}]
    return json.dumps(report, separators=(",", ":"))


def _limit(name: str, value: float, unit: str, goal: float) -> Row:
    row = {"name": name, "value": round(value, 2), "unit": unit, "peer": "", "peer_value": None}
    return {**row, "ratio": round(value / goal, 2), "goal": f"<= {goal:g} {unit}"}


def results() -> list[Row]:
    """Every figure with its peer, ratio and goal."""
    took, queue = np.array(carried_seconds()), np.array(queue_seconds())
    rows = [
        _limit("carried decision, median", float(np.median(took)) * 1e6, "µs", 50),
        _limit(f"{WAITING:,} waiting, 4 servers free, median", float(np.median(queue)) * 1e3, "ms", 5),
    ]
    rows[0]["p99"] = round(float(np.quantile(took, 0.99)) * 1e6, 1)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-")))
        port = free_port()
        stack.enter_context(server(["-m", "benchmarks.yardstick", str(port)], port))
        served = stack.enter_context(steward(folder))
        runs = 1 + int((SECONDS + 0.5) * 6_000 / CONNECTIONS / REPORTS)
        empty, measured = list[load.Measured](), list[load.Measured]()
        for _ in range(TURNS):
            empty.append(_measure(port, states("/empty")))
            measured.append(_measure(served, reports(served, runs), circle=False))
    rows.append(_row("PUT events, decided and durable, sqlite", measured, empty, 0.7))
    spread = [round(one.rate / other.rate, 2) for one, other in zip(measured, empty, strict=True)]
    rows[-1]["ratios"] = sorted(spread)
    rows[-1]["p99_ms"] = round(statistics.median(one.p99 for one in measured), 1)
    return rows


if __name__ == "__main__":
    for row in results():
        print(row)

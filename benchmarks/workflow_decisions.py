"""How long a queue of thousands of tasks takes to be decided, beside a plain sort and scan.

    python -m benchmarks workflow_decisions

Of each case are told, in milliseconds (median of the thread's own time, so that neighbours on the machine do
not count):

- *decide*: from the state to placements, orders of nodes and the numbers of the reason;
- *answer*: the same with the encoded decision, its reason in words;
- *report*: all that a delta report of 50 new and 50 ended tasks costs besides the disk: reading its JSON, checking and
  advancing the state, deciding, encoding decision and state;
- *whole*: the same for a report that lists every task;
- *plain*: a peer that sorts the queue by its estimates and scans it once, starting what fits (no reservation, no
  limits, no reason, no state), in plain Python.

*agent* is the scheduler that comes with the package. It is asked over HTTP too: a durable report of 50 new and 50 ended
tasks, from the client's side, on a server with one process and SQLite (wall clock: no neighbours, please).
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.contract.kind import RunStart
from app.kinds.engine import RunMemory
from app.kinds.registry import layout_of, read_spec
from app.kinds.workflow.decide import Compiled
from app.kinds.workflow.engine import ENGINE
from app.kinds.workflow.queue import WAITING, State
from app.kinds.workflow.scheduling.decide import decide
from app.kinds.workflow.scheduling.situation import QueueSituation
from app.main import tune_garbage_collection
from benchmarks.api_speed import served
from tests.answers import all_answered

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POOL: dict[str, Any] = {"nodes": [{"name": "pool", "processors": 4096, "minimum": 1, "maximum": 1}]}
CLOUD: dict[str, Any] = {
    "nodes": [
        {"name": "small", "processors": 16, "memory_gb": 64, "price_per_hour": 0.5, "maximum": 200, "minimum": 100},
        {"name": "large", "processors": 64, "memory_gb": 256, "price_per_hour": 1.9, "speed": 1.3, "maximum": 50},
    ]
}

LEAST_TASKS, REPEATS, GOAL = 5_000, 15, 20.0
REPORTS, HTTP_GOAL = 40, 25.0
Row = dict[str, Any]


def compiled(name: str, **spec: Any) -> Compiled:
    """A workload without any agent."""
    read = read_spec({"name": name, "kind": "workflow", **spec})
    snapshot = Snapshot(
        workload_id=name,
        name=name,
        spec_version=1,
        spec=read,
        layout=layout_of(read),
        model=None,
        model_version=None,
        agent_version=None,
        artifact=None,
        revision=1,
    )
    pattern: Compiled = ENGINE.compile(snapshot)
    return pattern


def queue(tasks: int, largest: int, *, linked: bool, seed: int = 0) -> list[dict[str, Any]]:
    """Tasks as a log has them: widths are powers of two, estimates log-uniform; ``linked``: chains of ten."""
    rng = np.random.default_rng(seed)
    widths = 2 ** rng.integers(0, int(np.log2(largest)) + 1, tasks)
    estimates = np.exp(rng.uniform(np.log(60), np.log(86_400), tasks))
    return [
        {
            "id": f"t{i}",
            "processors": int(widths[i]),
            "estimate": float(estimates[i]),
            "submit": float(i),
            "user": f"u{i % 100}",
            "memory_gb": 1.0,
            **({"parents": [f"t{i - 1}"], "workflow": f"w{i // 10}"} if linked and i % 10 else {}),
        }
        for i in range(tasks)
    ]


def reported(on: Compiled, memory: RunMemory, report: dict[str, Any]) -> tuple[bytes, RunMemory]:
    """A report all the way, but for the disk."""
    read = ENGINE.read(on, memory, 0, ENGINE.decode(msgspec.json.encode(report)))
    [answered] = all_answered(ENGINE.answer(on, [Pending("run", 1, memory, read, {}, None)], NOW))
    ENGINE.serialise(answered.state)
    return answered.decision, answered.state


def busy(on: Compiled, tasks: int, *, linked: bool) -> RunMemory:
    """A state in which the nodes are full, and so many tasks wait."""
    largest = int(on.layout.nodes.processors.max())
    now = float(2 * tasks)
    state = ENGINE.begin(on, "run", RunStart(workload="w"), NOW).state
    decision, state = reported(on, state, {"now": now, "queued": queue(tasks + tasks // 5, largest, linked=linked)})
    placed = msgspec.json.decode(decision)["placements"]
    running = [{"id": one["task"], "node": one["node"], "start": one["start"]} for one in placed]
    return reported(on, state, {"now": now + 1, "delta": True, "running": running})[1]


def whole(state: State, on: Compiled) -> dict[str, Any]:
    """A report that lists every task of a state."""
    names, where = state.queue.names, state.queue.node.tolist()
    waits = [
        {"id": name, "processors": int(p), "estimate": float(e), "submit": float(s), "user": u, "memory_gb": 1.0}
        for name, p, e, s, u, node in zip(
            names,
            state.queue.processors,
            state.queue.estimate,
            state.queue.submit,
            state.queue.users,
            where,
            strict=True,
        )
        if node == WAITING
    ]
    runs = [
        {"id": name, "node": on.layout.names[node], "start": float(start)}
        for name, node, start in zip(names, where, state.queue.start, strict=True)
        if node != WAITING
    ]
    return {"now": state.now + 1, "queued": waits, "running": runs}


def delta(state: State) -> dict[str, Any]:
    """Fifty tasks come, fifty end."""
    runs = [name for name, node in zip(state.queue.names, state.queue.node, strict=True) if node != WAITING][:50]
    new = [{"id": f"n{i}", "processors": 1, "estimate": 600.0, "user": "u1"} for i in range(50)]
    ended = [{"id": name, "end": state.now} for name in runs]
    return {"now": state.now + 1, "delta": True, "queued": new, "finished": ended}


def plain(state: State, free: int) -> list[str]:
    """Sort by estimate, scan once, start what fits."""
    queue, started = state.queue, []
    rows = [row for row, node in enumerate(queue.node.tolist()) if node == WAITING]
    need, length = queue.processors.tolist(), queue.estimate.tolist()
    for row in sorted(rows, key=length.__getitem__):
        if need[row] <= free:
            free -= need[row]
            started.append(queue.names[row])
    return started


def timed(call: Callable[[], object]) -> float:
    """Median of the thread's own time, milliseconds."""
    taken = []
    for _ in range(REPEATS + 2):
        begun = time.thread_time()
        call()
        taken.append(1e3 * (time.thread_time() - begun))
    return float(np.median(taken[2:]))


def measured(on: Compiled, memory: RunMemory) -> dict[str, float]:
    """Milliseconds of each part."""
    state: State = memory.state
    some, every = delta(state), whole(state, on)
    choose, free = on.chooser(on.agent), int(on.layout.nodes.processors.sum()) // 10
    read = ENGINE.read(on, memory, 1, ENGINE.decode(msgspec.json.encode(some)))
    request = [Pending("run", 1, memory, read, {}, None)]
    return {
        "decide": timed(lambda: decide(QueueSituation(on.layout, state), choose)),
        "answer": timed(lambda: ENGINE.answer(on, request, NOW)),
        "report": timed(lambda: reported(on, memory, some)),
        "whole": timed(lambda: reported(on, memory, every)),
        "plain": timed(lambda: plain(state, free)),
    }


CASES: list[tuple[str, dict[str, Any], str, str, bool]] = [
    ("pool", POOL, "fcfs", "easy", False),
    ("pool", POOL, "sjf", "easy", False),
    ("pool", POOL, "f1", "rls", False),
    ("pool", POOL, "wfp3", "none", False),
    ("pool", POOL, "sjf", "conservative", False),
    ("pool", POOL, "agent", "easy", False),
    ("pool", POOL, "agent", "rls", False),
    ("250 nodes", CLOUD, "sjf", "easy", False),
    ("250 nodes", CLOUD, "f4", "conservative", False),
    ("250 nodes", CLOUD, "heft", "easy", True),
    ("250 nodes", CLOUD, "cheapest", "easy", True),
    ("250 nodes", CLOUD, "cpop", "easy", True),
    ("250 nodes", CLOUD, "peft", "easy", True),
]


def results() -> list[Row]:
    """One row a case: the decision, beside the plain peer; garbage is collected as the service does it."""
    tune_garbage_collection()
    return [*(_row(*case) for case in CASES), over_http()]


def over_http() -> Row:
    """What a client waits for its answer while thousands of tasks wait, milliseconds."""
    spec = {"name": "bench", "kind": "workflow", "strategy": "agent", "backfilling": "easy", **POOL}
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder, served(Path(folder)) as port:
        connection = HTTPConnection("127.0.0.1", port)
        put(connection, "POST", "/workloads", spec)
        target = f"/runs/{put(connection, 'POST', '/runs', {'workload': 'bench'})[1]['id']}/iterations/"
        now, tasks = float(2 * LEAST_TASKS), queue(LEAST_TASKS + LEAST_TASKS // 5, 4096, linked=False)
        decision = put(connection, "PUT", f"{target}0", {"now": now, "queued": tasks})[1]
        taken: list[float] = []
        runs: list[str] = []
        for iteration in range(1, REPORTS + 1):
            placed = decision["placements"]
            started = [{"id": one["task"], "node": one["node"], "start": one["start"]} for one in placed]
            new = [{"id": f"n{iteration}-{i}", "processors": 1, "estimate": 600.0, "user": "u1"} for i in range(50)]
            ended = [{"id": name, "end": now + 60 * iteration} for name in runs[:50]]
            report = {"now": now + 60 * iteration, "running": started, "queued": new, "finished": ended}
            seconds, decision = put(connection, "PUT", f"{target}{iteration}", report | {"delta": True})
            runs = [*runs[50:], *(one["id"] for one in started)]
            taken.append(1e3 * seconds)
    median, longest = float(np.median(taken)), max(taken)
    return {
        "name": f"over HTTP: pool, agent + easy, at least {LEAST_TASKS:,} tasks wait (longest {longest:.1f} ms)",
        "value": median,
        "unit": "ms",
        "goal": f"< {HTTP_GOAL:g} ms, the longest too: {'met' if longest < HTTP_GOAL else 'missed'}",
    }


def put(connection: HTTPConnection, method: str, target: str, content: Any) -> tuple[float, Any]:
    """Seconds until the answer is there, and the answer."""
    data = json.dumps(content).encode()
    begun = time.perf_counter()
    connection.request(method, target, data, {"content-type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    seconds = time.perf_counter() - begun
    if answer.status != 201:
        raise RuntimeError(f"{method} {target}: {answer.status} {body.decode()}")
    return seconds, json.loads(body)


def _row(nodes: str, part: dict[str, Any], strategy: str, backfilling: str, linked: bool) -> Row:
    on = compiled("bench", strategy=strategy, backfilling=backfilling, **part)
    selection = busy(on, LEAST_TASKS, linked=linked)
    result, waiting = measured(on, selection), int((selection.state.queue.node == WAITING).sum())
    parts = ", ".join(f"{name} {result[name]:.1f}" for name in ("answer", "report", "whole"))
    return {
        "name": f"{nodes}, {strategy} + {backfilling}, {waiting:,} tasks wait ({parts} ms)",
        "value": result["decide"],
        "unit": "ms",
        "peer": "sort and scan, no reservation or reason",
        "peer_value": result["plain"],
        "ratio": result["decide"] / result["plain"],
        "goal": f"< {GOAL:g} ms: {'met' if result['decide'] < GOAL else 'missed'}",
    }


if __name__ == "__main__":
    for row in results():
        print(f"{row['name']:110} {row['value']:7.1f} ms  {row['goal']}")

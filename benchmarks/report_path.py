"""How long the way of a report is: functions and files of ``app`` that one PUT crosses, and what deciding costs.

``python -m benchmarks.report_path`` — one report of a run in its steady state (everything cached, the same allocation
again), over HTTP to a server in this process; functions are counted once each, on the event loop's thread and on the
writer's, comprehensions not at all. Deciding is ``Engine.answer`` for reports of 1, 16 and 64 runs, in
processor time, the best of ``REPEATS``; see ``benchmarks.api_speed`` for the workload.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from app.cli.server.serve import configuration
from app.database.base import utc_now
from app.database.engine import Database
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.iterative import policies
from app.kinds.iterative.kind import KIND
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import Spec
from app.settings import Settings
from benchmarks.api_speed import SPEC, Row, ernest_table, network, publish
from migrations.runner import upgrade
from tests.answers import all_answered
from tests.servers import free_port, wait_until

APP = str(Path(__file__).parent.parent / "app")
THREADS = ("event-loop", "report-writer")
WARM_UP = 8
BATCHES, REPEATS = (1, 16, 64), 40
MOST_FUNCTIONS, MOST_FILES = 58, 15
REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 19.5}, "features": {"batch": 64}}


def crossed() -> set[tuple[str, str]]:
    """File and function of everything in ``app`` that one report crosses."""
    parts: set[tuple[str, str]] = set()
    counting = threading.Event()

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not counting.is_set() or not threading.current_thread().name.startswith(THREADS):
            return
        if code.co_filename.startswith(APP) and not code.co_name.startswith("<"):
            parts.add((code.co_filename, f"{code.co_name}:{code.co_firstlineno}"))

    threading.setprofile(count)
    try:
        with _server() as connection:
            run = _ask(connection, "POST", "/runs", {"workload": SPEC["name"]})["id"]
            for iteration in range(WARM_UP + 1):
                if iteration == WARM_UP:
                    counting.set()
                _ask(connection, "PUT", f"/runs/{run}/iterations/{iteration}", REPORT)
                time.sleep(0.05)  # what follows the answer belongs to it
            counting.clear()
    finally:
        threading.setprofile(None)
    return parts


@contextmanager
def _server() -> Iterator[HTTPConnection]:
    """A connection to a server in a thread of this process, with the workload, a model and a champion."""
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
        url, port = f"sqlite:///{folder}/steward.db", free_port()
        upgrade(url)
        settings = Settings(database_url=url, port=port)
        server = uvicorn.Server(configuration(settings, Database(url, settings)))
        thread = threading.Thread(target=server.run, name="event-loop")
        thread.start()
        wait_until(lambda: server.started, what="the server to start")
        connection = HTTPConnection("127.0.0.1", port)
        _ask(connection, "POST", "/workloads", SPEC)
        publish(url, SPEC["name"])
        time.sleep(1.5)  # the API looks for a new champion twice a second
        yield connection
        connection.close()
        server.should_exit = True
        thread.join()


def _ask(connection: HTTPConnection, method: str, path: str, body: object) -> Any:
    connection.request(method, path, json.dumps(body).encode(), {"content-type": "application/json"})
    answer = connection.getresponse()
    content = json.load(answer)
    if answer.status != 201:
        raise RuntimeError(f"{method} {path}: {answer.status} {content}")
    return content


def seconds_to_answer(batch: int) -> float:
    """Processor seconds of one call of ``answer`` for ``batch`` runs."""
    layout = Layout(Spec.model_validate(SPEC))
    champion = policies.load(policies.save(network(layout), layout))
    snapshot = Snapshot("w", SPEC["name"], 1, layout.spec, layout, ernest_table(layout), 1, 1, champion, 1)
    engine, now = KIND.engine, utc_now()
    compiled, start = engine.compile(snapshot), KIND.start(workload=SPEC["name"])
    states = [engine.begin(compiled, str(run), start, now).state for run in range(batch)]
    report = engine.read(compiled, states[0], 0, engine.decode(json.dumps(REPORT).encode()))
    best = float("inf")
    for iteration in range(REPEATS):
        pending = [Pending(str(run), iteration, state, report, {}, None) for run, state in enumerate(states)]
        begun = time.process_time()
        answers = engine.answer(compiled, pending, now)
        best = min(best, time.process_time() - begun)
        states = [answer.state for answer in all_answered(answers)]
    return best


def results() -> list[Row]:
    """Every figure; what deciding costs depends on the machine, and has no goal of its own."""
    parts = crossed()
    files = {file for file, _ in parts}
    return [
        _row("functions", len(parts), "", MOST_FUNCTIONS),
        _row("files", len(files), "", MOST_FILES),
        *(_row(f"deciding for {n}", round(1e6 * seconds_to_answer(n)), "us", None) for n in BATCHES),
    ]


def _row(name: str, value: int, unit: str, goal: int | None) -> Row:
    return {
        "name": f"PUT iteration, {name}",
        "value": value,
        "unit": unit,
        "peer": "",
        "peer_value": None,
        "ratio": round(value / goal, 2) if goal else None,
        "goal": f"<= {goal}" if goal else "",
    }


if __name__ == "__main__":
    for row in results():
        sys.stdout.write(f"{row}\n")

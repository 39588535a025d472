"""What a durable report costs: processor time of the server's process per answer, against the empty endpoint.

``python -m benchmarks.report_cost`` — the empty FastAPI endpoint and a Steward on each database take turns under the
same closed load of ``CONNECTIONS`` connections; what each process used, on all its threads, is divided by its answers.
Processor time is what bounds throughput on a core, and other processes of the machine hardly enter it. What PostgreSQL
uses in its own processes is not counted. Workloads of kinds ``iterative`` and ``inference`` as in
``benchmarks.api_speed`` and ``benchmarks.inference_serving``.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks import api_speed, inference_serving, load
from benchmarks.api_speed import CONNECTIONS, ITERATIONS, Row
from benchmarks.footprint import listening
from tests.servers import free_port, postgres_server

TURNS, SECONDS = 7, 2.0
FASTEST = 9_000  # answers a second that one core gives at most

Requests = list[list[load.Request]]


class Subject(NamedTuple):
    """A server under load: what is asked of it next, in a circle or once."""

    name: str
    port: int
    requests: Callable[[], Requests]
    circle: bool


def microseconds(subject: Subject, process: psutil.Process) -> float:
    """Processor time per answer, of a process and its children."""
    requests = subject.requests()
    before = _used(process)
    measured = load.run(load.Plan(subject.port, SECONDS, requests, subject.circle, warm_up=0.0), api_speed.LOAD_CORE)
    if measured.odd:
        raise RuntimeError(f"{subject.name}: {measured.statuses}: {measured.odd}")
    return 1e6 * (_used(process) - before) / measured.answers


def _used(process: psutil.Process) -> float:
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


@contextmanager
def subjects() -> Iterator[list[Subject]]:
    """The empty endpoint first."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-")))
        port = free_port()
        stack.enter_context(api_speed.server(["-m", "benchmarks.yardstick", str(port)], port))
        states = api_speed.states("/empty")
        matches = [Subject("empty", port, lambda: states, circle=True)]
        urls = {"sqlite": f"sqlite:///{folder}/steward.db"}
        urls["postgresql"] = stack.enter_context(postgres_server(durable=True)).url()
        for name, url in urls.items():
            server = stack.enter_context(api_speed.steward(url, folder / name))
            ask = _reports(api_speed.reports, server)
            matches.append(Subject(f"PUT iteration, durable, {name}", server, ask, circle=False))
        server = stack.enter_context(inference_serving.steward(folder / "inference"))
        ask = _reports(inference_serving.reports, server)
        matches.append(Subject("PUT events, decided and durable, sqlite", server, ask, circle=False))
        yield matches


def _reports(of: Callable[[int, int], Requests], port: int) -> Callable[[], Requests]:
    count = 1 + int(SECONDS * FASTEST / CONNECTIONS / ITERATIONS)
    return lambda: of(port, count)


def results(turns: int = TURNS) -> list[Row]:
    """Every figure with its peer and ratio."""
    with subjects() as result:
        processes = [listening(subject.port) for subject in result]
        pairs = list(zip(result, processes, strict=True))
        taken = [[microseconds(subject, process) for subject, process in pairs] for _ in range(turns)]
    columns = list(zip(*taken, strict=True))
    return [_row(subject.name, column, columns[0]) for subject, column in zip(result[1:], columns[1:], strict=True)]


def _row(name: str, taken: Sequence[float], empty: Sequence[float]) -> Row:
    ratios = sorted(one / other for one, other in zip(taken, empty, strict=True))
    spread = f"ratio {ratios[1]:.2f} to {ratios[-2]:.2f} over {len(ratios)} turns, loaded"
    row: dict[str, Any] = {
        "name": f"{name}: processor time ({spread})",
        "value": round(statistics.median(taken), 1),
        "unit": "us an answer",
        "peer": "empty FastAPI endpoint with the parameters of GET /decision",
        "peer_value": round(statistics.median(empty), 1),
        "ratio": round(statistics.median(ratios), 2),
        "goal": "<= 1 x",
    }
    return row


if __name__ == "__main__":
    for row in results():
        print(row)

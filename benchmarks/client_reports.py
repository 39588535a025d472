"""What a report costs the thread of a training loop: the client's background sender, beside a plain put by httpx.

``python -m benchmarks.client_reports`` - a real server (``steward serve``) on this machine, epochs of ``EPOCH_SECONDS``
that sleep; timed is all that the loop does between one epoch and the next, ``WARM_UP`` epochs left out: processor time
of the loop's thread, and wall time. The peer puts the same reports to the same server over one kept connection, and
waits for the answers as its caller would. Reports of both are checked to be stored. ``waits`` is the client with its
default, which waits a hundredth of an epoch for the decision on it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import steward_client as steward

from tests.batched import SPEC
from tests.servers import start_steward

Row = dict[str, Any]
Spent = tuple[float, float]
EPOCHS, WARM_UP, EPOCH_SECONDS = 600, 20, 0.02
GOAL_SECONDS = 0.001
FEATURES = {"batch": 64.0}


def spent(steps: Iterator[Any]) -> list[Spent]:
    """Processor and wall seconds of this thread for each step, without the first ones and the last."""
    costs: list[Spent] = []
    while True:
        processor, wall = time.thread_time(), time.perf_counter()
        if next(steps, None) is None:
            return costs[WARM_UP:]
        costs.append((time.thread_time() - processor, time.perf_counter() - wall))
        time.sleep(EPOCH_SECONDS)


def by_client(url: str, wait_share: float) -> list[Spent]:
    """Epochs of ``steward.run``."""
    with steward.run(str(SPEC["name"]), url) as run:
        by_client = spent(_epochs(run, wait_share))
    _check(url, run.id)
    return by_client


def _epochs(run: steward.EpochRun, wait_share: float) -> Iterator[steward.Epoch]:
    for epoch in run.epochs(EPOCHS, wait_share=wait_share):
        epoch.describe(**FEATURES)
        yield epoch


def by_put(url: str) -> list[Spent]:
    """The same by a put that is waited for."""
    with httpx.Client(base_url=url) as http:
        started = http.post("/runs", json={"workload": SPEC["name"]}).raise_for_status().json()
        by_put = spent(_puts(http, started))
        http.patch(f"/runs/{started['id']}", json={"state": "finished"}).raise_for_status()
    _check(url, started["id"])
    return by_put


def _puts(http: httpx.Client, started: dict[str, Any]) -> Iterator[dict[str, Any]]:
    decision = started["decision"]
    for iteration in range(EPOCHS):
        metrics = {"iteration_seconds": EPOCH_SECONDS}
        report = {"allocation": decision["allocation"], "metrics": metrics, "features": FEATURES}
        answer = http.put(f"/runs/{started['id']}/iterations/{iteration}", json=report)
        decision = answer.raise_for_status().json()
        yield decision


def _check(url: str, run: str) -> None:
    stored = httpx.get(f"{url}/runs/{run}").raise_for_status().json()
    if (stored["state"], stored["iterations"]) != ("finished", EPOCHS):
        raise RuntimeError(f"run {run}: {stored['iterations']} of {EPOCHS} reports are stored, {stored['state']}")


def results() -> list[Row]:
    """Rows for the results."""
    ways: dict[str, Callable[[str], list[Spent]]] = {
        "reports": lambda url: by_client(url, 0.0),
        "waits": lambda url: by_client(url, 0.01),
        "put": by_put,
    }
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
        server = start_steward(Path(folder), "--workers", "0", wait="alive")
        try:
            spec = {**SPEC, "iterations": EPOCHS}
            httpx.post(f"{server.url}/workloads", json=spec).raise_for_status()
            result = {name: np.array(way(server.url)) for name, way in ways.items()}
        finally:
            server.stop()
    peer = result.pop("put")
    return [row for name, own in result.items() for row in _rows(name, own, peer)]


def _rows(name: str, own: np.ndarray[Any, Any], peer: np.ndarray[Any, Any]) -> Iterator[Row]:
    message = "a report" if name == "reports" else "a report, and waiting for its decision"
    for column, time_of in enumerate(("processor time", "wall time")):
        for part, at in (("median", 50), ("p99", 99)):
            value, other = (float(np.percentile(times[:, column], at)) * 1e3 for times in (own, peer))
            goal = f"at most {GOAL_SECONDS * 1e3:g} ms" if name == "reports" and part == "p99" else None
            yield {
                "name": f"{message} on the caller's thread, {time_of}, {part}",
                "value": value,
                "unit": "ms",
                "peer": "httpx put",
                "peer_value": other,
                "ratio": value / other,
                "goal": goal,
            }


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("client_reports", results())

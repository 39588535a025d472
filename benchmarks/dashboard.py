"""What the dashboard's pages take the server with 10,000 runs and a million iterations stored: wall and processor time.

``python -m benchmarks.dashboard [--runs 10000] [--iterations 100]`` fills a database (SQLite) and asks for each page
twenty times over one connection, after one time that fills caches. Processor time is the serving process's own.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from http.client import HTTPConnection
from pathlib import Path

import psutil

from app.database.engine import Database
from app.database.tables import Run
from benchmarks.api_speed import SPEC, Row, publish
from benchmarks.api_speed import _post as post
from benchmarks.years import _full, _json, _made, _timed, fill
from migrations.runner import upgrade
from tests.servers import start_steward

RUNS, EACH, TIMES = 10_000, 100, 20
GOAL_SECONDS = 0.3


def results(runs: int = RUNS, each: int = EACH) -> list[Row]:
    """A row for each page."""
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as name:
        url = f"sqlite:///{name}/steward.db"
        upgrade(url)
        server = start_steward(Path(name), "--workers", "0", wait="alive", database_url=url)
        try:
            port = int(server.url.rpartition(":")[2])
            post(port, "/workloads", SPEC)
            publish(url, SPEC["name"])
            _timed(HTTPConnection("127.0.0.1", port), "PUT", f"/runs/{_made(port)}/iterations/0", _json(_full()))
            fill(url, runs, each)
            label = f"{runs:,} runs, {runs * each:,} iterations"
            return [_row(page, path, port, server.process.pid, label) for page, path in _pages(url).items()]
        finally:
            server.stop()


def _pages(url: str) -> dict[str, str]:
    database = Database(url)
    with database.reading() as session:
        run, *others = (row.id for row in session.query(Run.id).filter(Run.state == "finished").limit(5))
    database.dispose()
    workload = f"/ui/workloads/{SPEC['name']}"
    paths = {"workload": workload, "agent": f"{workload}/agents/1", "run": f"/ui/runs/{run}"}
    lists = {
        "runs": "/ui/runs",
        "failed runs": f"/ui/runs?workload={SPEC['name']}&state=failed",
        "dearest runs": "/ui/runs?sort=-cost",
        "runs of three outcomes": "/ui/runs?outcome=failed&outcome=missed&outcome=at_risk",
        "runs by an id": f"/ui/runs?search={run[:8]}",
        "jobs": "/ui/jobs",
    }
    compared = "&".join(f"run={one}" for one in (run, *others))
    return {"home": "/", **paths, **lists, "comparison of five runs": f"/ui/compare?{compared}"}


def _row(page: str, path: str, port: int, pid: int, label: str) -> Row:
    connection, process = HTTPConnection("127.0.0.1", port), psutil.Process(pid)
    _timed(connection, "GET", path, b"")
    before = process.cpu_times()
    seconds = [_timed(connection, "GET", path, b"") for _ in range(TIMES)]
    after = process.cpu_times()
    used = (after.user + after.system - before.user - before.system) / TIMES
    wall = statistics.median(seconds)
    more = f"processor time {used * 1e3:.0f} ms, slowest {max(seconds) * 1e3:.0f} ms"
    return {
        "name": f"{page}, median of {TIMES}, {label}; {more}",
        "value": round(wall * 1e3, 1),
        "unit": "ms",
        "peer": "",
        "peer_value": None,
        "ratio": round(wall / GOAL_SECONDS, 2),
        "goal": f"≤ {GOAL_SECONDS * 1e3:g} ms",
    }


def main() -> None:
    """Print the figures of a size of one's own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--iterations", type=int, default=EACH)
    options = parser.parse_args()
    for row in results(options.runs, options.iterations):
        print(f"{row['name']:110} {row['value']:>8} {row['unit']} {row['goal']}")


if __name__ == "__main__":
    main()

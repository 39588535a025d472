"""What it costs to tell of every request: processor time of an answer with a line for each, against the same without.

``python -m benchmarks.request_log`` — two servers of the same code and data on one core, one of which writes a JSON
line to a file for each request that it answers, with its decision, take turns under the same load; the processor time
that each used is divided by its answers. On SQLite, with keys.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.api_speed import Row
from benchmarks.authentication import ROOT, Server, answers, in_turns, prepare
from tests.servers import clean_environment, free_port, stop, wait_until

GOAL = 0.02


def serve(port: int, folder: Path) -> None:
    """The server process; what it tells, its environment says."""
    import uvicorn

    from app.cli.server.api import configuration
    from app.database.engine import Database
    from app.settings import Settings
    from app.telemetry import logs

    settings = Settings(port=port, data_dir=folder)
    logs.configure(settings)
    uvicorn.Server(configuration(settings, Database(settings.database_url, settings))).run()


@contextmanager
def running(folder: Path, *, telling: bool) -> Iterator[Server]:
    """A server on a core of its own."""
    headers, port = prepare(folder), free_port()
    command = ["taskset", "-c", "0", sys.executable, "-m", "benchmarks.request_log", "serve", str(port), str(folder)]
    wanted = {"STEWARD_LOG_FORMAT": "json", "STEWARD_LOG_REQUESTS": str(telling).lower()}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=clean_environment(wanted), cwd=ROOT, stderr=log)
        try:
            wait_until(lambda: answers(port), 120, "the server to answer")
            time.sleep(1.0)
            yield Server(port, process, headers)
        finally:
            stop(process)


def results() -> list[Row]:
    """Every figure with its peer, ratio and goal."""
    return in_turns(lambda folder, on: running(folder, telling=on), "a line for each request", GOAL)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        for row in results():
            print(row)

"""What it costs to tell of every request: processor time of an answer with a line for each, against the same without.

``python -m benchmarks.request_log`` — one of two servers writes a JSON line to a file for each request that it answers,
with its decision (`benchmarks.side_by_side`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.api_speed import Row
from benchmarks.side_by_side import Server, prepare, running, side_by_side
from tests.servers import clean_environment, free_port

GOAL = 0.02


def serve(port: int, folder: Path) -> None:
    """The server process; what it tells, its environment says."""
    import uvicorn

    from app.cli.server.serve import configuration
    from app.database.engine import Database
    from app.settings import Settings
    from app.telemetry import logs

    settings = Settings(port=port, data_dir=folder)
    logs.configure(settings)
    uvicorn.Server(configuration(settings, Database(settings.database_url, settings))).run()


@contextmanager
def start_server(folder: Path, telling: bool) -> Iterator[Server]:
    """A server that tells of each request, or one that doesn't."""
    headers, port = prepare(folder), free_port()
    command = [sys.executable, "-m", "benchmarks.request_log", "serve", str(port), str(folder)]
    wanted = {"STEWARD_LOG_FORMAT": "json", "STEWARD_LOG_REQUESTS": str(telling).lower()}
    with (
        (folder / "log").open("wb") as log,
        running(port, headers, command, env=clean_environment(wanted), stderr=log) as server,
    ):
        yield server


def results() -> list[Row]:
    """Every figure with its peer, ratio and goal."""
    return side_by_side(start_server, "a line for each request", GOAL)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        for row in results():
            print(row)

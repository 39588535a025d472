"""What it costs to know who calls: processor time of an answer with keys, against the same without any guard.

``python -m benchmarks.authentication`` — one of two servers asks for a key, the other's gateway lets everybody in
unseen (`benchmarks.side_by_side`). Both look for new and revoked keys every so often; what that takes of a core
under load is measured on two open servers, with and without it, and added.
"""

from __future__ import annotations

import statistics
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from app.database.engine import Database
from app.settings import Settings
from benchmarks.api_speed import Row, interval
from benchmarks.side_by_side import Server, both, prepare, running, side_by_side
from tests.callers import Open
from tests.servers import clean_environment, free_port

GOAL = 0.05


def serve(port: int, folder: Path, sort: str) -> None:
    """The server process: ``guarded``, ``open``, or ``blind``, which is open and looks for no keys."""
    import uvicorn

    from app.cli.server.serve import configuration

    settings = Settings(port=port, data_dir=folder)
    config = configuration(settings, Database(settings.database_url, settings))
    gateway: Any = config.app
    if sort != "guarded":
        gateway.guard = Open()
    if sort == "blind":
        gateway.app.state.keys.poll = _nothing
    uvicorn.Server(config).run()


async def _nothing() -> None:
    """In place of looking for keys."""


def start_server(folder: Path, sort: str) -> AbstractContextManager[Server]:
    """A server of that sort."""
    headers, port = prepare(folder), free_port()
    command = [sys.executable, "-m", "benchmarks.authentication", "serve", str(port), str(folder), sort]
    return running(port, headers, command, env=clean_environment({}))


def looking() -> list[float]:
    """What looking for keys takes of a core while decisions are asked for, turn by turn."""
    with both(lambda folder, on: start_server(folder, "open" if on else "blind")) as turns:
        return [(turn.each[0] - turn.each[1]) / 1e6 / turn.wall for turn in turns(Server.decisions)]


def results() -> list[Row]:
    """Every figure with its peer, ratio and goal."""
    rows = side_by_side(lambda folder, on: start_server(folder, "guarded" if on else "open"), "a guard", GOAL)
    shares = looking()
    share, (low, high) = statistics.median(shares), interval(shares)
    text = f"; and {share:.1%} of a core to look for keys (95 %: {low:.1%} to {high:.1%})"
    return [{**row, "name": row["name"] + text, "ratio": round(row["ratio"] + share, 3)} for row in rows]


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
    else:
        for row in results():
            print(row)

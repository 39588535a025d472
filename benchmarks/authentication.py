"""What it costs to know who calls: processor time of an answer with keys, against the same without any guard.

``python -m benchmarks.authentication`` — one of two servers asks for a key, the other's gateway lets everybody in
unseen (`benchmarks.side_by_side`). Both look for new and revoked keys twice a second; what that takes of a core is
measured on servers at rest, with and without it, and added.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from starlette.types import Scope

from app.database.engine import Database
from app.http.caller import ANYBODY, Caller
from app.settings import Settings
from benchmarks.api_speed import Row
from benchmarks.side_by_side import Server, prepare, running, side_by_side
from tests.servers import clean_environment, free_port

GOAL = 0.05
IDLE_SECONDS = 20.0


class Unguarded:
    """Lets everybody in."""

    def recognised(self, scope: Scope, route: str | None) -> Caller:  # noqa: ARG002 - the protocol's signature
        """Whoever it is."""
        return ANYBODY

    async def admit(self, scope: Scope, route: str | None) -> Caller:  # noqa: ARG002 - the protocol's signature
        """Whoever it is."""
        return ANYBODY


def serve(port: int, folder: Path, sort: str) -> None:
    """The server process: ``guarded``, ``open``, or ``blind``, which is open and looks for no keys."""
    import uvicorn

    from app.cli.server.api import configuration

    settings = Settings(port=port, data_dir=folder)
    config = configuration(settings, Database(settings.database_url, settings))
    gateway: Any = config.app
    if sort != "guarded":
        gateway.guard = Unguarded()
    if sort == "blind":
        gateway.app.state.keys.poll = _nothing
    uvicorn.Server(config).run()


async def _nothing() -> None:
    """In place of looking for keys."""


def made(folder: Path, sort: str) -> AbstractContextManager[Server]:
    """A server of that sort."""
    headers, port = prepare(folder), free_port()
    command = [sys.executable, "-m", "benchmarks.authentication", "serve", str(port), str(folder), sort]
    return running(port, headers, command, env=clean_environment({}))


def looking() -> float:
    """What looking for keys takes of a core."""
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder, ExitStack() as stack:
        servers = [stack.enter_context(made(Path(folder) / sort, sort)) for sort in ("open", "blind")]
        before = [server.used() for server in servers]
        time.sleep(IDLE_SECONDS)
        taken, less = (server.used() - was for server, was in zip(servers, before, strict=True))
    return (taken - less) / IDLE_SECONDS / 1e6


def results() -> list[Row]:
    """Every figure with its peer, ratio and goal."""
    rows = side_by_side(lambda folder, on: made(folder, "guarded" if on else "open"), "a guard", GOAL)
    share = looking()
    told = f"; with {share:.1%} of a core that looking for keys takes"
    return [{**row, "name": row["name"] + told, "ratio": round(row["ratio"] + share, 3)} for row in rows]


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
    else:
        for row in results():
            print(row)

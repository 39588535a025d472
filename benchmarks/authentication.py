"""What it costs to know who calls: processor time of an answer with keys, against the same without any guard.

``python -m benchmarks.authentication`` — one of two servers asks for a key, the other's gateway lets everybody in
unseen and looks for no keys (`benchmarks.side_by_side`).
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
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


class Unguarded:
    """Lets everybody in."""

    def recognised(self, scope: Scope, route: str | None) -> Caller:  # noqa: ARG002 - the protocol's signature
        """Whoever it is."""
        return ANYBODY

    async def admit(self, scope: Scope, route: str | None) -> Caller:  # noqa: ARG002 - the protocol's signature
        """Whoever it is."""
        return ANYBODY


def serve(port: int, folder: Path, guarded: bool) -> None:
    """The server process."""
    import uvicorn

    from app.cli.server.api import configuration

    settings = Settings(port=port, data_dir=folder)
    config = configuration(settings, Database(settings.database_url, settings))
    if not guarded:
        gateway: Any = config.app
        gateway.guard, gateway.app.state.keys.poll = Unguarded(), _nothing
    uvicorn.Server(config).run()


async def _nothing() -> None:
    """In place of looking for new keys every so often."""


def made(folder: Path, guarded: bool) -> AbstractContextManager[Server]:
    """A server that asks for a key, or one that doesn't."""
    headers, port = prepare(folder), free_port()
    module = ["-m", "benchmarks.authentication", "serve"]
    command = [sys.executable, *module, str(port), str(folder), "guarded" if guarded else "open"]
    return running(port, headers, command, env=clean_environment({}))


def results() -> list[Row]:
    """Every figure with its peer, ratio and goal."""
    return side_by_side(made, "a guard", GOAL)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4] == "guarded")
    else:
        for row in results():
            print(row)

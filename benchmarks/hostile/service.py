"""The service in this process, called as a server would call it, on a SQLite database of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from migrations.runner import upgrade

PIECE = 1 << 16


class Answer(NamedTuple):
    """Status and body of an answer."""

    status: int
    body: bytes

    def json(self) -> Any:
        """What it says."""
        return json.loads(self.body)


class Service:
    """The application; one request at a time.

    Args:
        folder: for its data.
    """

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(data_dir=folder, database_url=f"sqlite:///{folder / 'steward.db'}")
        upgrade(self.settings.database_url)
        self.database = Database(self.settings.database_url, self.settings)
        self.app = create_app(self.settings, self.database)
        self.loop = asyncio.new_event_loop()

    def close(self) -> None:
        """End it."""
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.database.dispose()

    def call(self, method: str, address: str, content: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request; gives what is answered."""
        return self.loop.run_until_complete(self._call(method, address, content, headers or {}))

    async def _call(self, method: str, address: str, content: bytes, headers: Mapping[str, str]) -> Answer:
        path, _, query = address.partition("?")
        sent = {"host": "localhost", "content-length": str(len(content)), **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        exchange = _Exchange(content)
        await self.app(scope, exchange.receive, exchange.send)
        return Answer(exchange.status, bytes(exchange.body))


class _Exchange:
    """A client that sends a body in pieces, and stays until it is answered."""

    def __init__(self, content: bytes) -> None:
        self._pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)] or [b""]
        self.status, self.body = 0, bytearray()

    async def receive(self) -> dict[str, Any]:
        if not self._pieces:
            await asyncio.Event().wait()
        piece = self._pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")

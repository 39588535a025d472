"""Routes for what is asked thousands of times a second: an exchange in, encoded JSON out, without the framework.

Layers of validation and dependency injection each cost more than a decision does. A hot endpoint reads its `Exchange`
by itself, raises the same errors as any other, and has its entry in the schema written beside it. All else (limits,
time, errors, metering) is `Gateway`'s, for these routes as for the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.http.browsers import Headers
from app.http.exchange import Exchange


class Answer(NamedTuple):
    """What a hot endpoint answers: JSON that is encoded already."""

    status: int
    body: bytes
    headers: Headers = ()


Endpoint = Callable[[Exchange], Awaitable[Answer]]


class HotRoute(Route):
    """What `Gateway` serves by itself. The router knows it too, and answers its other methods."""

    def __init__(self, path: str, endpoint: Endpoint, method: str) -> None:
        super().__init__(path, self._elsewhere, methods=[method])
        self.endpoint, self.method = endpoint, method

    async def _elsewhere(self, request: Request) -> Response:
        raise RuntimeError(f"{request.method} {self.path} is served by the gateway")

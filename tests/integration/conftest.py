"""Fixtures of tests against real services."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.integration.caller import Caller
from tests.servers import StewardServer

Call = Callable[[StewardServer], Caller]


@pytest.fixture
def call() -> Iterator[Call]:
    """Callers of services; their connections are closed after the test."""
    callers: list[Caller] = []

    def make(server: StewardServer) -> Caller:
        callers.append(Caller(server.url))
        return callers[-1]

    yield make
    for caller in callers:
        caller.http.close()

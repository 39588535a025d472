"""Fixtures of tests against real services."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.integration.caller import WORKLOAD, Caller
from tests.servers import StewardServer

Call = Callable[..., Caller]


@pytest.fixture
def call() -> Iterator[Call]:
    """Callers of services: `call(server)`, `call(server, "a workload")`; they are closed after the test."""
    callers: list[Caller] = []

    def make(server: StewardServer, workload: str = WORKLOAD) -> Caller:
        callers.append(Caller(server.url, workload))
        return callers[-1]

    yield make
    for caller in callers:
        caller.http.close()

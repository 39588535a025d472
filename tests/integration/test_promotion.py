"""A promotion through one API process is obeyed by another within a second, without a restart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from app.database.engine import Database
from tests.app.domain_models.published import publish_agent, publish_model
from tests.batched import SPEC as EXAMPLE
from tests.servers import StewardServer

STATE = "iteration=3&allocation=gpus:4&metric=iteration_seconds:31.5&feature=batch:128"


def call(server: StewardServer, method: str, path: str, body: object = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = Request(server.url + path, data, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=10) as answer:
        result: dict[str, Any] = json.load(answer)
    return result


def agent(server: StewardServer) -> int | None:
    """The agent that answers a decision, None for a heuristic."""
    count: int | None = call(server, "GET", f"/decision?workload=resnet18&{STATE}")["agent"]
    return count


def seconds_until(server: StewardServer, expected: int | None) -> float:
    begun = time.monotonic()
    while agent(server) != expected:
        assert time.monotonic() - begun < 10, f"agent {expected} doesn't answer"
        time.sleep(0.02)
    return time.monotonic() - begun


@pytest.mark.slow
def test_every_process_obeys_a_promotion_within_a_second(
    steward_factory: Callable[..., StewardServer], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    first, second = (steward_factory(folder, "--workers", "0", wait="alive") for _ in range(2))
    call(first, "POST", "/workloads", EXAMPLE)
    database = Database(f"sqlite:///{folder / 'steward.db'}")
    publish_model(database, "resnet18")
    publish_agent(database, "resnet18")
    database.dispose()
    assert (agent(first), agent(second)) == (None, None)
    for verb, expected in (("promote", 1), ("rollback", None)):
        call(first, "POST", f"/workloads/resnet18/agents/1/{verb}")
        waited = max(seconds_until(server, expected) for server in (second, first))
        assert waited < 1.0

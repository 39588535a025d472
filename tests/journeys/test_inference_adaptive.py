"""An agent that adapts, over HTTP: asked for, refused where it can't be, trained, judged, and answering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app.kinds.inference.example import EXAMPLE
from tests.journeys.test_outside_kind import Caller
from tests.servers import StewardServer, wait_until

AGENTS = "/workloads/vision/agents"


@pytest.mark.slow
def test_an_adaptive_agent_goes_all_the_way(steward_factory: Callable[..., StewardServer]) -> None:
    server = steward_factory()
    with httpx.Client(base_url=server.url, timeout=120) as client:
        walk(Caller(client))


def walk(call: Caller) -> None:
    """Fit, train, promote, serve."""
    call("POST", "/workloads", 201, json={**EXAMPLE.spec, "episode_seconds": 20, "control_seconds": 5})
    upload: dict[str, Any] = {"content": EXAMPLE.samples["application/x-ndjson"]}
    call("POST", "/workloads/vision/samples", 201, headers={"Content-Type": "application/x-ndjson"}, **upload)
    call.job("/workloads/vision/models", {})
    for field, value in (("seeds", 3), ("executor", "processes"), ("start_from", 1)):
        refused = call("POST", AGENTS, 422, json={"algorithm": "grbal", field: value})
        assert refused["errors"][0]["pointer"] == f"/{field}"
    call.job(AGENTS, {"algorithm": "grbal", "budget": 1_000})
    report = call("GET", f"{AGENTS}/1")["report"]
    assert report["algorithm"] == "grbal"
    assert "lookahead" in report["heuristics"]
    call("POST", f"{AGENTS}/1/promote", 200, json={})
    wait_until(lambda: served(call)["source"] == "agent", 30, "the agent to answer")
    assert served(call)["policy"] == "grbal"


def served(call: Caller) -> Any:
    """The last decision of a run."""
    run = call("POST", "/runs", 201, json={"workload": "vision"})["id"]
    for number, report in enumerate(EXAMPLE.reports):
        decision = call("PUT", f"/runs/{run}/iterations/{number}", 201, json=report)
    return decision

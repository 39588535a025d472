"""Agents of users over HTTP: they learn together, are judged and promoted together, decide, and one is carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from steward_client import CarriedRun, Policy

from app.kinds.inference.example import EXAMPLE, SPEC
from app.policies import artifact
from tests.journeys.test_outside_kind import Caller
from tests.servers import StewardServer

FAIR: dict[str, Any] = {**SPEC, "name": "fair", "policies": "per_user", "episode_seconds": 10}
USERS = ("shop", "archive")
AGENTS = "/workloads/fair/agents"


@pytest.mark.slow
def test_users_agents_learn_together_decide_and_are_carried(steward_factory: Callable[..., StewardServer]) -> None:
    server = steward_factory()
    with httpx.Client(base_url=server.url, timeout=120) as client:
        call = Caller(client)
        learn(call)
        decide(call)
        carry(call, server.url)


def learn(call: Caller) -> None:
    """A small training; what it is held against; a policy for each."""
    call("POST", "/workloads", 201, json=FAIR)
    json, body = "application/json", EXAMPLE.samples["application/json"]
    call("POST", "/workloads/fair/samples", 201, content=body, headers={"Content-Type": json})
    call.job("/workloads/fair/models", {})
    refused = call("POST", AGENTS, 422, json={"executor": "processes"})
    assert refused["errors"][0]["pointer"] == "/executor"
    job = call.job(AGENTS, {"algorithm": "ppo", "budget": 4_000})
    report = call("GET", f"{AGENTS}/{job['agent']}")["report"]
    assert report["heuristics"]
    rows = {row["name"]: row["policies"]["agent"] for row in report["outcomes"]}
    for name in ("response_quality", "jain", "quality.shop", "quality.archive"):
        assert 0 <= rows[name]["low"] <= rows[name]["mean"] <= rows[name]["high"] <= 1
    champions = call("GET", "/workloads/fair")["champions"]
    assert champions == (dict.fromkeys(USERS, 1) if report["promoted"] else {})


def decide(call: Caller) -> None:
    """The service asks both, and takes one of their offers."""
    for user in USERS:
        answer = call.client.get(f"{AGENTS}/1/policy", params={"role": user})
        own = artifact.load(answer.content)
        assert (answer.status_code, own.roles) == (200, {})
        assert f"waiting.{user}" in own.observation
        assert not any(f".{other}" in entry for other in USERS if other != user for entry in own.observation)
        call("POST", f"{AGENTS}/1/promote", json={"role": user})
    run = call("POST", "/runs", 201, json={"workload": "fair"})["id"]
    requests = [{"user": user, "at": 0.01} for user in USERS]
    decision = call("PUT", f"/runs/{run}/iterations/0", 201, json={"at": 0.02, "arrived": requests})
    assert (decision["source"], decision["agent"], decision["policy"]) == ("agent", 1, "per_user: ppo")


def carry(call: Caller, url: str) -> None:
    """One user decides in its own process, by its own policy, and tells what it did."""
    policy = Policy.load(url, "fair", role="shop")
    assert list(policy.artifacts) == ["shop"]
    started = 0
    with CarriedRun(url, policy) as run:
        for number in range(30):
            now = 0.5 * number
            run.arrived("shop", now)
            for start in run.decide(now).start:
                assert start.user == "shop"
                started += len(start.requests)
                run.finished(start.server, now + 0.2)
            if number % 10 == 9:
                run.flush()
    assert started > 0
    answer = call("GET", f"/runs/{run.id}")
    assert (answer["state"], answer["decision"]["reason"]["code"]) == ("finished", "carried")
    items = call("GET", "/workloads/fair/samples")["items"]
    assert next(one for one in items if one["execution"] == run.id)["requests"]["count"] == 30

"""``steward_client.CarriedRun``: it decides by itself, and the service keeps the same book of what it reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from steward_client import CarriedRun, Policy, StewardError, Unreachable, carry

from app.kinds.contract.engine import Pending
from app.kinds.contract.inputs import InvalidInput
from app.kinds.engine import RunMemory
from app.kinds.inference.awarding import Client, layouts
from app.kinds.inference.carried import FULL, Carried
from app.kinds.inference.decision import InferenceStart
from app.kinds.inference.example import SPEC
from app.kinds.inference.kind import KIND
from app.kinds.inference.layout import Layout
from app.kinds.inference.queue import RunState
from app.kinds.inference.spec import InferenceSpec
from app.policies.artifact import save
from app.policies.network import NetworkPolicy
from tests.answers import all_answered
from tests.app.kinds.inference.runs import NOW, compiled
from tests.clients.test_run import Clock, Flaky, Handler, clock, forwarded, through

__all__ = ["clock", "forwarded"]


def artifact(layout: Layout | Client, seed: int = 0) -> bytes:
    """A network of chance, which starts something more often than not."""
    rng, entries, actions = np.random.default_rng(seed), len(layout.entries), layout.actions
    bias = rng.normal(size=actions).astype(np.float32)
    bias[0], bias[-1] = -3.0, -9.0  # waits seldom, and turns nothing off
    weight = rng.normal(scale=0.1, size=(actions, entries)).astype(np.float32)
    config = {"algorithm": "dqn", "layers": [], "activation": "relu", "dueling": False}
    policy = NetworkPolicy.build(config, {"advantage.weight": weight, "advantage.bias": bias})
    return save(policy, "inference", layout.entries, actions, {})


def spec() -> InferenceSpec:
    return InferenceSpec.model_validate(SPEC)


def drive(run: Carried | CarriedRun, count: int, seed: int = 0) -> list[str]:
    """Requests come, servers work; names of what was started, in order."""
    rng, now, ends, started = np.random.default_rng(seed), 0.0, dict[str, float](), list[str]()
    for number in range(count):
        now += float(rng.exponential(0.02))
        for server, at in sorted(ends.items(), key=lambda item: item[1]):
            if at <= now:
                run.finished(server, ends.pop(server))
        run.arrived("archive" if rng.random() < 0.4 else "shop", now, f"r{number}" if number % 2 else None)
        todo = run.decide(now)
        for start in todo.start:
            assert start.server not in ends
            ends[start.server] = now + float(rng.exponential(0.05))
            started += start.requests
    return started


def state_of(on: Any, reports: list[dict[str, Any]]) -> RunState:
    """What the service's engine makes of carried reports."""
    engine = KIND.engine
    memory: RunMemory = engine.begin(on, "r", InferenceStart(workload="w", carried=True), NOW).state
    for number, report in enumerate(reports):
        memory = RunMemory(engine.read(on, memory, number, engine.decode(json.dumps(report).encode())).ledger().state())
    state: RunState = memory.state
    return state


@pytest.mark.parametrize("every", [1, 7, 400])
def test_the_service_keeps_the_same_book_whatever_is_reported_at_once(every: int) -> None:
    on = compiled(spec())
    run = Carried(SPEC, {"default": artifact(on.layout)}, on.expected())
    reports = list[dict[str, Any]]()
    rng, now, ends = np.random.default_rng(3), 0.0, dict[str, float]()
    for number in range(400):
        now += float(rng.exponential(0.03)) if number % 5 else 0.0  # several events at one moment
        for server in [server for server, at in ends.items() if at <= now]:
            run.finished(server, now)
            ends.pop(server)
        if rng.random() < 0.02 and ends:
            run.turned(server := next(iter(ends)), "down", now)
            ends.pop(server)
        if rng.random() < 0.05:
            run.turned(f"cpu-{rng.integers(4)}", "up", now)
        run.arrived("shop" if rng.random() < 0.8 else "archive", now)
        ends |= {start.server: now + float(rng.exponential(0.1)) for start in run.decide(now).start}
        if number % every == every - 1:
            reports.append(run.report())
    reports.append(run.report())
    state, own = state_of(on, reports), run._ledger.state()
    assert sum(len(report.get("started", ())) for report in reports) > 50
    assert (state.queues, state.servers, state.requests) == (own.queues, own.servers, own.requests)
    for name in ("rate", "answer_count", "quality"):
        np.testing.assert_allclose(getattr(state, name), getattr(own, name), rtol=1e-9)


def test_it_decides_as_the_service_would() -> None:
    on = compiled(spec(), {"default": KIND.artifact(artifact(Layout(spec())))})
    run = Carried(SPEC, {"default": artifact(on.layout)}, on.expected())
    run.arrived("shop", 0.1, "a")
    run.arrived("archive", 0.1)
    report = {**run.report(), "at": 0.2}
    state = KIND.engine.begin(on, "r", InferenceStart(workload="w"), NOW).state
    read = KIND.engine.read(on, state, 0, KIND.engine.decode(json.dumps(report).encode()))
    [answer] = all_answered(KIND.engine.answer(on, [Pending("r", 0, state, read, {}, None)], NOW))
    answered = json.loads(answer.decision)
    own = run.decide(0.2).start
    assert [(one["server"], one["user"], one["requests"]) for one in answered["start"]] == [
        (one.server, one.user, list(one.requests)) for one in own
    ]
    assert own


@pytest.mark.parametrize(
    ("call", "pointer"),
    [
        (lambda run: run.arrived("nobody", 0.0), "/user"),
        (lambda run: run.finished("cpu-0", 0.0), "/server"),
        (lambda run: run.turned("gpu-0", "up", 0.0), "/server"),
    ],
)
def test_what_can_not_be_is_refused_at_once(call: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        call(Carried(SPEC, {}))
    assert caught.value.errors[0].pointer == pointer


def test_one_user_carries_its_own_policy() -> None:
    wanted = {**SPEC, "policies": "per_user"}
    own = layouts(Layout(InferenceSpec.model_validate(wanted)))
    run = Carried(wanted, {"shop": artifact(own["shop"])}, None, "shop")
    run.arrived("shop", 0.1)
    assert [start.user for start in run.decide(0.1).start] in (["shop"], [])
    with pytest.raises(InvalidInput):
        run.arrived("archive", 0.1)
    with pytest.raises(InvalidInput, match="shop, archive"):
        Carried(wanted, {}, None, "nobody")


@pytest.fixture
def policy(client: TestClient) -> Policy:
    assert client.post("/workloads", json=SPEC).status_code == 201
    return Policy(SPEC, {"default": artifact(Layout(spec()))})


def test_a_policy_is_loaded_from_a_service_or_files(forwarded: Handler, policy: Policy, tmp_path: Path) -> None:
    assert Policy.load(through(forwarded), "vision").artifacts == {}
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    (tmp_path / "policy").write_bytes(policy.artifacts["default"])
    read = Policy.read(tmp_path / "spec.json", tmp_path / "policy")
    assert (read.artifacts, read.spec) == (policy.artifacts, SPEC)
    assert read.carried().policy == "dqn"
    with pytest.raises(StewardError, match="vidion"):
        Policy.load(through(forwarded), "vidion")


@pytest.mark.usefixtures("policy")
def test_a_run_is_carried_by_what_the_service_has(client: TestClient, forwarded: Handler) -> None:
    with carry("vision", through(forwarded)) as run:
        assert drive(run, 5)
    assert client.get(f"/runs/{run.id}").json()["state"] == "finished"


def test_what_was_done_is_reported_once_whatever_gets_lost(
    client: TestClient, forwarded: Handler, policy: Policy, clock: Clock
) -> None:
    flaky = Flaky(forwarded)
    with CarriedRun(through(flaky), policy, retry=clock.retry()) as run:
        started = drive(run, 60)
        flaky.plan = ["lose the answer", "refuse"]
        run.flush()
        started += drive_on(run)
        flaky.plan = ["refuse"] * 100
        with pytest.raises(Unreachable):
            run.flush()
        flaky.plan = []
    items = client.get(f"/runs/{run.id}/iterations?limit=500").json()["items"]
    starts = [start for one in items for start in one["report"]["started"]]
    assert [one["decision"]["start"] for one in items] == [[]] * len(items)
    assert {one["decision"]["reason"]["code"] for one in items} == {"carried"}
    arrived = [event for one in items for event in one["report"]["arrived"]]
    assert len(arrived) == 61
    assert 0 < len(starts) <= len(started)
    assert client.get("/workloads/vision/samples").json()["items"][0]["requests"]["count"] == 61


def drive_on(run: CarriedRun) -> list[str]:
    """One more request, a while later."""
    run.arrived("shop", 1e3)
    return [name for start in run.decide(1e3).start for name in start.requests]


def test_events_are_handed_over_in_reports_of_a_bounded_size(policy: Policy) -> None:
    sizes = list[int]()

    def handler(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        sizes.append(sum(len(part) for part in body.values() if isinstance(part, list)))
        return httpx.Response(200, json={**DECISION, "iteration": len(sizes)})

    run = CarriedRun(through(handler), policy)
    run._carried, run.id = policy.carried(), "r"
    run._decision = run._decode(DECISION)
    for number in range(2 * FULL):
        run.arrived("shop", 0.001 * number)
    run.flush()
    assert sizes == [FULL, FULL]


DECISION: dict[str, Any] = {
    "run": "r", "workload": "vision", "reported": None, "iteration": 0, "noop": True, "source": "heuristic",
    "agent": None, "policy": "carried", "reason": {"code": "carried", "text": "x"}, "valid_for_iterations": 1,
    "decided_at": "2026-01-01T00:00:00Z", "kind": "inference", "at": 0.0, "start": [], "drop": [], "servers": {},
    "wake_at": None, "waiting": {}, "quality": {}, "expected": None, "shadow": None,
}  # fmt: skip

"""Response times, utilisation, drops and cost, from a run's reports and decisions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from app.kinds.contract.views import RunHistory, Step
from app.kinds.inference.views import InferenceViews, Service
from tests.app.kinds.inference.runs import compiled
from tests.app.kinds.inference.workloads import spec

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def step(number: int, report: dict[str, Any], **decision: Any) -> Step:
    decided = {"servers": {"cpu": 2}, "start": [], "drop": [], "waiting": {}, "quality": {}, "at": report["at"]}
    return Step(number, report, decided | decision, NOW)


def start(server: str, user: str, *names: str) -> dict[str, Any]:
    return {"server": server, "user": user, "variant": "v", "requests": [*names]}


STEPS = [
    step(0, {"at": 1.0, "arrived": [{"user": "a", "at": 0.5}, {"user": "b", "id": "x", "at": 1.0}]}),
    step(1, {"at": 1.5, "arrived": [{"user": "a", "at": 1.5}]}, start=[start("cpu-0", "a", "#0")]),
    step(2, {"at": 3.0, "finished": [{"server": "cpu-0", "at": 2.5}]}, start=[start("cpu-1", "b", "x")]),
    step(3, {"at": 4.0, "finished": [{"server": "cpu-1", "at": 4.0}]}, drop=[{"user": "a", "requests": ["#2"]}]),
    step(4, {"at": 5.0}, servers={"cpu": 1}),
]


def test_requests_are_followed_from_arrival_to_answer() -> None:
    service = Service(STEPS)
    assert service.answered == [(2.5, 2.0, "a"), (4.0, 3.0, "b")]
    assert service.busy == [(1.5, 2.5), (3.0, 4.0)]
    assert service.dropped == 1
    assert service.cost({"cpu": 3600.0}) == pytest.approx(8.0)  # two servers for four seconds
    assert service.utilisation(1.0, 2.0) == [(1.0, 0.25), (3.0, 0.25)]
    assert service.percentiles(1.0, 4.0) == {"p50": [(1.0, 2.5)], "p95": [(1.0, 2.95)], "p99": [(1.0, 2.99)]}


def test_a_client_that_decides_starts_the_oldest_requests() -> None:
    arrived = [{"user": "a", "at": 0.1 * n} for n in range(3)]
    begun = [{"server": "cpu-0", "user": "a", "variant": "v", "batch": 2, "at": 0.3}]
    ends = [{"server": "cpu-0", "at": 1.0}]
    service = Service(
        [step(0, {"at": 0.4, "arrived": arrived, "started": begun}), step(1, {"at": 1.0, "finished": ends})]
    )
    assert [(at, user) for at, _, user in service.answered] == [(1.0, "a"), (1.0, "a")]
    assert [seconds for _, seconds, _ in service.answered] == pytest.approx([1.0, 0.9])


def test_a_page_tells_percentiles_throughput_and_cost() -> None:
    history = RunHistory({}, {}, None, len(STEPS), STEPS, 1)
    facts = {fact.name: (fact.value, fact.hint) for fact in InferenceViews().facts(compiled(spec()), history)}
    assert facts["response time"] == ("2.5 s / 2.95 s / 2.99 s", "p50 / p95 / p99")
    assert facts["throughput"] == ("0.5 requests/s", "answered")
    assert facts["utilisation"] == ("25 %", "of the servers on")
    assert facts["dropped"] == ("1", "33.3 %")
    titles = [figure.title for figure in InferenceViews().run(compiled(spec()), history)]
    assert {"Response time", "Arrivals", "Requests by variant", "Utilisation"} <= set(titles)
    part = history._replace(every=3)
    assert "response time" not in {fact.name for fact in InferenceViews().facts(compiled(spec()), part)}
    assert "Response time" not in [figure.title for figure in InferenceViews().run(compiled(spec()), part)]

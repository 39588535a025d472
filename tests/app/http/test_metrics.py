"""Metrics of decisions and champions: by source for every kind, and of a tenant's own."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Agent
from app.http.health import RequestMeter, TenantCollector
from app.kinds.registry import KINDS
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model


def sources(client: TestClient) -> Counter[tuple[str, bool]]:
    """Decisions so far, by source and whether an agent is promoted."""
    series = r'^steward_decisions_total\{promoted="(true|false)",source="(\w+)"\} (\S+)'
    matches = re.findall(series, client.get("/metrics").text, re.MULTILINE)
    assert {source for _, source, _ in matches} == {"agent", "heuristic", "guard", "fallback"}
    return Counter({(source, promoted == "true"): int(float(number)) for promoted, source, number in matches})


@pytest.mark.parametrize("kind", KINDS)
def test_each_decision_on_a_report_is_counted_once_by_its_own_source(client: TestClient, kind: str) -> None:
    example, before = KINDS[kind].example, sources(client)
    workload = client.post("/workloads", json=dict(example.spec)).json()["name"]
    runs = [client.post("/runs", json={"workload": workload, **example.start}).json()["id"] for _ in range(2)]
    counts = Counter[tuple[str, bool]]()
    for number, report in enumerate(example.reports):
        for run in runs:
            answer = client.put(f"/runs/{run}/iterations/{number}", json=dict(report))
            assert answer.status_code == 201, answer.text
            counts[answer.json()["source"], answer.json()["agent"] is not None] += 1
            again = client.put(f"/runs/{run}/iterations/{number}", json=dict(report))
            assert again.status_code == 200  # repeated, and not counted again
    assert counts.total() == 2 * len(example.reports)
    assert sources(client) - before == counts


def gauge(database: Database, tenant: str, name: str) -> Metric:
    return next(one for one in TenantCollector(database, tenant).collect() if one.name == name)


@on_both
def test_champions_are_as_old_as_their_agents(client: TestClient, spec: dict[str, Any], backend: Database) -> None:
    for name in ("resnet18", "other", "unserved"):
        assert client.post("/workloads", json={**spec, "name": name}).status_code == 201
    for name, days in (("resnet18", 3), ("other", 100)):
        publish_model(backend, name)
        for version in (1, 2):
            publish_agent(backend, name, promote=version == 1)
        with backend.session() as session:
            for agent in session.query(Agent).all():
                if agent.created_at > utc_now() - timedelta(days=1) and agent.version == 1:
                    agent.created_at = utc_now() - timedelta(days=days)

    def ages(tenant: str) -> dict[str, float]:
        family = gauge(backend, tenant, "steward_champion_age_seconds")
        return {f"{one.labels['workload']} {one.labels['role']}": one.value / 86_400 for one in family.samples}

    assert ages("default") == {
        "resnet18 default": pytest.approx(3, abs=0.01),
        "other default": pytest.approx(100, abs=0.01),
    }
    assert ages("another") == {}
    assert 'steward_champion_age_seconds{role="default",workload="other"}' in client.get("/metrics").text


def test_the_lowest_probability_of_each_workload_is_told(
    client: TestClient, spec: dict[str, Any], backend: Database
) -> None:
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
    chances = dict[str, list[float]]()
    for name in ("resnet18", "other"):
        client.post("/workloads", json={**spec, "name": name})
        publish_model(backend, name)
        for seconds in (90, 100_000):
            start = {"workload": name, "targets": {"iteration_seconds": seconds}}
            run = client.post("/runs", json=start).json()["id"]
            answer = client.put(f"/runs/{run}/iterations/0", json=report).json()["chances"]
            chances.setdefault(name, []).append(answer["iteration_seconds"])
    gone = client.post("/runs", json={"workload": "other", "targets": {"iteration_seconds": 1}}).json()["id"]
    client.put(f"/runs/{gone}/iterations/0", json=report)
    client.patch(f"/runs/{gone}", json={"state": "cancelled"})

    def lowest_of(tenant: str) -> dict[str, float]:
        family = gauge(backend, tenant, "steward_target_probability")
        return {one.labels["workload"]: one.value for one in family.samples}

    assert lowest_of("default") == {name: min(values) for name, values in chances.items()}
    assert lowest_of("another") == {}
    assert min(chances["other"]) < max(chances["other"])


def test_what_the_guard_does_to_the_built_in_heuristic_is_not_counted_as_an_agents(
    client: TestClient, spec: dict[str, Any], database: Database
) -> None:
    meter = RequestMeter(CollectorRegistry())
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 20.0}, "features": {"batch": 128}}
    for name in ("heuristic", "served"):
        assert client.post("/workloads", json={**spec, "name": name}).status_code == 201
        publish_model(database, name)
        if name == "served":
            publish_agent(database, name, promote=True)
        run = client.post("/runs", json={"workload": name}).json()["id"]
        body = client.put(f"/runs/{run}/iterations/0", json=report).content
        guarded = re.sub(rb'"source":"\w+"', b'"source":"guard"', body, count=1)
        for _ in range(3 if name == "served" else 2):
            meter.count("PUT", "/", 201, 0.001, guarded)
    (counted,) = (family for family in meter.collect() if family.name == "steward_decisions")
    result = {(one.labels["source"], one.labels["promoted"]): one.value for one in counted.samples}
    assert {labels: number for labels, number in result.items() if number} == {
        ("guard", "false"): 2,
        ("guard", "true"): 3,
    }

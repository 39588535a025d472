"""What runs saved, in the API, in sums by month and in metrics: on both databases, two workloads, two tenants."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Iteration, Run
from app.http.health import ServiceCollector
from app.runs.outcomes import Staleness
from app.settings import Settings
from tests.app.both import on_both
from tests.app.domain_models.published import publish_model
from tests.app.runs.test_outcomes import ended, started

PRICE = 36.0
SPEC: dict[str, Any] = {
    "resources": [{"name": "gpus", "minimum": 1, "maximum": 8, "price_per_hour": PRICE}],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 100, "scope": "run"}],
    "iterations": 4,
}


@pytest.fixture
def two(client: TestClient, backend: Database) -> tuple[str, str]:
    """Two workloads, the first with a model by which seconds double with each of the gpus."""
    for name in ("modelled", "unknown"):
        assert client.post("/workloads", json={"name": name, **SPEC}).status_code == 201
    publish_model(backend, "modelled")
    return "modelled", "unknown"


def finished(client: TestClient, workload: str, gpus: int, seconds: float, **start: Any) -> dict[str, Any]:
    run = started(client, workload, **start)
    for number in range(4):
        body = {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": seconds}}
        assert client.put(f"/runs/{run}/iterations/{number}", json=body).status_code == 201
    return ended(client, run)


@on_both
def test_a_finished_run_says_what_it_saved(client: TestClient, two: tuple[str, str]) -> None:
    modelled, unknown = two
    found = finished(client, modelled, 2, 20.0)
    saved = found["savings"]
    assert saved == client.get(f"/runs/{found['id']}").json()["savings"]
    cost = 80 * 2 * PRICE / 3600
    assert (saved["iterations"], saved["seconds"], saved["cost"]) == (4, 80.0, pytest.approx(cost))
    assert saved["largest"]["allocation"] == {"gpus": 8.0}
    assert saved["largest"]["seconds"]["value"] == pytest.approx(80 * 2**6)
    assert saved["largest"]["saved"]["value"] == pytest.approx((2**6 * 4 - 1) * cost)
    assert saved["largest"]["meets_targets"] == 0.0
    assert saved["best_fixed"]["allocation"] == {"gpus": 1.0}
    assert saved["best_fixed"]["saved"]["value"] == pytest.approx(cost / 4 - cost)
    assert saved["best_fixed"]["meets_targets"] == 1.0
    assert saved["advised"] is None
    assert finished(client, unknown, 2, 20.0)["savings"] is None
    again = client.patch(f"/runs/{found['id']}", json={"state": "finished"}).json()
    assert again["savings"] == saved


@on_both
def test_nothing_is_said_of_runs_that_failed_or_have_lost_reports(
    client: TestClient, backend: Database, two: tuple[str, str]
) -> None:
    run = started(client, two[0])
    assert client.get(f"/runs/{run}").json()["savings"] is None
    assert ended(client, run, "failed")["savings"] is None
    cut = started(client, two[0])
    for number in range(2):
        body = {"allocation": {"gpus": 2}, "metrics": {"iteration_seconds": 20.0}}
        assert client.put(f"/runs/{cut}/iterations/{number}", json=body).status_code == 201
    with backend.session() as session:
        session.delete(session.get_one(Iteration, (cut, 0)))
        session.get_one(Run, cut).kept_from = 1
    assert ended(client, cut)["savings"] is None


@on_both
def test_months_are_summed_by_mode(client: TestClient, backend: Database, two: tuple[str, str]) -> None:
    modelled, unknown = two
    runs = [finished(client, modelled, gpus, 20.0) for gpus in (2, 4)]
    missed = finished(client, modelled, 4, 50.0)
    advised = finished(client, modelled, 8, 20.0, mode="advise")
    finished(client, unknown, 2, 20.0)
    with backend.session() as session:
        session.get_one(Run, missed["id"]).finished_at = utc_now().replace(year=2025, month=3, day=31)
    found = client.get(f"/workloads/{modelled}/savings").json()
    assert found["workload"] == modelled
    now = utc_now().strftime("%Y-%m")
    keys = [(one["month"], one["mode"], one["runs"], one["met"]) for one in found["months"]]
    assert keys == [(now, "advise", 1, 1), (now, "control", 2, 2), ("2025-03", "control", 1, 0)]
    told, control, _ = found["months"]
    for course in ("largest", "best_fixed"):
        expected = sum(one["savings"][course]["saved"]["value"] for one in runs)
        assert control[course]["value"] == pytest.approx(expected)
        assert control[course]["low"] is None  # this model has no members
    assert control["advised"] is None
    assert told["advised"]["value"] == pytest.approx(advised["savings"]["advised"]["saved"]["value"])
    assert told["advised"]["value"] < 0  # fewer gpus would have done
    assert advised["savings"]["advised"]["meets_targets"] == 1.0
    assert client.get(f"/workloads/{unknown}/savings").json()["months"] == []
    assert client.get("/workloads/nowhere/savings").status_code == 404


@on_both
def test_the_metric_sums_what_was_applied(
    client: TestClient, backend: Database, settings: Settings, two: tuple[str, str]
) -> None:
    run = finished(client, two[0], 2, 20.0)
    finished(client, two[0], 8, 20.0, mode="advise")
    collector = ServiceCollector(backend, settings, lambda: Staleness.of(settings))
    (metric,) = [one for one in collector.collect() if one.name == "steward_saved_cost"]
    found = {sample.labels["against"]: sample.value for sample in metric.samples}
    assert found == {
        course: pytest.approx(run["savings"][course]["saved"]["value"]) for course in ("largest", "best_fixed")
    }


def test_a_mode_is_control_or_advise(client: TestClient, two: tuple[str, str]) -> None:
    refused = client.post("/runs", json={"workload": two[0], "mode": "watch"})
    assert refused.status_code == 422
    assert "'control' or 'advise'" in refused.text
    run = started(client, two[0], mode="advise")
    assert client.get(f"/runs/{run}").json()["start"] == {"mode": "advise"}

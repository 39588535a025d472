"""What runs saved, in the API, in sums by month and in metrics: on both databases, two workloads."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.dashboard.repository import targets
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import DomainModel, Iteration, Run, Workload
from app.drift.repository import runs
from app.http.health import TenantCollector
from app.kinds.iterative.model import ModelTable
from app.runs.logs import logged_runs
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
    result = finished(client, modelled, 2, 20.0)
    saved = result["savings"]
    assert saved == client.get(f"/runs/{result['id']}").json()["savings"]
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
    again = client.patch(f"/runs/{result['id']}", json={"state": "finished"}).json()
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
    now = utc_now().strftime("%Y-%m")
    ended_now = [finished(client, modelled, gpus, 20.0) for gpus in (2, 4)]
    missed = finished(client, modelled, 4, 50.0)
    advised = finished(client, modelled, 8, 20.0, mode="advise")
    finished(client, unknown, 2, 20.0)
    ancient = finished(client, modelled, 4, 20.0)
    before = utc_now().replace(day=15) - timedelta(days=400)
    with backend.session() as session:
        session.get_one(Run, missed["id"]).finished_at = before
        session.get_one(Run, ancient["id"]).finished_at = before - timedelta(days=365)  # over 24 months
    body = client.get(f"/workloads/{modelled}/savings").json()
    assert body["workload"] == modelled
    keys = [(one["month"], one["mode"], one["runs"], one["met"]) for one in body["months"]]
    assert keys == [(now, "advise", 1, 1), (now, "control", 2, 2), (before.strftime("%Y-%m"), "control", 1, 0)]
    result, control, _ = body["months"]
    for course in ("largest", "best_fixed"):
        expected = sum(one["savings"][course]["saved"]["value"] for one in ended_now)
        assert control[course]["value"] == pytest.approx(expected)
        assert control[course]["low"] is None  # this model has no members
    assert control["advised"] is None
    assert result["advised"]["value"] == pytest.approx(advised["savings"]["advised"]["saved"]["value"])
    assert (result["advised_runs"], control["advised_runs"]) == (1, 0)
    assert result["advised"]["value"] < 0  # fewer gpus would have done
    assert advised["savings"]["advised"]["meets_targets"] == 1.0
    assert client.get(f"/workloads/{unknown}/savings").json()["months"] == []
    assert client.get("/workloads/nowhere/savings").status_code == 404


@on_both
def test_the_metric_sums_what_a_tenants_own_runs_applied_within_the_hour(
    client: TestClient, backend: Database, two: tuple[str, str]
) -> None:
    run = finished(client, two[0], 2, 20.0)
    finished(client, two[0], 8, 20.0, mode="advise")
    old = finished(client, two[0], 4, 20.0)
    with backend.session() as session:
        session.get_one(Run, old["id"]).finished_at = utc_now() - timedelta(hours=2)
    expected = {course: pytest.approx(run["savings"][course]["saved"]["value"]) for course in ("largest", "best_fixed")}
    assert saved_costs(backend, "default") == expected
    assert saved_costs(backend, "another") == {"largest": 0.0, "best_fixed": 0.0}
    assert 'steward_saved_cost{against="largest"}' in client.get("/metrics").text


def saved_costs(backend: Database, tenant: str) -> dict[str, float]:
    metric, *_ = TenantCollector(backend, tenant).collect()
    return {sample.labels["against"]: sample.value for sample in metric.samples}


@on_both
def test_what_was_not_measured_is_left_out_of_every_sum_and_counted(
    client: TestClient, backend: Database, two: tuple[str, str]
) -> None:
    modelled, other = two
    known = [finished(client, modelled, gpus, 20.0) for gpus in (2, 4)]
    narrow(backend, modelled)
    unknown, there = finished(client, modelled, 2, 20.0), finished(client, modelled, 8, 20.0)
    assert unknown["savings"]["largest"]["saved"] is None
    assert unknown["savings"]["largest"]["unmeasured"] == "not measured at 8 GPUs: samples and run have 1 to 4"
    assert there["savings"]["largest"]["saved"]["value"] == pytest.approx(0.0), "it ran there itself"
    (month,) = client.get(f"/workloads/{modelled}/savings").json()["months"]
    expected = sum(one["savings"]["largest"]["saved"]["value"] for one in (*known, there))
    assert month["largest"]["value"] == pytest.approx(expected)
    assert (month["runs"], month["largest_runs"], month["best_fixed_runs"]) == (4, 3, 4)
    assert saved_costs(backend, "default")["largest"] == pytest.approx(expected)
    assert 'steward_unmeasured_runs{against="largest"} 1.0' in client.get("/metrics").text
    assert 'steward_unmeasured_runs{against="best_fixed"} 0.0' in client.get("/metrics").text
    page, home = client.get(f"/ui/runs/{unknown['id']}").text, client.get("/").text
    assert "not measured at 8 GPUs: samples and run have 1 to 4" in page
    assert "without 1 run that has no measurement there" in home
    publish_model(backend, other)
    narrow(backend, other)
    finished(client, other, 2, 20.0)
    (alone,) = client.get(f"/workloads/{other}/savings").json()["months"]
    assert (alone["runs"], alone["largest"], alone["largest_runs"], alone["best_fixed_runs"]) == (1, None, 0, 1)


def narrow(backend: Database, workload: str) -> None:
    """Give a workload's newest model samples of 1 to 4 gpus only; caches see it by the workload's revision."""
    with backend.session() as session:
        row = session.scalars(select(Workload).where(Workload.name == workload)).one()
        model = session.scalars(select(DomainModel).where(DomainModel.workload_id == row.id)).one()
        table = ModelTable.from_bytes(model.table)
        model.table = replace(table, seen_low=np.array([1.0]), seen_high=np.array([4.0])).to_bytes()
        row.revision += 1


@on_both
def test_runs_without_effect_say_nothing_of_agents_or_targets(
    client: TestClient, backend: Database, two: tuple[str, str]
) -> None:
    applied = finished(client, two[0], 2, 20.0)
    finished(client, two[0], 2, 90.0, mode="advise")
    with backend.reading() as session:
        workload = session.get_one(Run, applied["id"]).workload_id
        assert len(logged_runs(session, workload)) == 1
        assert [one.id for one in runs(session, workload, ruled=False)] == [applied["id"]]
        assert targets(session, [workload])[workload] == (1, 1)


@on_both
def test_the_replay_follows_the_rule_that_the_run_names(client: TestClient, two: tuple[str, str]) -> None:
    """Late at 1 gpu: the threshold rule adds gpus, which this model says doubles the seconds."""
    rules: dict[str, dict[str, Any]] = {"default": {}, "threshold": {"policy": "threshold"}}
    result = {name: finished(client, two[0], 1, 90.0, mode="advise", **start) for name, start in rules.items()}
    cost = {name: one["savings"]["advised"]["cost"]["value"] for name, one in result.items()}
    assert cost["threshold"] > 1.5 * cost["default"]
    assert finished(client, two[0], 1, 90.0, policy="threshold")["savings"]["advised"] is None


@on_both
def test_what_fails_after_a_run_has_ended_leaves_it_ended(
    client: TestClient, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a kind from outside")

    monkeypatch.setattr("app.runs.savings.reports_of_run", broken)
    result = finished(client, two[0], 2, 20.0)
    assert (result["state"], result["outcome"], result["savings"]) == ("finished", "met", None)
    assert "can't be computed" in caplog.text
    monkeypatch.undo()
    again = client.patch(f"/runs/{result['id']}", json={"state": "finished"}).json()
    assert again["savings"]["cost"] > 0
    assert client.get(f"/runs/{result['id']}").json()["savings"] == again["savings"]


def test_kinds_that_can_not_say_what_was_saved_refuse_to_advise(client: TestClient) -> None:
    spec = {
        "name": "queue",
        "kind": "workflow",
        "nodes": [{"name": "node", "processors": 4, "minimum": 1, "maximum": 1}],
    }
    assert client.post("/workloads", json=spec).status_code == 201
    refused = client.post("/runs", json={"workload": "queue", "mode": "advise"})
    assert (refused.status_code, "must be 'control'" in refused.text) == (422, True)


def test_a_mode_is_control_or_advise(client: TestClient, two: tuple[str, str]) -> None:
    refused = client.post("/runs", json={"workload": two[0], "mode": "watch"})
    assert refused.status_code == 422
    assert "'control' or 'advise'" in refused.text
    run = started(client, two[0], mode="advise")
    assert client.get(f"/runs/{run}").json()["start"] == {"mode": "advise"}

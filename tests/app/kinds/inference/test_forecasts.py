"""Forecasts of a user's requests over HTTP: from what was fitted, and from what was counted since."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.forecasting.answer import Forecaster, serialise
from app.kinds.forecasting.families import Last
from app.kinds.forecasting.series import Series
from app.kinds.inference.example import SPEC
from app.kinds.inference.layout import Layout
from app.kinds.inference.spec import InferenceSpec
from app.workloads import service as workloads
from app.workloads.snapshot import WorkloadCache
from tests.app.both import on_both
from tests.app.kinds.inference.runs import model

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
END = START + 30 * HOUR
ERRORS = np.array([[-np.log(2), np.log(2), 1.5, 0.0], [-np.log(4), np.log(4), 2.0, 0.0]])


def publish(database: Database, *, forecasting: bool = True) -> None:
    """A model by which one user's requests go on as they came last: 29 in the last hour."""
    series = Series(np.arange(30.0), START.timestamp(), 3600.0)
    forecaster = Forecaster("shop", (1, 6), (0, 0), ("last_value",), (Last((1, 6)),), ERRORS, series)
    belief = model(Layout(InferenceSpec.model_validate(SPEC)))
    if forecasting:
        belief = replace(belief, forecasts=serialise([forecaster]))
    with database.session() as session:
        workload = workloads.require(session, "default", SPEC["name"])
        domain_models.publish(session, workload.id, workload.spec_version, {"family": "none"}, belief.to_bytes())


@pytest.fixture
def forecasting(client: TestClient, backend: Database) -> TestClient:
    """A client of a service with such a model."""
    assert client.post("/workloads", json=SPEC).status_code == 201
    publish(backend)
    return client


def rows(client: TestClient) -> list[dict[str, Any]]:
    """What is forecast."""
    answer = client.get("/workloads/vision/models/1/forecast")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["rows"]
    return rows


def issue(client: TestClient, at: datetime, counts: dict[datetime, float]) -> None:
    """Put rows of the series, issued at a time."""
    message = [{"time": time.isoformat(), "mean": count} for time, count in counts.items()]
    path = "/workloads/vision/exogenous/shop"
    assert client.put(path, json={"issued_at": at.isoformat(), "rows": message}).status_code == 200


def test_rows_tell_time_and_horizon_and_interval(forecasting: TestClient) -> None:
    first, second = rows(forecasting)

    assert (first["series"], first["family"], first["horizon_seconds"]) == ("shop", "last_value", 3600)
    assert datetime.fromisoformat(first["time"]) == END
    assert [first[name] for name in ("median", "mean")] == pytest.approx([29, 43.5])
    assert [first[name] for name in ("low", "high")] == pytest.approx([14, 59])  # half and double of 1 + 29, less 1
    assert (datetime.fromisoformat(second["time"]), second["horizon_seconds"]) == (END + 5 * HOUR, 6 * 3600)
    assert second["low"] < first["low"] < first["high"] < second["high"]


@on_both
def test_what_was_counted_since_is_what_it_goes_on_from(forecasting: TestClient) -> None:
    issue(forecasting, END + 3 * HOUR, {END: 10, END + HOUR: 20, END + 2 * HOUR: 7})
    first = rows(forecasting)[0]

    assert datetime.fromisoformat(first["time"]) == END + 3 * HOUR
    assert first["median"] == pytest.approx(7)
    recent = forecasting.get("/workloads/vision/models/1/forecast").json()["recent"]
    assert [row["count"] for row in recent[-4:]] == [29, 10, 20, 7]


def test_what_others_forecast_is_not_taken_for_what_came(forecasting: TestClient) -> None:
    issue(forecasting, END, {END: 99})
    assert rows(forecasting)[0]["median"] == pytest.approx(29)
    issue(forecasting, END + HOUR / 2, {END: 98})
    assert rows(forecasting)[0]["median"] == pytest.approx(29)
    issue(forecasting, END + HOUR, {END: 12})
    assert rows(forecasting)[0]["median"] == pytest.approx(12)


def test_counts_after_a_gap_are_not_used(forecasting: TestClient) -> None:
    issue(forecasting, END + 3 * HOUR, {END: 10, END + 2 * HOUR: 7})
    assert rows(forecasting)[0]["median"] == pytest.approx(10)


def test_a_model_that_forecasts_nothing_says_so(client: TestClient, backend: Database) -> None:
    client.post("/workloads", json=SPEC)
    publish(backend, forecasting=False)

    answer = client.get("/workloads/vision/models/1/forecast")

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/path/workload"
    assert "model 1 of kind inference forecasts nothing" in answer.json()["detail"]
    assert "4 hours at least" in answer.json()["detail"]
    assert client.get("/workloads/vision/models/2/forecast").status_code == 404


def test_decisions_see_what_was_counted_lately(forecasting: TestClient, backend: Database) -> None:
    cache = WorkloadCache(backend, 0.0)
    before = cache.get(SPEC["name"])
    assert before.coming == {}
    issue(forecasting, END + 2 * HOUR, {END: 40.0, END + HOUR: 60.0})
    after = cache.get(SPEC["name"])
    assert after.revision > before.revision
    assert after.coming["shop"].known_until == (END + 2 * HOUR).timestamp()
    assert after.coming["shop"].mean == pytest.approx(1.5 * 60.0)

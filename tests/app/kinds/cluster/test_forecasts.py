"""The forecast of GPUs in use over HTTP: beside that of jobs, continued from what was observed, and on the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.cluster.arrivals import GPUS_IN_USE
from app.kinds.cluster.example import EXAMPLE
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.forecasting.answer import Forecaster, serialise
from app.kinds.forecasting.families import Last
from app.kinds.forecasting.series import Series
from app.workloads import service as workloads

NAME = EXAMPLE.spec["name"]
START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(hours=48)


def publish(database: Database, report: dict[str, Any], **levels: float) -> None:
    """A model that forecasts each series to go on at a level, after two days of it."""
    layout = Layout(ClusterSpec.model_validate(EXAMPLE.spec))
    errors = np.tile([-0.1, 0.1, 1.0, 0.0], (2, 1))
    forecasters = [
        Forecaster(
            name.replace("_", "-"),
            (6, 144),
            (0, 0),
            ("last_value",),
            (Last((6, 144)),),
            errors,
            Series(np.full(48 * 6, level), START.timestamp(), 600.0),
        )
        for name, level in levels.items()
    ]
    fitted = replace(
        ClusterModel.unfitted(layout), forecasts=serialise(forecasters) if forecasters else np.zeros(0, np.uint8)
    )
    with database.session() as session:
        workload = workloads.require(session, "default", NAME)
        reported = {"family": "none", **report}
        domain_models.publish(session, workload.id, workload.spec_version, reported, fitted.to_bytes())


def test_gpus_in_use_are_answered_beside_jobs_and_drawn(client: TestClient, backend: Database) -> None:
    assert client.post("/workloads", json=EXAMPLE.spec).status_code == 201
    publish(backend, {}, urgent=2.0, batch=5.0, gpus_in_use=24.0)
    observed = [{"time": (END + timedelta(minutes=10 * at)).isoformat(), "mean": 20.0 + at} for at in range(3)]
    issued = {"issued_at": (END + timedelta(hours=1)).isoformat(), "rows": observed}
    assert client.put(f"/workloads/{NAME}/exogenous/{GPUS_IN_USE}", json=issued).status_code == 200
    rows = client.get(f"/workloads/{NAME}/models/1/forecast").json()["rows"]
    assert [(row["series"], row["horizon_seconds"]) for row in rows] == [
        (name, ahead) for name in ("urgent", "batch", GPUS_IN_USE) for ahead in (3_600.0, 86_400.0)
    ]
    assert [round(row["median"]) for row in rows] == [2, 2, 5, 5, 22, 22]
    assert all(row["low"] < row["median"] < row["high"] for row in rows)
    page = client.get(f"/ui/workloads/{NAME}").text
    assert [f"Forecast: {name}" in page for name in ("urgent", "batch", GPUS_IN_USE)] == [True] * 3
    assert "Arrival" not in page.split("Forecast: gpus-in-use")[1].split("</figure>")[0]


def test_a_log_that_is_too_short_is_told_with_its_length(client: TestClient, backend: Database) -> None:
    assert client.post("/workloads", json=EXAMPLE.spec).status_code == 201
    publish(backend, {"log_seconds": 7_200.0})
    answer = client.get(f"/workloads/{NAME}/models/1/forecast")
    assert answer.status_code == 422
    assert "its longest log of arrivals lasts 2 hours; 4 hours at least are needed" in answer.json()["detail"]

"""`steward forecast`: what is printed, what is drawn, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import pytest

from app.cli.remote import forecast as forecasting
from app.cli.remote.service import UnreachableError
from tests.app.cli.remote.test_agent_report import ran

ROW = {"time": "2026-01-01T06:00:00Z", "horizon_seconds": 3600.0, "interval_seconds": 600.0, "family": "arima_gru"}
COUNTS = {"mean": 12.5, "median": 11.0, "low": 4.0, "high": 30.25}
ANSWER: dict[str, Any] = {
    "workload": "w",
    "model": 3,
    "level": 0.9,
    "recent": [{"series": "shop", "time": f"2026-01-01T0{hour}:00:00Z", "count": 10.0} for hour in range(5)],
    "rows": [{"series": "shop", **ROW, **COUNTS}],
}


class Played:
    """Plays the service, with so many models."""

    def __init__(self, models: int = 3) -> None:
        self.models, self.calls = models, list[str]()

    def __call__(self, url: str) -> Played:
        if url == "http://nowhere":
            raise UnreachableError("nobody there")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, method: str, path: str) -> dict[str, Any]:
        self.calls.append(f"{method} {path}")
        return {"items": [{"version": self.models}][: self.models]} if path.endswith("?limit=1") else ANSWER


@pytest.mark.parametrize(("model", "version"), [(None, 3), (2, 2)])
def test_the_model_that_is_meant_forecasts(monkeypatch: pytest.MonkeyPatch, model: int | None, version: int) -> None:
    played = Played()
    monkeypatch.setattr(forecasting, "Service", played)
    status, output, _ = ran(forecasting.run, forecasting.Options("http://there", "w", model))
    assert (status, played.calls[-1]) == (0, f"GET /workloads/w/models/{version}/forecast")
    assert [word for word in output.splitlines()[-1].split() if word] == [
        *("shop", "2026-01-01T06:00:00Z", "3,600"),
        *("12.5", "11", "4", "30.2", "arima_gru"),
    ]
    _, output, _ = ran(forecasting.run, forecasting.Options("http://there", "w", model, as_json=True))
    assert json.loads(output) == ANSWER


def test_less_than_one_job_is_no_forecast_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"series": "few", **ROW, "mean": 0.7, "median": 0.0312, "low": 0.0, "high": 3.0}
    monkeypatch.setitem(ANSWER, "rows", [*ANSWER["rows"], few])
    monkeypatch.setattr(forecasting, "Service", Played())
    _, output, _ = ran(forecasting.run, forecasting.Options("http://there", "w"))
    assert output.splitlines()[-1].split()[3:-1] == ["0.7", "0.0312", "0", "3"]


@pytest.mark.parametrize(
    ("url", "status", "text"),
    [("http://there", 5, "steward model create w"), ("http://nowhere", 3, "nobody there")],
)
def test_the_exit_status_says_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, url: str, status: int, text: str
) -> None:
    monkeypatch.setattr(forecasting, "Service", Played(models=0))
    result, _, notes = ran(forecasting.run, forecasting.Options(url, "w"))
    assert (result, text in notes) == (status, True)


@pytest.mark.parametrize("suffix", ["html", "svg"])
def test_a_forecast_is_drawn_by_a_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str) -> None:
    monkeypatch.setattr(forecasting, "Service", Played())
    file = tmp_path / f"forecast.{suffix}"
    status, _, notes = ran(forecasting.run, forecasting.Options("http://there", "w", plot=file))
    assert (status, f"forecast: {file}" in notes) == (0, True)
    assert "Forecast of w by model 3" in file.read_text()

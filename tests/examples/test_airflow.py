"""The operator for Airflow, on its real BaseOperator where Airflow's task SDK is installed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("airflow.sdk", reason="apache-airflow-task-sdk is not installed")
RUN = "0" * 32


class Double:
    """The service as a run meets it: each iteration one GPU more is decided."""

    def __init__(self) -> None:
        self.states, self.reports = list[str](), list[Mapping[str, Any]]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PATCH":
            self.states.append(json.loads(request.content)["state"])
            return httpx.Response(200, json={"id": RUN, "workload": "resnet18"})
        if request.method == "PUT":
            self.reports.append(json.loads(request.content))
            return httpx.Response(201, json=self.decision())
        return httpx.Response(201, json={"id": RUN, "workload": "resnet18", "decision": self.decision()})

    def decision(self) -> dict[str, Any]:
        number = len(self.reports)
        return {
            "run": RUN,
            "workload": "resnet18",
            "kind": "iterative",
            "reported": number - 1 if number else None,
            "iteration": number,
            "allocation": {"gpus": 1 + number},
            "delta": {},
            "noop": False,
            "source": "heuristic",
            "agent": None,
            "policy": "static",
            "reason": {"code": "x", "text": "because"},
            "predicted": {},
            "valid_for_iterations": 1,
            "decided_at": "2026-01-01T00:00:00Z",
        }


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Double:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples/airflow"))
    double = Double()

    class Client(httpx.Client):
        def __init__(self, **named: Any) -> None:
            super().__init__(**named, transport=httpx.MockTransport(double))

    monkeypatch.setattr(httpx, "Client", Client)
    return double


def operator(iterate: Any) -> Any:
    StewardOperator = importlib.import_module("steward_airflow").StewardOperator
    return StewardOperator(task_id="train", workload="resnet18", iterate=iterate, iterations=3)


def test_each_iteration_has_what_was_decided(service: Double) -> None:
    had = []

    def iterate(allocation: Mapping[str, float], iteration: int) -> Mapping[str, float]:
        had.append((iteration, dict(allocation)))
        return {"iteration_seconds": 10.0}

    assert operator(iterate).execute({}) == RUN
    assert had == [(0, {"gpus": 1}), (1, {"gpus": 2}), (2, {"gpus": 3})]
    assert [report["metrics"] for report in service.reports] == [{"iteration_seconds": 10.0}] * 3
    assert service.states == ["finished"]


def test_a_task_that_fails_fails_its_run(service: Double) -> None:
    with pytest.raises(ZeroDivisionError):
        operator(lambda *_: 1 / 0).execute({})
    assert service.states == ["failed"]

"""Bodies of sample uploads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi.testclient import TestClient

HEADER = "execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\n"


def csv_of(executions: Mapping[str, int], seconds: float = 31.5) -> str:
    """CSV of executions with so many iterations each."""
    rows = [f"{name},{i},4,{seconds + i},128\n" for name, count in executions.items() for i in range(count)]
    return HEADER + "".join(rows)


def report(**changes: Any) -> dict[str, Any]:
    """A report of the example workload."""
    whole = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
    return {**whole, **changes}


def sample(name: str, *reports: dict[str, Any]) -> dict[str, Any]:
    """A sample with reports, by default one."""
    return {"execution": name, "reports": list(reports) or [report()]}


def upload_csv(client: TestClient, workload: str, text: str | bytes, **headers: str) -> Any:
    """Upload CSV."""
    return client.post(f"/workloads/{workload}/samples", content=text, headers={"Content-Type": "text/csv", **headers})

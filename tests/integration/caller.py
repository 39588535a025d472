"""A caller of a real service: registers a workload with a known truth, uploads samples, asks for jobs and waits."""

from __future__ import annotations

import time
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import select

from app.database.engine import Database
from app.database.tables import Workload
from app.domain_models import service as domain_models
from app.kinds.iterative.spec import Spec
from tests.planted import planted_table
from tests.servers import StewardServer

WORKLOAD = "planted"
SPEC: dict[str, Any] = {
    "name": WORKLOAD,
    "kind": "iterative",
    "resources": [{"name": "executors", "minimum": 4, "maximum": 36, "max_steps": 4, "initial": 8}],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 330.0, "scope": "run"}],
    "iterations": 30,
}
FINAL = ("succeeded", "failed", "cancelled")


def samples(executions: int = 12, iterations: int = 30, seed: int = 0, largest: int = 36) -> str:
    """CSV of executions at several allocations: seconds = (2 + 60/a + a/10) · run effect · noise."""
    random = np.random.default_rng(seed)
    lines = ["execution,iteration,allocation.executors,metric.iteration_seconds"]
    for execution in range(executions):
        allocation = 4 + execution * (largest - 4) // max(executions - 1, 1)
        effect = np.exp(random.normal(0, 0.15))
        for iteration in range(iterations):
            seconds = (2 + 60 / allocation + 0.1 * allocation) * effect * np.exp(random.normal(0, 0.1))
            lines.append(f"e{execution},{iteration},{allocation},{seconds:.6f}")
    return "\n".join(lines) + "\n"


class Caller:
    """HTTP calls against one service, checked; jobs are of one workload."""

    def __init__(self, url: str, workload: str = WORKLOAD) -> None:
        self.http = httpx.Client(base_url=url, timeout=30)
        self.workload = workload

    def post(self, path: str, **options: Any) -> dict[str, Any]:
        answer = self.http.post(path, **options)
        assert answer.status_code < 300, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def get(self, path: str) -> dict[str, Any]:
        answer = self.http.get(path)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def prepare(self) -> None:
        """Register the workload and upload its samples."""
        self.post("/workloads", json={**SPEC, "name": self.workload})
        self.post(f"/workloads/{self.workload}/samples", content=samples(), headers={"Content-Type": "text/csv"})

    def fit(self) -> str:
        """Ask for a fit; the job's id."""
        return str(self.post(f"/workloads/{self.workload}/models", json={})["id"])

    def train(self, **request: Any) -> str:
        """Ask for a training, which learns even if there is nothing to win; the job's id."""
        return str(self.post(f"/workloads/{self.workload}/agents", json={"force": True, **request})["id"])

    def agents(self) -> list[dict[str, Any]]:
        """The workload's agents, the newest first."""
        items: list[dict[str, Any]] = self.get(f"/workloads/{self.workload}/agents")["items"]
        return items

    def job(self, job_id: str) -> dict[str, Any]:
        return self.get(f"/jobs/{job_id}")

    def wait(self, job_id: str, seconds: float = 120.0) -> dict[str, Any]:
        """Wait for a job's end."""
        deadline = time.monotonic() + seconds
        while (job := self.job(job_id))["state"] not in FINAL:
            if time.monotonic() > deadline:
                pytest.fail(f"job not done after {seconds:g} s: {job}")
            time.sleep(0.1)
        return job

    def modelled(self, server: StewardServer) -> None:
        """A small workload, with a model that is put into the service's database: fitting is not what is tested."""
        executors = {**SPEC["resources"][0], "maximum": 10, "max_steps": 1}
        spec = {**SPEC, "name": self.workload, "resources": [executors], "iterations": 6}
        self.post("/workloads", json=spec)
        database = Database(server.database_url)
        try:
            with database.session() as session:
                workload = session.scalars(select(Workload).filter_by(name=self.workload)).one()
                table = planted_table(Spec.model_validate(workload.spec))
                domain_models.publish(session, workload.id, workload.spec_version, {}, table.to_bytes())
        finally:
            database.dispose()

    def fitted(self) -> dict[str, Any]:
        """Prepare, fit, and wait for the model."""
        self.prepare()
        job = self.wait(self.fit())
        assert job["state"] == "succeeded", job
        return job

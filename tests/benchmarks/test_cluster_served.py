"""What the benchmark is answered over HTTP is, decision by decision, what the engine decides in process."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.cluster.kind import KIND
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.contract.kind import RunStart
from app.main import create_app
from app.settings import Settings
from app.workloads import service as workloads
from benchmarks.cluster_served import CASES, Choosing, Fixed
from tests.answers import all_answered
from tests.pollux.measured import read_applications
from tests.pollux.simulator import read_log
from workers.inputs import Workload
from workers.kinds.cluster import KIND as LEARNED

JOBS = 24
NODES = [{"name": "n", "count": 16, "gpus": 4}]
SPEC: dict[str, Any] = {"name": "bench", "kind": "cluster", "nodes": NODES}
OTHER: dict[str, Any] = {**SPEC, "name": "other", "nodes": NODES[:1]}
MOMENTS = ("decided_at", "run")


@cache
def fitted(data: Path) -> bytes:
    """A domain model of one application, of five that come."""
    cifar = read_applications(data / "pollux-osdi21" / "traces")["cifar10"]
    steps = [
        {
            "application": "cifar10",
            "gpus": gpus,
            "nodes": nodes,
            "batch": gpus * local,
            "seconds": cifar.step(on, local)[0],
        }
        for gpus, nodes, on in ((1, 1, [1]), (2, 1, [2]), (4, 1, [4]), (8, 2, [4, 4]))
        for local in (64, 128, 256)
    ]
    layout = KIND.layout(KIND.spec.model_validate(SPEC))
    reports = [
        {"at": 0, "submitted": [{"job": "a", "gpus": 1, "application": "cifar10", "batch": 128}]},
        *({"at": 60 * n, "progressed": [{"job": "a", "iteration": n, **one}]} for n, one in enumerate(steps, 1)),
        {"at": 60 * len(steps) + 60, "ended": [{"job": "a"}]},
    ]
    reports = json.loads(json.dumps(reports))
    for report in reports:
        for one in report.get("progressed", ()):
            one.pop("application")
    codec = KIND.samples(layout)
    sample = codec.of_run("log", reports)
    assert sample is not None
    entries = [("log", codec.unpack(sample.data))]
    return LEARNED.fit(Workload(KIND.spec.model_validate(SPEC), samples=entries), 0).model


class Twice:
    """A run over HTTP, and beside it the engine alone; both must answer the same."""

    def __init__(self, client: TestClient, model: bytes | None, spec: dict[str, Any]) -> None:
        self._client, self.answers = client, 0
        self._run = client.post("/runs", json={"workload": spec["name"]}).json()["id"]
        read = KIND.spec.model_validate(spec)
        known, self._now = None if model is None else KIND.model(model), datetime(2026, 1, 1, tzinfo=UTC)
        layout = KIND.layout(read)
        snapshot = Snapshot("w", read.name, 1, read, layout, known, None if model is None else 1, None, None, 1)
        self._on = KIND.engine.compile(snapshot)
        self._state = KIND.engine.begin(self._on, "r", RunStart(workload=read.name), self._now).state

    def __call__(self, report: dict[str, Any]) -> dict[str, Any]:
        answer = self._client.put(f"/runs/{self._run}/iterations/{self.answers}", json=report)
        assert answer.status_code == 201, answer.text
        engine = KIND.engine
        read = engine.read(self._on, self._state, self.answers, engine.decode(json.dumps(report).encode()))
        pending = Pending("r", self.answers, self._state, read, {}, None)
        (own,) = all_answered(engine.answer(self._on, [pending], self._now))
        self._state = own.state
        decision: dict[str, Any] = answer.json()
        alone = json.loads(own.decision)
        assert {k: v for k, v in decision.items() if k in alone and k not in MOMENTS} == {
            k: v for k, v in alone.items() if k not in MOMENTS
        }
        self.answers += 1
        return decision


@pytest.mark.parametrize("case", ["a", "b", "c", "d"])
def test_served_as_in_process(case: str, shared_data: Path, settings: Settings, database: Database) -> None:
    folder = shared_data / "pollux-osdi21"
    applications, log = read_applications(folder / "traces"), read_log(folder / "workloads" / "workload-1.csv")[:JOBS]
    client = TestClient(create_app(settings, database))
    for spec in (SPEC, OTHER):
        assert client.post("/workloads", json=spec).status_code == 201
    model = fitted(shared_data) if case in "ab" else None
    if model is not None:
        with database.session() as session:
            row = workloads.require(session, "default", SPEC["name"])
            domain_models.publish(session, row.id, 1, {"family": "none"}, model)
    service: Any = Twice(client, model, SPEC)
    played = Fixed(applications, log, service) if case == "d" else Choosing(applications, log, service, CASES[case])
    while played.now < 7_200 and not played.over:
        played.step()
    assert service.answers > 100
    assert played.predicted or case == "d"

"""The same jobs through the service and through the simulator that agents learn in get the same GPUs."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.agents import service as agents
from app.agents.service import Trained
from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.cluster.example import SPEC as EXAMPLE
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live.advance import advance
from app.kinds.cluster.live.decide import decide
from app.kinds.cluster.live.report import EncodedReport
from app.kinds.cluster.live.state import ClusterState
from app.kinds.cluster.samples.codec import JSON
from app.kinds.cluster.samples.example import SAMPLES
from app.kinds.cluster.spec import ClusterSpec
from app.main import create_app
from app.policies.artifact import save
from app.policies.network import NetworkPolicy
from app.settings import Settings
from app.workloads import service as workloads
from tests.workers.kinds.cluster.estimation.test_fit import workload
from workers.inputs import Conditions, Workload
from workers.kinds.cluster import KIND
from workers.kinds.cluster.estimation.fit import fit
from workers.kinds.cluster.world import launcher

SPEC = ClusterSpec.model_validate({**EXAMPLE, "interval_seconds": 600, "episode_intervals": 24})
LAYOUT, SEED, TENANT = Layout(SPEC), 5, "default"
Given = dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def model() -> bytes:
    return fit(workload(SAMPLES[JSON], SPEC), 0).model


class Played:
    """One episode of the simulator under one rule: what its launcher reported, and what every job then had by node."""

    def __init__(self, model: bytes, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reports, self.given = list[EncodedReport](), list[Given]()
        monkeypatch.setattr(launcher, "advance", self._advance)
        monkeypatch.setattr("workers.kinds.cluster.world.world.decide", self._decide)
        clusters = KIND.world(Workload(SPEC, model=model), Conditions(1, SEED))
        clusters.reset()
        clusters.reseed(SEED)
        action = np.array([[*LAYOUT.rules].index(rule)])
        for _ in range(SPEC.episode_intervals - 1):
            clusters.step(action)
        monkeypatch.undo()

    def _advance(self, layout: Layout, state: ClusterState, report: EncodedReport) -> ClusterState:
        self.reports.append(report)
        return advance(layout, state, report)

    def _decide(self, layout: Layout, state: ClusterState, advice: Any) -> Any:
        after, changes = decide(layout, state, advice)
        held = zip(after.names, after.jobs.held.tolist(), strict=True)
        self.given.append({name: {layout.nodes[at]: gpus for at, gpus in enumerate(row) if gpus} for name, row in held})
        return after, changes


def published(database: Database, model: bytes, rule: str) -> None:
    """The domain model, and an agent that chooses one rule, whatever it sees."""
    entries, actions = len(LAYOUT.entries), LAYOUT.actions
    bias = np.zeros(actions, np.float32)
    bias[[*LAYOUT.rules].index(rule)] = 1
    arrays = {"advantage.weight": np.zeros((actions, entries), np.float32), "advantage.bias": bias}
    config = {"algorithm": "dqn", "layers": [], "activation": "relu", "dueling": False, "advice": None}
    artifact = save(NetworkPolicy.build(config, {**arrays}), "cluster", LAYOUT.entries, actions, {})
    with database.session() as session:
        row = workloads.require(session, TENANT, SPEC.name)
        domain_models.publish(session, row.id, 1, {"family": "none"}, model)
        trained = Trained(1, 1, "dqn", 0, {"algorithm": "dqn"}, artifact, True, "as planted")
        agents.publish(session, row.id, trained)


@pytest.mark.parametrize("rule", [*LAYOUT.rules])
def test_served_as_simulated(
    rule: str, model: bytes, settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(model, rule, monkeypatch)
    client = TestClient(create_app(settings, database))
    assert client.post("/workloads", json=SPEC.model_dump(mode="json")).status_code == 201
    published(database, model, rule)
    run = client.post("/runs", json={"workload": SPEC.name}).json()["id"]
    had: Given = {}
    for number, (report, wanted) in enumerate(zip(played.reports, played.given, strict=False)):
        body = msgspec.json.encode(report)
        headers = {"Content-Type": "application/json"}
        answer = client.put(f"/runs/{run}/iterations/{number}", content=body, headers=headers)
        assert answer.status_code == 201, answer.text
        decision = answer.json()
        assert (decision["rule"], decision["source"]) == (rule, "agent")
        came, left = {one.job for one in report.submitted}, {one.job for one in report.ended}
        had = {name: nodes for name, nodes in had.items() if name not in left} | {name: {} for name in came}
        had |= {one["job"]: one["nodes"] for one in decision["changes"]}
        assert had == wanted
    assert max(map(len, played.given)) > SPEC.nodes[0].count * SPEC.nodes[0].gpus / 2  # there was something to share
    assert len(played.given) == SPEC.episode_intervals - 1

"""The same jobs through the service and through the simulator that agents are judged in get the same GPUs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.cluster import arrivals
from app.kinds.cluster.decide import Compiled
from app.kinds.cluster.example import SAMPLES
from app.kinds.cluster.example import SPEC as EXAMPLE
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.placement import place
from app.kinds.cluster.policies import Network
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.contract.engine import Snapshot
from app.kinds.records import JSON
from app.main import create_app
from app.policies.artifact import save
from app.policies.base import Arrays
from app.settings import Settings
from app.workloads import service as workloads
from tests.workers.kinds.cluster.estimation.test_fit import workload
from workers.inputs import Conditions, Workload
from workers.kinds.cluster import KIND
from workers.kinds.cluster.episodes import Episodes
from workers.kinds.cluster.fit import fit
from workers.kinds.cluster.kernels import CAME, THERE
from workers.kinds.cluster.world import ClusterWorld

SPEC = ClusterSpec.model_validate({**EXAMPLE, "interval_seconds": 600, "episode_intervals": 24})
LAYOUT, SEED, TENANT = Layout(SPEC), 5, "default"
Given = dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def model() -> bytes:
    return fit(workload(SAMPLES[JSON], SPEC), 0).model


def agent() -> Network:
    """Whatever it weighs jobs by, it isn't the forecast: the service asks for that by the clock on the wall."""
    entries, random = LAYOUT.entries, np.random.default_rng(3)
    weight = 2 * random.standard_normal((LAYOUT.actions, len(entries)))
    weight[:, entries.index("coming")] = 0.0
    arrays: Arrays = {"advantage.weight": weight, "advantage.bias": np.zeros(LAYOUT.actions)}
    config = {"algorithm": "ppo", "layers": [], "activation": "relu", "dueling": False}
    return Network.build(config, arrays)


def published(database: Database, model: bytes, policy: Network | None) -> None:
    """The domain model, and an agent where one is to answer."""
    with database.session() as session:
        row = workloads.require(session, TENANT, SPEC.name)
        domain_models.publish(session, row.id, 1, {"family": "none"}, model)
        if policy is not None:
            artifact = save(policy, "cluster", LAYOUT.entries, LAYOUT.actions, {})
            trained = TrainingResult(1, 1, "ppo", 0, {"algorithm": "ppo"}, artifact, True, "as planted")
            agents.publish(session, row.id, trained)


class Launcher:
    """It reports what becomes of the jobs of one played cluster."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world, self._came, self._there = world, 0, set[int]()

    def report(self, state: Episodes) -> dict[str, Any]:
        """What has happened since the last report."""
        clusters, drawn, came = state.clusters, state.drawn, int(state.clusters.counts[0, CAME])
        new, there = range(self._came, came), set(clusters.there[0, : clusters.counts[0, THERE]].tolist())
        done = clusters.done[0] - drawn.start[0]
        submitted = [
            {
                "job": str(job),
                "gpus": int(clusters.asked[0, job]),
                "queue": LAYOUT.queues[clusters.queue[0, job]],
                "at": float(clusters.time[0, job]),
                "application": self._world.source.applications[drawn.believed[0, job]],
                "iterations": float(drawn.steps[0, job]),
            }
            for job in new
        ]
        on = [{"job": str(job), "iteration": float(done[job])} for job in sorted(there & self._there)]
        ended = [{"job": str(job)} for job in sorted(self._there - there)]
        self._came, self._there = came, there
        return {"at": float(clusters.now[0]), "submitted": submitted, "progressed": on, "ended": ended}


def test_where_nobody_is_expected_to_come_it_looks_ahead(model: bytes) -> None:
    known = ClusterModel.from_bytes(model)
    silent = replace(known, arrivals=arrivals.none(len(LAYOUT.queues)))
    for of, name in ((known, "soonest"), (silent, "rollout")):
        snapshot = Snapshot("w", SPEC.name, 1, SPEC, LAYOUT, of, 1, None, None, 1)
        assert Compiled(snapshot).rule(None, datetime(2026, 1, 1, tzinfo=UTC))[0] == name


@pytest.mark.parametrize("who", ["soonest", "weighed"])
def test_served_as_simulated(who: str, model: bytes, settings: Settings, database: Database) -> None:
    policy = agent() if who == "weighed" else None
    world = KIND.world(Workload(SPEC, model=model), Conditions(1, SEED))
    world.answer(who if policy is None else policy)
    rule = LAYOUT.rules[who] if policy is None else LAYOUT.weighing(policy, 0.0)
    client = TestClient(create_app(settings, database))
    assert client.post("/workloads", json=SPEC.model_dump(mode="json")).status_code == 201
    published(database, model, policy)
    run = client.post("/runs", json={"workload": SPEC.name}).json()["id"]
    world.reset()
    launcher, had, most = Launcher(world), dict[str, dict[str, int]](), 0
    for number in range(SPEC.episode_intervals - 1):
        state: Episodes = world.situation.state
        body = launcher.report(state)
        answer = client.put(f"/runs/{run}/iterations/{number}", json=body)
        assert answer.status_code == 201, answer.text
        decision = answer.json()
        assert (decision["rule"], decision["source"]) == (who, "heuristic" if policy is None else "agent")
        left = {one["job"] for one in body["ended"]}
        had = {name: nodes for name, nodes in had.items() if name not in left}
        had |= {one["job"]: {} for one in body["submitted"]}
        had |= {one["job"]: one["nodes"] for one in decision["changes"]}
        there = state.clusters.there[0, : state.clusters.counts[0, THERE]].tolist()
        situation = world.source.moment(state, 0)
        allocation = place(situation, rule(situation)) if there else np.zeros((0, len(LAYOUT.nodes)), np.int64)
        assert had == {str(job): _by_node(row) for job, row in zip(there, allocation.tolist(), strict=True)}
        most = max(most, len(there))
        world.step(np.zeros(1, np.int64))
        clusters = world.situation.state.clusters
        for job, row in zip(there, allocation.sum(axis=1).tolist(), strict=True):
            assert clusters.gpus[0, job] in ((row,) if np.isnan(clusters.completed[0, job]) else (0,))
    assert most > SPEC.nodes[0].count * SPEC.nodes[0].gpus / 2  # there was something to share


def _by_node(row: list[int]) -> dict[str, int]:
    return {LAYOUT.nodes[at]: gpus for at, gpus in enumerate(row) if gpus}

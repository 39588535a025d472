"""A workload of one server, served on a database of the test; its batches may take longer than expected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.database.tables import Job
from app.domain_models import service as domain_models
from app.kinds.inference.awarding import clients
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.spec import InferenceSpec
from app.policies.artifact import save, save_roles
from app.policies.network import NetworkPolicy
from app.workloads import service as workloads
from tests.app.kinds.inference.runs import model
from tests.app.kinds.inference.workloads import QUALITY, spec
from tests.app.runs.reporting import TENANT, reporter

NAME = "faces"
SPEC = spec(
    batches=[1],
    variants=[{"name": "small", "accuracy": 0.7}],
    servers=[{"name": "cpu", "maximum": 1}],
    users=[{"name": "web", "quality": QUALITY}],
)
LAYOUT = Layout(SPEC)
EACH = SPEC.model_copy(
    update={"policies": "per_user", "users": (*SPEC.users, SPEC.users[0].model_copy(update={"name": "mobile"}))}
)
"""The same for two users, each with an agent of its own; the second one asks for nothing."""


def registered(database: Database, spec: InferenceSpec = SPEC) -> str:
    """The workload, and a model that says that batches take 20 ms."""
    workloads.register(database, TENANT, spec)
    publish_model(database, 1.0, spec)
    return NAME


def publish_model(database: Database, slower: float, spec: InferenceSpec = SPEC) -> int:
    """A model by which batches take so much longer; its version."""
    known = model(Layout(spec))
    seconds = known.log_seconds + np.log(slower)
    belief = ServiceModel(seconds, np.full(1, 0.1), known.rate, known.variation, known.measured)
    with database.session() as session:
        row = workloads.require(session, TENANT, NAME)
        return domain_models.publish(session, row.id, 1, {}, belief.to_bytes())


def artifact(*, waits: bool, spec: InferenceSpec = SPEC) -> bytes:
    """A policy that starts whatever it can, or nothing; one for each user where each has its own."""
    if spec.policies == "one":
        return _saved(LAYOUT.entries, LAYOUT.actions, waits)
    each = clients(Layout(spec))
    return save_roles({name: _saved(own.entries, own.actions, waits) for name, own in each.items()})


def _saved(entries: Sequence[str], actions: int, waits: bool) -> bytes:
    bias = np.arange(actions, dtype=np.float32)
    bias[WAIT] = 99.0 if waits else -99.0
    arrays = {"advantage.weight": np.zeros((actions, len(entries)), np.float32), "advantage.bias": bias}
    config = {"algorithm": "dqn", "layers": [], "activation": "relu", "dueling": False}
    return save(NetworkPolicy.build(config, {**arrays}), "inference", entries, actions, {})


def publish_agent(
    database: Database,
    model_version: int,
    *,
    waits: bool = False,
    good: bool = True,
    spec: InferenceSpec = SPEC,
    **more: Any,
) -> int:
    """An agent as a worker publishes it that was asked not to promote it; its version."""
    report = {"algorithm": "dqn", "good_enough": good, "reason": "as planted", **more}
    trained = TrainingResult(1, model_version, "dqn", 0, report, artifact(waits=waits, spec=spec), False, "as planted")
    with database.session() as session:
        return agents.publish(session, workloads.require(session, TENANT, NAME).id, trained)


def finish(database: Database, job: str, state: str = "succeeded", **result: int) -> None:
    """End a job as its worker does."""
    with database.session() as session:
        row = session.get_one(Job, job)
        row.state, row.result = state, result or None


class Served:
    """A run: a request every quarter of a second, each served as decided."""

    def __init__(self, database: Database, run: str) -> None:
        self.database, self.run, self.number, self.now = database, run, 0, 0.0
        self.ends: list[tuple[float, float]] = []

    def go(self, reports: int, slower: float = 1.0) -> list[dict[str, Any]]:
        """The decisions on so many reports, of a process that has just started."""
        taker = reporter(self.database)

        async def all_of_them() -> list[dict[str, Any]]:
            return [await self._step(taker, slower) for _ in range(reports)]

        return asyncio.run(all_of_them())

    async def _step(self, taker: Any, slower: float) -> dict[str, Any]:
        self.now += 0.125
        over = [(at, took) for at, took in self.ends if at <= self.now]
        self.ends = [one for one in self.ends if one[0] > self.now]
        report = {
            "at": self.now,
            "arrived": [{"user": "web", "at": self.now}] if self.number % 2 == 0 else [],
            "finished": [{"server": "cpu-0", "at": at, "seconds": took} for at, took in over],
        }
        status, answer = await taker.report(TENANT, self.run, self.number, json.dumps(report).encode())
        assert status == 201
        decision: dict[str, Any] = json.loads(answer)
        self.ends += [(self.now + 0.02 * slower, 0.02 * slower) for _ in decision["start"]]
        self.number += 1
        return decision

"""Models and agents as workers publish them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.agents import service as agents
from app.agents.repository import AGENTS
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, initial_table
from app.kinds.iterative.policies import save
from app.policies.artifact import save_roles
from app.samples.service import layout_of
from app.workloads import service as workloads

TENANT = "default"


def doubling(layout: Layout, seen_high: float = 8.0) -> ModelTable:
    """Seconds double with every step of the allocation: 2, 4, 8 …; the interval is from half to twice as long."""
    table = initial_table(layout)
    table.log_mean[layout.seconds, :, 0, 0] = np.log(2) * (1 + np.arange(len(layout.allocations)))
    table.noise_sd[:] = 0.0
    table.marginal_low[:] = -np.log(2)
    table.marginal_high[:] = np.log(2)
    table.seen_high[:] = seen_high
    return ModelTable(**{**table.__dict__, "informed": True})


def publish_model(database: Database, name: str, report: dict[str, Any] | None = None, seen_high: float = 8.0) -> int:
    """A model of seconds that double with every step, of samples up to ``seen_high`` units."""
    with database.session() as session:
        workload = workloads.require(session, TENANT, name)
        table = doubling(layout_of(workload), seen_high).to_bytes()
        return domain_models.publish(session, workload.id, workload.spec_version, report or {"family": "none"}, table)


def publish_agent(
    database: Database, name: str, *, promote: bool = False, heuristic: str = "threshold", roles: Sequence[str] = ()
) -> int:
    """An agent that is a heuristic; with roles one for each, that differ between versions."""
    with database.session() as session:
        workload = workloads.require(session, TENANT, name)
        artifact = save(HeuristicPolicy({"heuristic": heuristic}), layout_of(workload))
        if roles:
            version = (AGENTS.newest(session, workload.id) or 0) + 1
            known = [{"heuristic": heuristic, "role": f"{role}-{version}"} for role in roles]
            each = [save(HeuristicPolicy(config), layout_of(workload)) for config in known]
            artifact = save_roles(dict(zip(roles, each, strict=True)))
        trained = TrainingResult(1, 1, "dqn", 0, {"algorithm": "dqn"}, artifact, promote, "good enough")
        return agents.publish(session, workload.id, trained)

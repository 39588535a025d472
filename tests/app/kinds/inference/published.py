"""A domain model and agents of kind ``inference``, as workers publish them."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.inference.awarding import Client, layouts
from app.kinds.inference.layout import Layout
from app.kinds.inference.spec import InferenceSpec
from app.policies.artifact import save, save_roles
from app.policies.network import NetworkPolicy
from app.workloads import service as workloads
from tests.app.kinds.inference.runs import model


def network(layout: Layout | Client) -> bytes:
    """An artifact that prefers its last legal actions, whatever it sees."""
    entries, actions = len(layout.entries), layout.actions
    arrays = {
        "advantage.weight": np.zeros((actions, entries), np.float32),
        "advantage.bias": np.arange(actions, dtype=np.float32),
    }
    config = {"algorithm": "dqn", "layers": [], "activation": "relu", "dueling": False}
    return save(NetworkPolicy.build(config, {**arrays}), "inference", layout.entries, actions, {})


def publish(database: Database, spec: dict[str, Any]) -> dict[str, bytes]:
    """A domain model and an agent; its artifacts by role."""
    layout = Layout(InferenceSpec.model_validate(spec))
    parts = {role: network(own) for role, own in layouts(layout).items()}
    artifact = save_roles(parts) if len(parts) > 1 else parts["default"]
    with database.session() as session:
        workload = workloads.require(session, "default", spec["name"])
        table = model(layout).to_bytes()
        domain_models.publish(session, workload.id, workload.spec_version, {"family": "none"}, table)
        agents.publish(
            session, workload.id, TrainingResult(1, 1, "dqn", 0, {"algorithm": "dqn"}, artifact, False, "as said")
        )
    return parts

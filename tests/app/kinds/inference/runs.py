"""Runs of kind ``inference`` for tests: an engine that is reported to, without a service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from app.kinds.contract.engine import Pending, RolePolicy, Shadow, Snapshot
from app.kinds.engine import RunMemory
from app.kinds.inference.decision import InferenceDecision, InferenceStart
from app.kinds.inference.kind import KIND
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.policies import Compiled
from app.kinds.inference.queue import RunState
from app.kinds.inference.spec import InferenceSpec
from app.policies.artifact import Artifact
from tests.answers import all_answered

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def model(layout: Layout) -> ServiceModel:
    """Variant v takes 0.02 · 2^v · (0.5 + 0.5 · batch) seconds on every server, for certain."""
    users, variants, batches = layout.shape
    each = 0.02 * 2.0 ** np.arange(variants)[:, None] * (0.5 + 0.5 * layout.batches)
    classes = len(layout.servers)
    log_seconds = np.broadcast_to(np.log(each), (1, classes, variants, batches))
    measured = np.ones((classes, variants), np.bool_)
    return ServiceModel(log_seconds, np.zeros(variants), np.ones((users, 1)), np.zeros(users), measured)


def compiled(spec: InferenceSpec, artifacts: Mapping[str, Artifact] = {}, *, known: bool = True) -> Compiled:
    """A workload; ``known``: with a domain model; with champions by role."""
    layout = KIND.layout(spec)
    policies = {role: RolePolicy(3, artifact) for role, artifact in artifacts.items()}
    default = artifacts.get("default")
    version = 3 if default else None
    belief = model(layout) if known else None
    return KIND.engine.compile(Snapshot("w", spec.name, 1, spec, layout, belief, 1, version, default, 1, "", policies))


@dataclass
class Live:
    """A run of a compiled workload."""

    on: Compiled
    carried: bool = False
    shadow: Shadow | None = None
    iteration: int = 0
    memory: RunMemory = field(init=False)

    def __post_init__(self) -> None:
        start = InferenceStart(workload="w", carried=self.carried)
        self.memory = KIND.engine.begin(self.on, "r", start, NOW).state

    @property
    def state(self) -> RunState:
        """The queues and servers."""
        state: RunState = self.memory.state
        return state

    def report(self, at: float, **events: Any) -> InferenceDecision:
        """The decision on a report."""
        report = KIND.engine.decode(json.dumps({"at": at, **events}).encode())
        read = KIND.engine.read(self.on, self.memory, self.iteration, report)
        pending = Pending("r", self.iteration, self.memory, read, {}, self.shadow)
        [answered] = all_answered(KIND.engine.answer(self.on, [pending], NOW))
        self.memory, self.iteration = answered.state, self.iteration + 1
        return InferenceDecision.model_validate_json(answered.decision)


def arrivals(user: str, *times: float) -> list[dict[str, Any]]:
    """Requests of a user."""
    return [{"user": user, "at": at} for at in times]

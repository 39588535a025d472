"""CompiledWorkloads of decisions for tests, without any database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from app.kinds.contract.engine import Snapshot
from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.decide import Answer
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import experience_of
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import State, advance, begin
from app.policies.artifact import Artifact
from tests.planted import planted_spec, planted_table

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Scripted:
    """A policy that says the same action always, or fails."""

    name = "scripted"

    def __init__(self, action: int, gain: float = 1.0, failing: bool = False) -> None:
        self.action, self.gain, self.failing = action, gain, failing
        self.config: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {}

    def act(self, situation: Situation) -> Choice:
        if self.failing:
            raise RuntimeError("the network is broken")
        batch, actions = situation.view.mask.shape
        values = np.zeros((batch, actions))
        values[:, self.action] = self.gain
        return Choice(np.full(batch, self.action), values)

    @classmethod
    def build(cls, config: dict[str, Any], arrays: dict[str, Any]) -> Scripted:
        return cls(**config)


def compiled(
    spec: Spec | None = None,
    table: ModelTable | str | None = "planted",
    policy: Scripted | None = None,
    problem: str = "",
) -> Compiled:
    """A compiled of the planted workload; ``table=None`` is before the first model."""
    spec = spec or planted_spec()
    layout = Layout(spec)
    artifact = Artifact(policy, (), len(layout.deltas), experience_of(layout), "iterative") if policy else None
    snapshot = Snapshot(
        workload_id="w",
        name=spec.name,
        spec_version=1,
        spec=spec,
        layout=layout,
        model=planted_table(spec) if isinstance(table, str) else table,
        model_version=1,
        agent_version=3 if policy or problem else None,
        artifact=artifact,
        revision=1,
        problem=problem,
    )
    return Compiled(snapshot)


def seconds(allocation: float) -> float:
    """What the planted workload takes at an allocation."""
    return 2 + 60 / allocation + 0.1 * allocation


def reported(on: Compiled, allocations: list[int], slower: float = 1.0, iterations: int = 5) -> State:
    """Runs that held each of ``allocations`` for some iterations, ``slower`` times as long as the model says."""
    levels = np.array([[on.layout.spec.resources[0].level(a)] for a in allocations])
    state = begin(on.projector, levels)
    measured = np.array([[slower * seconds(a)] for a in allocations])
    for _ in range(iterations):
        state = advance(on.projector, state, levels.astype(np.int16), measured, np.zeros((len(levels), 0)))
    return state


def plain(answer: Answer) -> dict[str, Any]:
    """A decision as a caller reads it."""
    decision: dict[str, Any] = msgspec.json.decode(answer.decision)
    return decision

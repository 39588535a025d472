"""Compiled workloads and their decisions for tests, without any database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np

from app.kinds.contract.engine import EncodedDecision, Pending, Shadow, Snapshot
from app.kinds.contract.policy import Choice, Situation
from app.kinds.engine import Engine, KindDecision, RunMemory
from app.kinds.iterative import decide as decider
from app.kinds.iterative.compiled import NONE, Compiled
from app.kinds.iterative.engine import NOTHING, IterativeServing
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import experience_of
from app.kinds.iterative.report import Decision
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import RunState, State, advance, begin
from app.policies import artifact as policies
from app.policies.artifact import Artifact, Memories
from tests.answers import all_answered
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


class Subject(NamedTuple):
    """Whom a decision is for.

    Attributes:
        run: None for a state given in full.
        reported: the last reported iteration.
        notices: codes of what its last decision said beside the reason.
        memories: what agents remember of it.
    """

    run: str | None
    reported: int
    shadow: Shadow | None = None
    notices: frozenset[int] = NONE
    memories: Memories = policies.NOTHING


class AsGiven(IterativeServing):
    """Decides for runs whose reports are the states after them, B = 1 each."""

    def gather(self, compiled: Compiled, pending: Sequence[Pending]) -> decider.Batch:
        """The states put together."""
        columns: Any = zip(*(one.report for one in pending), strict=True)
        state = State(*(np.concatenate(column) for column in columns))
        return decider.make_batch(
            compiled, state, [one.state.state.notices for one in pending], [NOTHING] * len(pending)
        )

    def hold(self, compiled: Compiled, one: Pending, failure: str) -> KindDecision:
        """The state's allocation."""
        return decider.hold(compiled, one.report, NOTHING, 0, failure)


ENGINE = Engine("iterative", Decision, AsGiven())


def decide(on: Compiled, state: State, subjects: Sequence[Subject], now: datetime) -> list[EncodedDecision]:
    """The answer for each run of ``state`` (leading dimension B)."""
    pending = [
        Pending(
            subject.run,
            subject.reported,
            RunMemory(RunState(np.zeros(0), NOTHING, subject.notices), subject.memories),
            decider.row(state, i),
            {},
            subject.shadow,
        )
        for i, subject in enumerate(subjects)
    ]
    return all_answered(ENGINE.answer(on, pending, now))


def begun(on: Compiled, state: State) -> dict[str, Any]:
    """The first decision for a run that has reported nothing, as a caller reads it."""
    [decision] = ENGINE.answer_states(on, [decider.begin(on, state)], NOW)
    return dict(msgspec.json.decode(decision))


def plain(answer: EncodedDecision) -> dict[str, Any]:
    """A decision as a caller reads it."""
    decision: dict[str, Any] = msgspec.json.decode(answer.decision)
    return decision

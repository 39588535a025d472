"""The engine of kind ``workflow``; its contract is ``app.kinds.contract.engine``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from app.kinds.contract.engine import Answered, DecidedInRuns, Pending, Snapshot
from app.kinds.contract.inputs import FieldIssue
from app.kinds.contract.kind import RunStart
from app.kinds.workflow.advance import advance, implausible
from app.kinds.workflow.decide import Compiled, Subject, answer, begun
from app.kinds.workflow.plan_search import PlanSearch
from app.kinds.workflow.queue import State, begin, pack, unpack
from app.kinds.workflow.report import EncodedQueue, decode
from app.kinds.workflow.spec import AGENT, STRATEGIES
from app.kinds.workflow.views import risk

TASK_BYTES, INPUT_BYTES, REMEMBERED_BYTES, TURN_BYTES = 500, 150, 1_000, 250
"""Of numbers, texts and what holds them, as measured."""


class Read(NamedTuple):
    """The state after a report, and what looks wrong in it."""

    state: State
    warnings: tuple[FieldIssue, ...]


class WorkflowEngine(DecidedInRuns):
    """A run's state is its queue; reading a report is advancing it."""

    def __init__(self) -> None:
        self.search = PlanSearch()

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Nodes, run-time predictor, and who chooses."""
        return Compiled(snapshot, self.search)

    def rules(self, compiled: Compiled) -> Sequence[str]:  # noqa: ARG002
        """All strategies, and the scheduler that ships with the package, with the spec's backfilling."""
        return (*STRATEGIES, AGENT)

    def begin(self, compiled: Compiled, run: str, start: RunStart, now: datetime) -> Answered:  # noqa: ARG002
        """Nothing starts before the first report."""
        state = begin(compiled.layout)
        return Answered(begun(compiled, state, run, now), state, quiet=True)

    def decode(self, body: bytes) -> EncodedQueue:
        """A queue, whole or as what has changed."""
        return decode(body)

    def takes_long(self, compiled: Compiled, state: State, report: EncodedQueue) -> bool:  # noqa: ARG002
        """Whether there is any task: plans of few take long, too."""
        return bool(len(state.queue) or report.queued or report.running)

    def read(self, compiled: Compiled, state: State, iteration: int, report: Any) -> Read:  # noqa: ARG002
        """The state after the report.

        Raises:
            InvalidInput: what can't be in any run.
            Contradiction: what contradicts the reports before.
        """
        after = advance(compiled.layout, state, report)
        return Read(after, tuple(implausible(after, report)))

    def answer(self, compiled: Compiled, pending: Sequence[Pending], now: datetime) -> list[Answered]:
        """Decide run by run, in the order of ``pending``."""
        found = []
        for one in pending:
            subject = Subject(one.run, one.iteration, one.shadow, one.report.warnings)
            decision, state = answer(compiled, one.report.state, subject, now)
            found.append(Answered(decision, state, risk=risk(compiled, state), quiet=not len(state.queue)))
        return found

    def serialise(self, state: State) -> msgspec.Raw:
        """Columns of the queue."""
        return msgspec.Raw(msgspec.json.encode(pack(state)))

    def restore(self, stored: list[Any]) -> State:
        """The state whose ``serialise`` was stored."""
        return unpack(stored)

    def weight(self, state: State) -> int:
        """Bytes of tasks, of their inputs and plan, and of what is remembered of tasks and users that have gone."""
        queue = state.queue
        inputs = sum(map(len, queue.inputs)) if queue.linked else 0
        remembered = len(state.ended) + len(state.history) + len(state.nodes)
        turns = len(state.plan.turns) if state.plan else 0
        return len(queue) * TASK_BYTES + inputs * INPUT_BYTES + remembered * REMEMBERED_BYTES + turns * TURN_BYTES

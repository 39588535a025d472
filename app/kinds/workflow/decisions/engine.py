"""The desk of kind ``workflow``; its contract is ``app.kinds.contract.engine``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

import msgspec

from app.http.query import invalid
from app.kinds.contract.base import FieldIssue, InvalidInput
from app.kinds.contract.engine import Answered, Asked, Query
from app.kinds.workflow.decisions.compiled import Basis
from app.kinds.workflow.decisions.decide import Subject, answer, begun
from app.kinds.workflow.decisions.report import EncodedQueue, decode
from app.kinds.workflow.decisions.schemas import EncodedQueueDecision
from app.kinds.workflow.queue.advance import advance
from app.kinds.workflow.queue.plausibility import doubts
from app.kinds.workflow.queue.state import State, begin, pack, unpack
from app.workloads.snapshot import Serving

NO_STATE = (
    "workloads of kind workflow are decided for in runs: start one with POST /runs, report its queue whole as "
    "iteration 0, and read the answer again with GET /decision?run=…"
)


TASK_BYTES, INPUT_BYTES, REMEMBERED_BYTES = 500, 150, 250
"""Of numbers, texts and what holds them, as measured."""


class Read(NamedTuple):
    """The state after a report, and what looks wrong in it."""

    state: State
    warnings: tuple[FieldIssue, ...]


class WorkflowDesk:
    """A run's state is its queue; reading a report is advancing it."""

    quick = False
    fields: Sequence[str] = EncodedQueueDecision.__struct_fields__

    def compile(self, serving: Serving) -> Basis:
        """Nodes, run-time predictor, and who chooses."""
        return Basis(serving)

    def begin(
        self,
        basis: Basis,
        run: str,
        targets: Mapping[str, float],
        features: Mapping[str, float] | None,
        now: datetime,
    ) -> Answered:
        """Nothing starts before the first report.

        Raises:
            InvalidInput: targets or features, which this kind hasn't.
        """
        given = [("targets", targets), ("features", features or {})]
        issues = [
            FieldIssue(f"/{part}/{name}", "workloads of kind workflow have none", value)
            for part, values in given
            for name, value in values.items()
        ]
        if issues:
            raise InvalidInput(issues)
        state = begin(basis.layout)
        return Answered(begun(basis, state, run, now), state)

    def decode(self, body: bytes) -> EncodedQueue:
        """A queue, whole or as what has changed."""
        return decode(body)

    def read(self, basis: Basis, state: State, iteration: int, report: Any) -> Read:  # noqa: ARG002
        """The state after the report.

        Raises:
            InvalidInput: what can't be in any run.
            Contradiction: what contradicts the reports before.
        """
        after = advance(basis.layout, state, report)
        return Read(after, tuple(doubts(after, report)))

    def answer(self, basis: Basis, asked: Sequence[Asked], now: datetime) -> list[Answered]:
        """One after the other."""
        return [
            Answered(
                *answer(basis, one.report.state, Subject(one.run, one.iteration, one.shadow, one.report.warnings), now)
            )
            for one in asked
        ]

    def freeze(self, state: State) -> msgspec.Raw:
        """Columns of the queue."""
        return msgspec.Raw(msgspec.json.encode(pack(state)))

    def thaw(self, stored: list[Any]) -> State:
        """The queue."""
        return unpack(stored)

    def weight(self, state: State) -> int:
        """Bytes of tasks, of their inputs, and of what is remembered of tasks and users that have gone."""
        queue = state.queue
        inputs = sum(map(len, queue.inputs)) if queue.linked else 0
        remembered = len(state.ended) + len(state.history) + len(state.nodes)
        return len(queue) * TASK_BYTES + inputs * INPUT_BYTES + remembered * REMEMBERED_BYTES

    def given(self, basis: Basis, query: Query) -> NoReturn:  # noqa: ARG002
        """No query holds a queue.

        Raises:
            Invalid: always; it says what to do instead.
        """
        raise invalid("/query/workload", NO_STATE, basis.serving.name)

    def answer_given(self, basis: Basis, given: Sequence[Any], now: datetime) -> list[bytes]:  # noqa: ARG002
        """None: ``given`` gives none."""
        return []

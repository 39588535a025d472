"""The engine of kind ``inference``; its contract is ``app.kinds.contract.engine``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.kinds.contract.engine import Answered, DecidedInRuns, Pending, Snapshot
from app.kinds.contract.inputs import invalid
from app.kinds.inference.decisions.answer import answer, begun
from app.kinds.inference.decisions.compiled import Compiled
from app.kinds.inference.decisions.read import Read
from app.kinds.inference.decisions.schemas import InferenceStart
from app.kinds.inference.model import DAY_SECONDS
from app.kinds.inference.queue.advance import CARRIED
from app.kinds.inference.queue.report import EncodedReport, decode
from app.kinds.inference.queue.state import RunState, begin, pack, unpack, weight

FEW_EVENTS = 1_000  # reading them takes some 6 ms


class InferenceEngine(DecidedInRuns):
    """A run's state is who waits and what servers do; reading a report is advancing it."""

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Servers, expected seconds, and who chooses."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """Names of dispatchers, each with its scaler; without a domain model the one that needs none."""
        return tuple(compiled.rules)

    def begin(self, compiled: Compiled, run: str, start: InferenceStart, now: datetime) -> Answered:
        """Nothing starts before the first report.

        Raises:
            InvalidInput: a rule is named in a run that the client decides for.
        """
        if start.carried and start.policy is not None:
            raise invalid("/policy", "must be null where carried is true: the client decides", start.policy)
        usual = None if start.carried else compiled.projector.usual  # a client that decides is told no rates
        midnight = now.timestamp() % DAY_SECONDS
        state = begin(compiled.layout, compiled.fleet, usual, carried=start.carried, midnight=midnight)
        return begun(compiled, state, run, now)

    def decode(self, body: bytes) -> EncodedReport:
        """A batch of events."""
        return decode(body)

    def takes_long(self, compiled: Compiled, state: RunState, report: EncodedReport) -> bool:  # noqa: ARG002
        """Whether there are many events, or requests that wait."""
        events = len(report.arrived) + len(report.finished) + len(report.servers) + len(report.started)
        return events + sum(len(queue.at) for queue in state.queues) > FEW_EVENTS

    def read(self, compiled: Compiled, state: RunState, iteration: int, report: EncodedReport) -> Read:  # noqa: ARG002
        """The state after the report.

        Raises:
            InvalidInput: what can't be in any run.
            Contradiction: what contradicts the reports before.
        """
        if report.started and not state.carried:
            raise invalid("/started", CARRIED, len(report.started))
        return Read(compiled, state, report)

    def answer(self, compiled: Compiled, pending: Sequence[Pending], now: datetime) -> list[Answered]:
        """Decide all runs at once, in the order of ``pending``."""
        return answer(compiled, pending, now)

    def serialise(self, state: RunState) -> msgspec.Raw:
        """A state as JSON, for ``restore``."""
        return msgspec.Raw(msgspec.json.encode(pack(state)))

    def restore(self, stored: list[Any]) -> RunState:
        """The state whose ``serialise`` was stored."""
        return unpack(stored)

    def weight(self, state: RunState) -> int:
        """Requests and servers, about."""
        return weight(state)

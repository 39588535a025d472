"""The engine of kind ``inference``; its contract is ``app.kinds.contract.engine``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from app.kinds.contract.drift import Residuals
from app.kinds.contract.engine import Answered, DecidedInRuns, Pending, Snapshot
from app.kinds.contract.inputs import invalid
from app.kinds.inference.decisions.answer import Asked, Subject, answer, begun
from app.kinds.inference.decisions.compiled import Compiled
from app.kinds.inference.decisions.schemas import InferenceStart
from app.kinds.inference.model import DAY_SECONDS
from app.kinds.inference.queue.advance import CARRIED, advance
from app.kinds.inference.queue.ledger import Dropped
from app.kinds.inference.queue.report import EncodedReport, decode
from app.kinds.inference.queue.state import RunState, begin, pack, unpack, weight


class Read(NamedTuple):
    """The state after a report, the requests that were given up in it, and what it says of a drift."""

    state: RunState
    dropped: list[Dropped]
    residuals: Residuals | None


class InferenceEngine(DecidedInRuns):
    """A run's state is who waits and what servers do; reading a report is advancing it."""

    quick = True

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Servers, expected seconds, and who chooses."""
        return Compiled(snapshot)

    def begin(self, compiled: Compiled, run: str, start: InferenceStart, now: datetime) -> Answered:
        """Nothing starts before the first report."""
        state = begin(compiled.layout, compiled.fleet, carried=start.carried, midnight=now.timestamp() % DAY_SECONDS)
        return Answered(begun(compiled, state, run, now), state)

    def decode(self, body: bytes) -> EncodedReport:
        """A batch of events."""
        return decode(body)

    def read(self, compiled: Compiled, state: RunState, iteration: int, report: EncodedReport) -> Read:  # noqa: ARG002
        """The state after the report.

        Raises:
            InvalidInput: what can't be in any run.
            Contradiction: what contradicts the reports before.
        """
        if report.started and not state.carried:
            raise invalid("/started", CARRIED, len(report.started))
        ledger = compiled.ledger(state)
        advance(ledger, report)
        residuals = None if compiled.watch is None else compiled.watch.residuals(ledger, report)
        return Read(ledger.state(), ledger.dropped, residuals)

    def answer(self, compiled: Compiled, pending: Sequence[Pending], now: datetime) -> list[Answered]:
        """Decide all runs at once, in the order of ``pending``."""
        asked = [
            Asked(one.report.state, one.report.dropped, Subject(one.run, one.iteration, one.shadow)) for one in pending
        ]
        answers = zip(answer(compiled, asked, now), pending, strict=True)
        return [answered._replace(residuals=one.report.residuals) for answered, one in answers]

    def serialise(self, state: RunState) -> msgspec.Raw:
        """Queues and servers."""
        return msgspec.Raw(msgspec.json.encode(pack(state)))

    def restore(self, stored: list[Any]) -> RunState:
        """See ``serialise``."""
        return unpack(stored)

    def weight(self, state: RunState) -> int:
        """Requests and servers, about."""
        return weight(state)

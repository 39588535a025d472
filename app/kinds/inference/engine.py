"""Serving of kind ``inference``: batches to start, and the number of servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from app.charts.text import seconds
from app.kinds.contract.engine import Pending, Residuals, Snapshot
from app.kinds.contract.inputs import invalid
from app.kinds.engine import Choices, DecidedBy, Engine, KindDecision, Serving
from app.kinds.inference.advance import CARRIED, advance
from app.kinds.inference.choices import Chooser, DecisionChanges, Start, decide
from app.kinds.inference.decision import (
    InferenceDecision,
    InferenceStart,
    carried_reason,
    reason,
)
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import DAY_SECONDS
from app.kinds.inference.policies import Compiled, check
from app.kinds.inference.queue import Fleet, RunState, begin, pack, unpack, weight
from app.kinds.inference.report import TOO_OLD, DroppedRequest, InferenceReport, Ledger
from app.kinds.inference.views import risk
from app.policies.artifact import Artifact, Memory

NOTHING = DecisionChanges([], [])
FEW_EVENTS = 1_000  # reading them takes some 6 ms


class CheckedReport:
    """A validated report of a run in the state ``before``, with the queues and servers after it.

    Attributes:
        carried: whether the run's client decides.
        residuals: evidence of drift; None without a domain model.

    Raises:
        InvalidInput: the report is impossible in any run.
        Contradiction: it contradicts earlier reports.
    """

    __slots__ = ("_before", "_compiled", "_fresh", "_report", "carried", "residuals")

    def __init__(self, compiled: Compiled, before: RunState, report: InferenceReport) -> None:
        self._compiled, self._before, self._report = compiled, before, report
        self.carried = before.carried
        self._fresh: Ledger | None
        self._fresh, self.residuals = self._advance()

    def ledger(self) -> Ledger:
        """Return a new ledger after the report; the first call returns the one that validation computed."""
        fresh, self._fresh = self._fresh, None
        return self._advance()[0] if fresh is None else fresh

    def _advance(self) -> tuple[Ledger, Residuals | None]:
        compiled, report = self._compiled, self._report
        ledger = compiled.ledger(self._before)
        advance(ledger, report)
        return ledger, None if compiled.watch is None else compiled.watch.residuals(ledger, report)


class InferenceServing(Serving):
    """Serving of inference runs, whose states (``RunState``) are their queues and servers; ``CheckedReport`` holds a
    report with the state after it."""

    report = InferenceReport
    failed_shadow: ClassVar[Mapping[str, Any]] = {"start": [], "agrees": False, "gain": None}

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Compile a snapshot: servers, expected seconds, and the deciding policy."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """Return the heuristics' names (dispatcher and scaler); without a domain model, of the one that needs none."""
        return tuple(compiled.rules)

    def begin(self, compiled: Compiled, start: InferenceStart, now: datetime) -> KindDecision:
        """Return the first decision of a run that starts at ``now`` (UTC), before any report: no batch starts.

        Raises:
            InvalidInput: ``start`` names a rule although the client decides.
        """
        if start.carried and start.policy is not None:
            raise invalid("/policy", "must be null where carried is true: the client decides", start.policy)
        usual = None if start.carried else compiled.projector.usual  # clients that decide start from rate 0
        midnight = now.timestamp() % DAY_SECONDS
        state = begin(compiled.layout, compiled.fleet, usual, carried=start.carried, midnight=midnight)
        ledger, why = compiled.ledger(state), "no report yet: report requests and finished batches as iteration 0"
        own = _kind_fields(compiled, ledger, NOTHING) | {"expected": compiled.expected() if start.carried else None}
        return KindDecision(
            own,
            {"code": "begun", "text": why},
            noop=True,
            state=state,
            source="heuristic",
            quiet=own["wake_at"] is None,
        )

    def takes_long(self, compiled: Compiled, state: RunState, report: InferenceReport) -> bool:
        """Return whether the report's events and the waiting requests together exceed ``FEW_EVENTS``."""
        events = len(report.arrived) + len(report.finished) + len(report.servers) + len(report.started)
        return events + sum(len(queue.at) for queue in state.queues) > FEW_EVENTS

    def read(self, compiled: Compiled, state: RunState, iteration: int, report: InferenceReport) -> CheckedReport:
        """Validate a report and compute the state after it.

        Raises:
            InvalidInput: the report is impossible in any run, or reports starts although the service decides.
            Contradiction: it contradicts earlier reports.
        """
        if report.started and not state.carried:
            raise invalid("/started", CARRIED, len(report.started))
        return CheckedReport(compiled, state, report)

    def agent(self, compiled: Compiled, artifact: Artifact) -> Chooser:
        """Return a chooser that uses the agent in every role it was made for.

        Raises IncompatibleArtifact if it doesn't fit the layout."""
        check(artifact, compiled.layout)
        return compiled.chooser_of(artifact)

    def choose(
        self,
        compiled: Compiled,
        batch: Sequence[Pending],
        agent: Chooser | None,
        memory: Memory | None,
        now: datetime,
    ) -> Choices:
        """Decide all runs of the batch at once, by ``agent`` or, if None, the heuristic; a run whose client decides
        starts nothing.

        Returns:
            Choices, with each run's ledger after its decision as ``detail``.

        Raises:
            IllegalAction: the agent chose a masked action.
        """
        ledgers = [one.report.ledger() for one in batch]
        several = [ledger for ledger in ledgers if not ledger.carried]
        decided = iter(decide(several, agent or compiled.spare))
        return Choices([NOTHING if ledger.carried else next(decided) for ledger in ledgers], ledgers)

    def write(
        self, compiled: Compiled, batch: Sequence[Pending], choices: Choices, decided_by: DecidedBy
    ) -> list[KindDecision]:
        """Return one decision per run: batches that start, dropped requests, and changes of servers."""
        failure, rows = decided_by.preface(compiled.heuristic), zip(batch, choices.each, choices.detail, strict=True)
        return [_written_decision(compiled, one, decided, ledger, failure) for one, decided, ledger in rows]

    def hold(self, compiled: Compiled, one: Pending, failure: str) -> KindDecision:
        """Return a decision after ``failure`` (its text): no batch starts, and the servers stay as they are."""
        ledger = one.report.ledger()
        own = _kind_fields(compiled, ledger, NOTHING)
        return KindDecision(
            own,
            {"code": "fallback", "text": f"{failure}; nothing starts"},
            noop=not ledger.dropped,
            state=ledger.state(),
            residuals=one.report.residuals,
            risk=None,
            quiet=own["wake_at"] is None,
        )

    def compare(
        self, compiled: Compiled, batch: Sequence[Pending], row: int, done: Any, other: Choices
    ) -> dict[str, Any]:
        """Return a shadow's starts for run ``row``, and whether its decision equals ``done``; ``gain`` is None."""
        decided = other.each[row]
        starts = [_start(compiled.layout, compiled.fleet, start) for start in decided.starts]
        return {"start": starts, "agrees": decided == done, "gain": None}

    def pack(self, state: RunState) -> list[Any]:
        """Return ``state`` as lists, numbers and texts, for JSON."""
        return pack(state)

    def unpack(self, stored: list[Any]) -> RunState:
        """Return the state from lists that ``pack`` returned."""
        return unpack(stored)

    def weight(self, state: RunState) -> int:
        """Approximate size of a state in memory, in bytes."""
        return weight(state)


ENGINE = Engine("inference", InferenceDecision, InferenceServing())


def _written_decision(
    compiled: Compiled, one: Pending, decided: DecisionChanges, ledger: Ledger, failure: str
) -> KindDecision:
    own = _kind_fields(compiled, ledger, decided)
    return KindDecision(
        own,
        carried_reason(ledger, compiled.snapshot.answering) if ledger.carried else reason(ledger, decided, failure),
        noop=not (decided.starts or decided.turns or ledger.dropped),
        state=ledger.state(),
        policy="carried" if ledger.carried else None,
        residuals=one.report.residuals,
        risk=risk(compiled.layout.users, ledger.qualities()),
        quiet=own["wake_at"] is None,
    )


def _kind_fields(compiled: Compiled, ledger: Ledger, decided: DecisionChanges) -> dict[str, Any]:
    layout, names, (starts, turns) = compiled.layout, compiled.fleet.names, decided
    return {
        "at": ledger.now,
        "start": [_start(layout, compiled.fleet, start) for start in starts],
        "drop": _drops(layout, ledger.dropped) if ledger.dropped else [],
        "servers": dict(zip(layout.servers, ledger.on(), strict=True)),
        "turn_on": [names[place] for place, on in turns if on],
        "turn_off": [names[place] for place, on in turns if not on],
        "wake_at": (None if ledger.carried else ledger.next_look()),
        "waiting": dict(zip(layout.users, ledger.waiting(), strict=True)),
        "quality": dict(zip(layout.users, ledger.qualities(), strict=True)),
        "expected": None,
    }


def _start(layout: Layout, fleet: Fleet, start: Start) -> dict[str, Any]:
    batch = start.batch
    user, variant = layout.users[batch.user], layout.variants[batch.variant]
    return {
        "server": fleet.names[start.place],
        "user": user,
        "variant": variant,
        "batch": start.size,
        "requests": batch.ids,
        "expected_seconds": start.seconds,
    }


def _drops(layout: Layout, dropped: Sequence[DroppedRequest]) -> list[dict[str, Any]]:
    groups: dict[tuple[int, str], list[str]] = {}
    for one in dropped:
        groups.setdefault((one.user, one.why), []).append(one.id)
    return [
        {"user": layout.users[user], "requests": ids, "why": _drop_reason(layout, user, why)}
        for (user, why), ids in groups.items()
    ]


def _drop_reason(layout: Layout, user: int, why: str) -> str:
    if why == TOO_OLD:
        return f"quality is zero after {seconds(float(layout.quality.zero_at[user]))}"
    return f"queue limit of {layout.spec.queue_limit:,} exceeded"

"""Deciding: which batches start and how many servers run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from app.charts.text import seconds
from app.kinds.contract.engine import Answered, DecidedInRuns, Pending, Shadow, Snapshot
from app.kinds.contract.inputs import invalid, timestamp
from app.kinds.inference.advance import CARRIED
from app.kinds.inference.choices import Decided, Start, decide
from app.kinds.inference.engine import (
    EncodedDecision,
    EncodedDrop,
    EncodedReason,
    EncodedShadow,
    EncodedStart,
    InferenceStart,
    Read,
    carried,
    reason,
)
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import DAY_SECONDS
from app.kinds.inference.policies import Compiled, check
from app.kinds.inference.queue import Fleet, RunState, begin, pack, unpack, weight
from app.kinds.inference.report import TOO_OLD, Dropped, EncodedReport, Ledger, decode
from app.kinds.inference.views import risk

# From states to encoded decisions. Where a policy fails, the heuristic answers, and the decision says what failed.


logger = logging.getLogger(__name__)
NOTHING = Decided([], [])


class Told(NamedTuple):
    """What was decided, and who says why."""

    decided: Decided
    source: str
    policy: str
    reason: EncodedReason


class Subject(NamedTuple):
    """Whom a decision is for: a run and its last report, None before the first; and when it was made, RFC 3339."""

    run: str
    reported: int | None
    decided_at: str


def begun(compiled: Compiled, state: RunState, run: str, now: datetime) -> Answered:
    """The decision that a run starts with."""
    why = EncodedReason("begun", "nothing is reported yet: report what happens as iteration 0")
    told = Told(NOTHING, "heuristic", compiled.responder.chooser.name, why)
    ledger = compiled.ledger(state)
    decision = _encoded(compiled, ledger, Subject(run, None, timestamp(now)), told, None)
    return Answered(decision, state, quiet=_wake_at(ledger) is None)


def answer(compiled: Compiled, pending: Sequence[Pending], now: datetime) -> list[Answered]:
    """The decisions for several runs, in order, and their states with what the decisions start."""
    decided = iter(_decided(compiled, [one.report for one in pending if not one.report.carried]))
    answers, moment = [], timestamp(now)
    for one in pending:
        read, asked = one.report, one.shadow
        ledger, told = _carried(compiled, read) if read.carried else next(decided)
        shadow = None if asked is None else _consulted(compiled, read, told.decided, asked)
        decision = _encoded(compiled, ledger, Subject(one.run, one.iteration, moment), told, shadow)
        at_risk, quiet = risk(compiled.layout.users, ledger.qualities()), _wake_at(ledger) is None
        answers.append(Answered(decision, ledger.state(), read.residuals, at_risk, quiet=quiet))
    return answers


def _carried(compiled: Compiled, read: Read) -> tuple[Ledger, Told]:
    """The client decides by itself."""
    ledger = read.ledger()
    return ledger, Told(NOTHING, compiled.responder.source, "carried", carried(ledger, compiled.version))


def _decided(compiled: Compiled, several: Sequence[Read]) -> list[tuple[Ledger, Told]]:
    """The books of several runs after their decisions, and the decisions; where one fails, each run by itself."""
    ledgers, (chooser, source, failure) = [read.ledger() for read in several], compiled.responder
    try:
        decided = decide(ledgers, chooser)
    except Exception as error:
        if len(several) > 1:
            return [one for read in several for one in _decided(compiled, [read])]
        logger.exception("workload %s: policy %s failed", compiled.snapshot.name, chooser.name)
        return [
            _fallen_back(compiled, several[0], f"the policy {chooser.name} failed ({type(error).__name__}: {error})")
        ]
    return [
        (ledger, Told(one, source, chooser.name, reason(ledger, one, failure)))
        for ledger, one in zip(ledgers, decided, strict=True)
    ]


def _fallen_back(compiled: Compiled, read: Read, failure: str) -> tuple[Ledger, Told]:
    """By the heuristic."""
    ledger, chooser = read.ledger(), compiled.heuristic
    [decided] = decide([ledger], chooser)
    why = reason(ledger, decided, f"{failure}; {chooser.name} answers")
    return ledger, Told(decided, "fallback", chooser.name, why)


def _consulted(compiled: Compiled, read: Read, done: Decided, shadow: Shadow) -> EncodedShadow:
    """What a shadow would have decided; whatever goes wrong with it is told here, and changes nothing."""
    if shadow.artifact is None:
        return EncodedShadow(shadow.version, [], agrees=False, gain=None, problem=shadow.problem)
    try:
        check(shadow.artifact, compiled.layout)
        [decided] = decide([read.ledger()], compiled.consulted(shadow.artifact))
    except Exception as error:
        logger.exception("workload %s: shadow %d failed", compiled.snapshot.name, shadow.version)
        problem = f"{type(error).__name__}: {error}"
        return EncodedShadow(shadow.version, [], agrees=False, gain=None, problem=problem)
    starts = [_start(compiled.layout, compiled.fleet, start) for start in decided.starts]
    return EncodedShadow(shadow.version, starts, agrees=decided == done, gain=None, problem=None)


def _encoded(compiled: Compiled, ledger: Ledger, subject: Subject, told: Told, shadow: EncodedShadow | None) -> bytes:
    layout, (starts, turns), dropped = compiled.layout, told.decided, ledger.dropped
    decision = EncodedDecision(
        run=subject.run,
        workload=compiled.snapshot.name,
        reported=subject.reported,
        iteration=0 if subject.reported is None else subject.reported + 1,
        noop=not (starts or turns or dropped),
        source=told.source,
        agent=compiled.version,
        policy=told.policy,
        reason=told.reason,
        valid_for_iterations=1,
        decided_at=subject.decided_at,
        kind="inference",
        at=ledger.now,
        start=[_start(layout, compiled.fleet, start) for start in starts],
        drop=_drops(layout, dropped) if dropped else [],
        servers=dict(zip(layout.servers, ledger.on(), strict=True)),
        turn_on=[compiled.fleet.names[place] for place, on in turns if on],
        turn_off=[compiled.fleet.names[place] for place, on in turns if not on],
        wake_at=_wake_at(ledger),
        waiting=dict(zip(layout.users, ledger.waiting(), strict=True)),
        quality=dict(zip(layout.users, ledger.qualities(), strict=True)),
        expected=compiled.expected() if told.reason.code == "begun" and ledger.carried else None,
        shadow=shadow,
    )
    return msgspec.json.encode(decision)


def _wake_at(ledger: Ledger) -> float | None:
    """Latest time for the next report; None: at the next event. A client that decides knows that by itself."""
    return None if ledger.carried else ledger.next_look()


def _start(layout: Layout, fleet: Fleet, start: Start) -> EncodedStart:
    batch = start.batch
    user, variant = layout.users[batch.user], layout.variants[batch.variant]
    return EncodedStart(fleet.names[start.place], user, variant, start.size, list(batch.ids), start.seconds)


def _drops(layout: Layout, dropped: Sequence[Dropped]) -> list[EncodedDrop]:
    """By user and reason."""
    groups: dict[tuple[int, str], list[str]] = {}
    for one in dropped:
        groups.setdefault((one.user, one.why), []).append(one.id)
    return [EncodedDrop(layout.users[user], ids, _why(layout, user, why)) for (user, why), ids in groups.items()]


def _why(layout: Layout, user: int, why: str) -> str:
    if why == TOO_OLD:
        return f"an answer is worth nothing after {seconds(float(layout.quality.zero_at[user]))}"
    return f"more than {layout.spec.queue_limit:,} wait"


# The engine of kind ``inference``; its contract is ``app.kinds.contract.engine``.


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

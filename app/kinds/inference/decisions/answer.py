"""From states to encoded decisions. Where a policy fails, the heuristic answers, and the decision says what failed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from app.charts.text import seconds
from app.kinds.contract.engine import Answered, Pending, Shadow
from app.kinds.contract.text import timestamp
from app.kinds.inference.decisions.compiled import Compiled
from app.kinds.inference.decisions.decide import Decided, Start, decide
from app.kinds.inference.decisions.read import Read
from app.kinds.inference.decisions.reasons import carried, reason
from app.kinds.inference.decisions.schemas import (
    EncodedDecision,
    EncodedDrop,
    EncodedReason,
    EncodedShadow,
    EncodedStart,
)
from app.kinds.inference.layout import Layout
from app.kinds.inference.outcome import risk
from app.kinds.inference.policies import check
from app.kinds.inference.queue.fleet import Fleet
from app.kinds.inference.queue.ledger import TOO_OLD, Dropped, Ledger
from app.kinds.inference.queue.state import RunState

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

"""From states to encoded decisions. Where a policy fails, the heuristic answers, and the decision says what failed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from app.kinds.contract.engine import Answered, Shadow
from app.kinds.contract.text import timestamp
from app.kinds.inference.decisions.compiled import Compiled
from app.kinds.inference.decisions.decide import Decided, Start, decide
from app.kinds.inference.decisions.reasons import carried, reason, seconds_text
from app.kinds.inference.decisions.schemas import (
    EncodedDecision,
    EncodedDrop,
    EncodedReason,
    EncodedShadow,
    EncodedStart,
)
from app.kinds.inference.layout import Layout
from app.kinds.inference.policies import check
from app.kinds.inference.queue.fleet import Fleet
from app.kinds.inference.queue.ledger import TOO_OLD, Dropped, Ledger
from app.kinds.inference.queue.state import RunState

logger = logging.getLogger(__name__)
NOTHING = Decided([], [])


class Subject(NamedTuple):
    """Whom a decision is for: the run, its last report, and its shadow."""

    run: str
    reported: int | None
    shadow: Shadow | None = None


class Asked(NamedTuple):
    """A run that waits for its decision: its state after a report, and what was given up in that."""

    state: RunState
    dropped: Sequence[Dropped]
    subject: Subject


class Told(NamedTuple):
    """What was decided, and who says why."""

    decided: Decided
    source: str
    policy: str
    reason: EncodedReason


def begun(compiled: Compiled, state: RunState, run: str, now: datetime) -> bytes:
    """The decision that a run starts with."""
    why = EncodedReason("begun", "nothing is reported yet: report what happens as iteration 0")
    told = Told(NOTHING, "heuristic", compiled.responder.chooser.name, why)
    return _encoded(compiled, compiled.ledger(state), [], Subject(run, None), told, None, now)


def answer(compiled: Compiled, asked: Sequence[Asked], now: datetime) -> list[Answered]:
    """The decisions for several runs, in order, and their states with what the decisions start."""
    deciding = [one.state for one in asked if not one.state.carried]
    decided = iter(_decided(compiled, deciding))
    answers = []
    for state, dropped, subject in asked:
        ledger, told = _carried(compiled, state) if state.carried else next(decided)
        shadow = None if subject.shadow is None else _consulted(compiled, state, told.decided, subject.shadow)
        answers.append(Answered(_encoded(compiled, ledger, dropped, subject, told, shadow, now), ledger.state()))
    return answers


def _carried(compiled: Compiled, state: RunState) -> tuple[Ledger, Told]:
    """The client decides by itself."""
    ledger = compiled.ledger(state)
    return ledger, Told(NOTHING, compiled.responder.source, "carried", carried(ledger, compiled.version))


def _decided(compiled: Compiled, states: Sequence[RunState]) -> list[tuple[Ledger, Told]]:
    """The books of several runs after their decisions, and the decisions; where one fails, each run by itself."""
    ledgers, (chooser, source, failure) = [compiled.ledger(state) for state in states], compiled.responder
    try:
        decided = decide(ledgers, chooser)
    except Exception as error:
        if len(states) > 1:
            return [one for state in states for one in _decided(compiled, [state])]
        logger.exception("workload %s: policy %s failed", compiled.snapshot.name, chooser.name)
        return [
            _fallen_back(compiled, states[0], f"the policy {chooser.name} failed ({type(error).__name__}: {error})")
        ]
    return [
        (ledger, Told(one, source, chooser.name, reason(ledger, one, failure)))
        for ledger, one in zip(ledgers, decided, strict=True)
    ]


def _fallen_back(compiled: Compiled, state: RunState, failure: str) -> tuple[Ledger, Told]:
    """By the heuristic."""
    ledger, chooser = compiled.ledger(state), compiled.heuristic
    [decided] = decide([ledger], chooser)
    why = reason(ledger, decided, f"{failure}; {chooser.name} answers")
    return ledger, Told(decided, "fallback", chooser.name, why)


def _consulted(compiled: Compiled, state: RunState, done: Decided, shadow: Shadow) -> EncodedShadow:
    """What a shadow would have decided; whatever goes wrong with it is told here, and changes nothing."""
    if shadow.artifact is None:
        return EncodedShadow(shadow.version, [], agrees=False, gain=None, problem=shadow.problem)
    try:
        check(shadow.artifact, compiled.layout)
        [decided] = decide([compiled.ledger(state)], compiled.consulted(shadow.artifact))
    except Exception as error:
        logger.exception("workload %s: shadow %d failed", compiled.snapshot.name, shadow.version)
        problem = f"{type(error).__name__}: {error}"
        return EncodedShadow(shadow.version, [], agrees=False, gain=None, problem=problem)
    starts = [_start(compiled.layout, compiled.fleet, start) for start in decided.starts]
    return EncodedShadow(shadow.version, starts, agrees=decided == done, gain=None, problem=None)


def _encoded(
    compiled: Compiled,
    ledger: Ledger,
    dropped: Sequence[Dropped],
    subject: Subject,
    told: Told,
    shadow: EncodedShadow | None,
    now: datetime,
) -> bytes:
    layout, (starts, turns) = compiled.layout, told.decided
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
        decided_at=timestamp(now),
        kind="inference",
        at=ledger.now,
        start=[_start(layout, compiled.fleet, start) for start in starts],
        drop=_drops(layout, dropped),
        servers=dict(zip(layout.servers, ledger.on(), strict=True)),
        wake_at=None if ledger.carried else ledger.next_look(),
        waiting=dict(zip(layout.users, ledger.waiting(), strict=True)),
        quality=dict(zip(layout.users, ledger.qualities(), strict=True)),
        expected=compiled.expected() if told.reason.code == "begun" and ledger.carried else None,
        shadow=shadow,
    )
    return msgspec.json.encode(decision)


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
        return f"an answer is worth nothing after {seconds_text(float(layout.quality.zero_at[user]))}"
    return f"more than {layout.spec.queue_limit:,} wait"

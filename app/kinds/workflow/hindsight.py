"""What other strategies would have started over a run, each asked about the queue that was reported then."""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq

import msgspec

from app.charts.ranking import DECIDED, beside_decided
from app.kinds.contract.views import ASKED_THEN, NOTHING_YET, Hindsight, Shown, evenly, too_long
from app.kinds.workflow.decisions.compiled import Compiled
from app.kinds.workflow.queue.advance import advance
from app.kinds.workflow.queue.report import QueueReport
from app.kinds.workflow.queue.state import WAITING, State, begin
from app.kinds.workflow.scheduling.decide import by_strategy, decide

POINTS = 30
"""Decisions that are looked at, at most."""
MOST_TASKS = 300
"""In a queue, up to which it is told: somebody waits for it."""
ASKED = ("fcfs", "sjf", "saf", "wfp3", "unicep", "f1", "heft", "cpop")
KNOWN = ("easy", "conservative")
"""Mechanisms that go by the queue alone; others keep to what they promised before, which is not kept."""
PROMISED = (
    "It can't be told with backfilling {}: what the task that waits first was promised at each decision is not kept. "
    f"It is told with {' and '.join(KNOWN)}."
)
TOO_MANY = f"It is told of queues of up to {MOST_TASKS} tasks."


def hindsight(compiled: Compiled, shown: Shown) -> Hindsight:
    """The queue made anew from the reports, and every strategy asked at some decisions where tasks waited."""
    spec = compiled.layout.spec
    if not shown.steps:
        return Hindsight([], NOTHING_YET)
    if spec.backfilling not in KNOWN:
        return Hindsight([], PROMISED.format(spec.backfilling))
    if len(shown.steps) < shown.iterations:
        return Hindsight([], too_long(len(shown.steps)))
    stood = [(step.decision, state) for step, state in zip(shown.steps, _replayed(compiled, shown), strict=False)]
    if len(stood) < len(shown.steps):
        return Hindsight([], TOO_MANY)
    stood = [(decision, state) for decision, state in stood if (state.queue.node == WAITING).any()]
    if not stood:
        return Hindsight([], "No task has waited yet.")
    asked = evenly(stood, POINTS)
    decided = [{(one["task"], one["node"]) for one in decision.get("placements", ())} for decision, _ in asked]
    others = {name: [_starts(compiled, state, name) for _, state in asked] for name in ASKED}
    same = {name: sum(map(eq, decided, every)) / len(asked) for name, every in others.items()}
    starts = {name: sum(map(len, every)) / len(asked) for name, every in {DECIDED: decided, **others}.items()}
    told = f"Of {len(asked):,} decisions of {shown.iterations:,}, where tasks waited."
    figures = [
        beside_decided("Decisions that would have been the same", "share of decisions", same, told),
        beside_decided("Tasks that would have started", "tasks a decision", starts, told),
    ]
    return Hindsight(figures, ASKED_THEN)


def _starts(compiled: Compiled, state: State, strategy: str) -> set[tuple[str, str]]:
    """Tasks that start, and where."""
    spec, situation = compiled.layout.spec, compiled.situation(state)
    decided = decide(situation, by_strategy(strategy, spec.backfilling, spec.backfill_order))
    return {(situation.queue.names[row], compiled.layout.names[node]) for row, node in decided.started.starts}


def _replayed(compiled: Compiled, shown: Shown) -> Iterator[State]:
    """The queue after each report, until it grows too large."""
    state = begin(compiled.layout)
    for step in shown.steps:
        state = advance(compiled.layout, state, QueueReport.model_validate_json(msgspec.json.encode(step.report)))
        if len(state.queue) > MOST_TASKS:
            return
        yield state

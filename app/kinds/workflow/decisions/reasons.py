"""Reasons in words that a person accepts, with the numbers: who starts, who waits until when, and who may overtake.

==================  ===============================================================================
``begun``           nothing is reported yet
``started``         tasks start, or nodes are ordered or given back
``waiting``         ready tasks wait, and nothing can start now
``nothing_ready``   no task waits, or all that wait have parents that have not ended
``fallback``        something failed, and the spec's strategy answers instead
==================  ===============================================================================
"""

from __future__ import annotations

import math

from app.charts.text import number
from app.kinds.workflow.decisions.schemas import EncodedPlan, EncodedQueueReason, EncodedScored, EncodedWindow
from app.kinds.workflow.scheduling.decide import Decided
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS, NONE, RLS
from app.kinds.workflow.scheduling.situation import QueueSituation

SHOWN = 3


def reason(situation: QueueSituation, decided: Decided, preface: tuple[str, str], plan: str = "") -> EncodedQueueReason:
    """Why a decision is what it is; ``preface`` goes before it, and its code instead, where there is one.

    ``plan`` is what there is to say of a workflow's plan.
    """
    window = _window(situation, decided)
    code = _code(decided)
    text = ". ".join(
        part
        for part in (_starts(situation, decided), plan, _waits(decided, window), _nodes(situation, decided))
        if part
    )
    if preface[0]:
        code, text = preface[0], f"{preface[1]}: {text}"
    scored = _scored(situation, decided)
    return EncodedQueueReason(
        code=code,
        text=text,
        strategy=decided.choice.strategy,
        backfilling=MECHANISMS[decided.choice.mechanism],
        first=scored[0] if scored else None,
        runner_up=scored[1] if len(scored) > 1 else None,
        window=window,
        plan=_plan(decided),
    )


def _plan(decided: Decided) -> EncodedPlan | None:
    plan = decided.state.plan
    if plan is None:
        return None
    return EncodedPlan(plan.followed, plan.made, plan.length, plan.heft, plan.took, plan.because, len(plan.turns))


def _code(decided: Decided) -> str:
    if decided.started.starts or any(decided.renting):
        return "started"
    return "waiting" if decided.order else "nothing_ready"


def _scored(situation: QueueSituation, decided: Decided) -> list[EncodedScored]:
    """The two most urgent tasks."""
    score = dict(zip(situation.ready.tolist(), decided.choice.scores.tolist(), strict=True))
    return [EncodedScored(situation.queue.names[row], score[row]) for row in decided.order[:2]]


def _window(situation: QueueSituation, decided: Decided) -> EncodedWindow | None:
    found = decided.started.window
    if found.task < 0:
        return None
    return EncodedWindow(
        task=situation.queue.names[found.task],
        node=situation.layout.names[found.node] if found.node >= 0 else None,
        until=float(found.until) if math.isfinite(found.until) else None,
        spare_processors=max(int(found.spare), 0),
        overtook=[situation.queue.names[row] for row in decided.started.overtook],
    )


def _starts(situation: QueueSituation, decided: Decided) -> str:
    names, starts, ready = situation.queue.names, decided.started.starts, len(decided.order)
    waiting = int((situation.queue.node < 0).sum()) - ready
    behind = f"; {waiting:,} more wait for their parents" if waiting else ""
    if not ready:
        return f"no task is ready{behind}"
    chosen = decided.choice.strategy
    shown = ", ".join(names[row] for row, _ in starts[:SHOWN]) + (" …" if len(starts) > SHOWN else "")
    started = f"{len(starts):,} of {ready:,} ready tasks start by {chosen}"
    return f"{started}{': ' + shown if shown else ''}{behind}"


def _waits(decided: Decided, window: EncodedWindow | None) -> str:
    if window is None:
        return ""
    if window.until is None:
        return f"{window.task} waits: no rented node can hold it"
    waits = f"{window.task} waits until {number(window.until)} s for {window.node}"
    mechanism = decided.choice.mechanism
    if mechanism == NONE:
        return f"{waits}, and all behind it wait"
    may = "tasks that end before then" if mechanism == RLS else "tasks that end by then"
    if mechanism == EASY:
        may += f" or need at most {window.spare_processors:,} processors there"
    did = f"; {len(window.overtook):,} did" if window.overtook else ""
    return f"{waits}; {may} may overtake it{did}"


def _nodes(situation: QueueSituation, decided: Decided) -> str:
    names = situation.layout.names
    parts = []
    for word, nodes in (("ordered", decided.renting.start), ("given back", decided.renting.release)):
        if nodes:
            shown = ", ".join(names[j] for j in nodes[:SHOWN]) + (" …" if len(nodes) > SHOWN else "")
            parts.append(f"{shown} {word}")
    return "; ".join(parts)

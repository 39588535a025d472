"""Schema of decisions of kind `workflow`, and the texts of their reasons."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import BaseModel, Field

from app.charts.text import clock, count_text
from app.kinds.contract.engine import DecisionBase, Reason
from app.kinds.workflow.scheduling.decide import DispatchDecision
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS, NONE, RLS, UNCOMMITTED
from app.kinds.workflow.scheduling.situation import QueueSituation


class Placement(BaseModel):
    """A task to start."""

    task: str
    node: str = Field(description="Node type and index, starting at 0.", examples=["large-0"])
    start: float = Field(description="Start time: the report's `now`.")


class NodeSteps(BaseModel):
    """Nodes to request and to release."""

    start: list[str]
    release: list[str]


class Scored(BaseModel):
    """A task and its score; the lowest is the most urgent."""

    task: str
    score: float


class BackfillWindow(BaseModel):
    """The reservation of the most urgent pending task. Tasks that are expected to end by then can be backfilled, and
    under `easy` those that need no more than the spare processors, or start on other nodes."""

    task: str = Field(description="The pending task.")
    node: str | None = Field(description="Node it will start on; null if no rented node can hold it.")
    until: float | None = Field(description="Start time if running tasks end as expected; null if unknown.")
    spare_processors: int = Field(description="Processors on that node that it leaves for backfilling.")
    overtook: list[str] = Field(description="Tasks that are backfilled now.")


class WorkflowPlan(BaseModel):
    """A plan searched for tasks that depend on each other, on the rented nodes."""

    followed: bool = Field(
        description="Whether the plan is used; otherwise HEFT decides, as the plan is not over 1 % shorter."
    )
    made: float = Field(description="When it was created, in the reports' time.")
    seconds: float = Field(description="Planned makespan from then.")
    heft_seconds: float = Field(description="Makespan of HEFT's plan.")
    search_seconds: float = Field(description="Duration of the search.")
    because: str = Field(
        description="Reason for the plan.", examples=["first plan", "t12 ended 40 s later than planned"]
    )
    tasks: int = Field(description="Number of its tasks that have not ended.")


class QueueReason(Reason):
    """Reason as a stable code and as text, with the figures behind it."""

    code: str = Field(examples=["started"])
    text: str
    strategy: str = Field(description="Strategy whose order was followed.", examples=["sjf"])
    backfilling: str = Field(description="Backfilling mechanism.", examples=["easy"])
    first: Scored | None = Field(default=None, description="The most urgent task.")
    runner_up: Scored | None = Field(default=None, description="The next most urgent task.")
    window: BackfillWindow | None = None
    plan: WorkflowPlan | None = Field(default=None, description="For workflows, if an agent is requested.")


class QueueShadow(BaseModel):
    """The shadow's decision: recorded, not applied."""

    agent: int
    strategy: str | None
    placements: list[Placement]
    agrees: bool = Field(description="Whether the same tasks start on the same nodes.")
    gain: float | None = Field(description="Always null: gains are not estimated for this kind.")
    problem: str | None


class ReportWarning(BaseModel):
    """What looks wrong in an accepted report, with the values concerned."""

    pointer: str
    message: str
    value: Any


class QueueDecision(DecisionBase):
    """Ready tasks to start now and where, and nodes to request or release."""

    reason: QueueReason
    kind: Literal["workflow"]
    now: float | None = Field(description="Time of the report.")
    placements: list[Placement]
    nodes: NodeSteps
    warnings: list[ReportWarning]
    waiting: int | None = Field(default=None, description="Waiting tasks after this decision; null if not counted.")
    running: int | None = Field(default=None, description="Running tasks, including those that start.")
    busy_processors: int | None = Field(default=None, description="Processors used by running tasks.")
    wake_at: float | None = Field(
        default=None,
        description="Latest time for the next report: a task starts then, unless one ends before; null: at the next "
        "event.",
    )
    shadow: QueueShadow | None = None


# Reasons with numbers: tasks that start or are pending, until when, and what can be backfilled.
#
# ==================  ===============================================================================
# ``begun``           nothing is reported yet
# ``started``         tasks start, or nodes are requested or released
# ``waiting``         ready tasks wait, and nothing can start now
# ``nothing_ready``   no task waits, or all that wait have parents that have not ended
# ``fallback``        something failed, and the spec's strategy decides instead
# ==================  ===============================================================================


SHOWN = 3


def reason(situation: QueueSituation, decided: DispatchDecision, code: str, preface: str, plan: str) -> dict[str, Any]:
    """Return the reason of a decision, as fields of ``QueueReason``.

    Args:
        situation: queue and nodes at the decision.
        decided: the decision.
        code: code that replaces the decision's own; empty: no failure.
        preface: text that goes before the decision's; empty: no failure.
        plan: text about a workflow's plan; empty: none.
    """
    window = _window(situation, decided)
    text = "; ".join(
        part
        for part in (
            _starts(situation, decided),
            plan or decided.choice.text,
            _waits(decided, window),
            _nodes(situation, decided),
        )
        if part
    )
    # At most two tasks, the most urgent ones, with their scores
    score = dict(zip(situation.ready.tolist(), decided.choice.scores.tolist(), strict=True))
    scored = [{"task": situation.queue.names[row], "score": score[row]} for row in decided.order[:2]]
    own = "waiting" if decided.order else "nothing_ready"
    if decided.started.starts or any(decided.renting):
        own = "started"
    return {
        "code": code or own,
        "text": f"{preface}: {text}" if preface else text,
        "strategy": decided.choice.strategy,
        "backfilling": MECHANISMS[decided.choice.mechanism],
        "first": scored[0] if scored else None,
        "runner_up": scored[1] if len(scored) > 1 else None,
        "window": window,
        "plan": _plan(decided),
    }


def _plan(decided: DispatchDecision) -> dict[str, Any] | None:
    plan = decided.state.plan
    if plan is None:
        return None
    return {
        "followed": plan.followed,
        "made": plan.created_at,
        "seconds": plan.length,
        "heft_seconds": plan.heft,
        "search_seconds": plan.took,
        "because": plan.because,
        "tasks": len(plan.turns),
    }


def _window(situation: QueueSituation, decided: DispatchDecision) -> dict[str, Any] | None:
    window = decided.started.window
    if window.task < 0:
        return None
    return {
        "task": situation.queue.names[window.task],
        "node": situation.layout.names[window.node] if window.node >= 0 else None,
        "until": float(window.until) if math.isfinite(window.until) else None,
        "spare_processors": max(int(window.spare), 0),
        "overtook": [situation.queue.names[row] for row in decided.started.overtook],
    }


def _starts(situation: QueueSituation, decided: DispatchDecision) -> str:
    names, starts, ready = situation.queue.names, decided.started.starts, len(decided.order)
    waiting = int((situation.queue.node < 0).sum()) - ready
    behind = f"; {waiting:,} pending on their parents" if waiting else ""
    if not ready:
        return f"no task is ready{behind}"
    chosen = decided.choice.strategy
    shown = ", ".join(names[row] for row, _ in starts[:SHOWN]) + (" …" if len(starts) > SHOWN else "")
    started = f"start {len(starts):,} of {ready:,} ready tasks ({chosen})"
    return f"{started}{': ' + shown if shown else ''}{behind}"


def _waits(decided: DispatchDecision, window: dict[str, Any] | None) -> str:
    if window is None:
        return ""
    if window["until"] is None:
        return f"{window['task']} is pending: it fits no rented node"
    reserved = f"{window['task']} has a reservation on {window['node']} at {clock(window['until'])}"
    mechanism = decided.choice.mechanism
    if mechanism == UNCOMMITTED:
        return f"{window['task']} is first in the order, which may change before it starts; no backfilling"
    if mechanism == NONE:
        return f"{reserved}; no backfilling"
    may = "tasks that end before then" if mechanism == RLS else "tasks that end by then"
    spare = window["spare_processors"]
    if mechanism == EASY and spare:
        may += f" or need at most {count_text(spare, 'processor')} there"
    did = f" ({len(window['overtook']):,} backfilled)" if window["overtook"] else ""
    return f"{reserved}; {may} can be backfilled{did}"


def _nodes(situation: QueueSituation, decided: DispatchDecision) -> str:
    names = situation.layout.names
    parts = []
    for word, nodes in (("request", decided.renting.start), ("release", decided.renting.release)):
        if nodes:
            shown = ", ".join(names[j] for j in nodes[:SHOWN]) + (" …" if len(nodes) > SHOWN else "")
            parts.append(f"{word} {shown}")
    return "; ".join(parts)

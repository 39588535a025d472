"""Whether a queue still goes as planned; if not, why."""

from __future__ import annotations

import numpy as np

from app.charts.text import number
from app.kinds.workflow.plans.plan import QueuePlan
from app.kinds.workflow.plans.remaining import rented
from app.kinds.workflow.scheduling.situation import QueueSituation

FAR = 0.05  # of a plan's length: tasks that end so much later or earlier than planned make a new plan worth its while
SHOWN = 3


def broken(situation: QueueSituation, plan: QueuePlan) -> str:
    """Why a plan can't be followed any longer; empty where it can."""
    queue, names = situation.queue, situation.layout.names
    new = [queue.names[row] for row in np.flatnonzero(queue.node < 0) if queue.names[row] not in plan.turns]
    if new:
        shown = ", ".join(new[:SHOWN]) + (" …" if len(new) > SHOWN else "")
        return f"{shown} {'is' if len(new) == 1 else 'are'} new"
    up, waits = set(rented(situation)), queue.node < 0
    lost = [names[turn.node] for name, turn in plan.turns.items() if turn.node not in up and waits[queue.row[name]]]
    return f"{lost[0]} is gone" if lost else ""


def departed(situation: QueueSituation, plan: QueuePlan) -> str:
    """How reality differs from a plan so far that a new one is worth its while; empty where it doesn't."""
    return _on_nodes(situation, plan) or _in_time(situation, plan)


def _on_nodes(situation: QueueSituation, plan: QueuePlan) -> str:
    queue, names = situation.queue, situation.layout.names
    more = [j for j in rented(situation) if j not in plan.nodes]
    if more:
        return f"{names[more[0]]} is there now"
    for row in situation.running.tolist() if plan.followed else ():
        turn = plan.turns.get(queue.names[row])
        if turn is not None and turn.node != queue.node[row]:
            return f"{queue.names[row]} runs on {names[queue.node[row]]} instead of {names[turn.node]}"
    return ""


def _in_time(situation: QueueSituation, plan: QueuePlan) -> str:
    queue, far = situation.queue, FAR * plan.length
    if plan.departed and abs(plan.departed[1]) > far:
        task, seconds = plan.departed
        return f"{task} ended {number(abs(seconds))} s {'later' if seconds > 0 else 'earlier'} than planned"
    for row, end in zip(situation.running.tolist(), situation.ends.tolist(), strict=True):
        turn = plan.turns.get(queue.names[row])
        if turn is not None and end - turn.end > far:
            return f"{queue.names[row]} will end {number(end - turn.end)} s later than planned"
    for name, turn in plan.turns.items():
        if situation.now - turn.start > far and queue.node[queue.row[name]] < 0:
            return f"{name} waits {number(situation.now - turn.start)} s longer than planned"
    return ""

"""Decisions by a plan: on every node what is next there, as soon as it is ready and fits."""

from __future__ import annotations

import numpy as np

from app.kinds.workflow.plans.plan import QueuePlan
from app.kinds.workflow.scheduling.decide import Choice, Decided
from app.kinds.workflow.scheduling.dispatch import NONE
from app.kinds.workflow.scheduling.fleet import OPEN, Allowed, Free, Started
from app.kinds.workflow.scheduling.renting import Renting, rent
from app.kinds.workflow.scheduling.situation import QueueSituation

PLAN = "plan"


def followed(situation: QueueSituation, plan: QueuePlan) -> Decided:
    """What starts by ``plan``, which has all tasks that wait; nodes are ordered for what it has wait for a start-up."""
    starts, turns = _starts(situation, plan), list(plan.turns)
    place = {name: k for k, name in enumerate(turns)}
    scores = np.array([place[situation.queue.names[row]] for row in situation.ready], np.float64)
    order = situation.ready[np.argsort(scores)].tolist()
    state = situation.state._replace(head=(), plan=plan)
    renting = _renting(situation, plan, starts, order)
    return Decided(Choice(PLAN, scores, NONE), order, Started(starts, [], OPEN), renting, state)


def _starts(situation: QueueSituation, plan: QueuePlan) -> list[tuple[int, int]]:
    """Rows and nodes; a task that can't start yet holds up what comes after it on its node, unless its user may not."""
    queue, free, allowed = situation.queue, Free(situation), Allowed(situation)
    ready = set(situation.ready.tolist())
    held, starts = set[int](), list[tuple[int, int]]()
    for name, turn in plan.turns.items():
        row, node = queue.row[name], turn.node
        if queue.node[row] >= 0 or node in held:
            continue
        need, memory = int(queue.processors[row]), float(queue.memory[row])
        if row not in ready or not free.fits(node, need, memory):
            held.add(node)
        elif row in allowed:
            free.hold(node, need, memory)
            allowed.take(row)
            starts.append((row, node))
    return starts


def _renting(situation: QueueSituation, plan: QueuePlan, starts: list[tuple[int, int]], order: list[int]) -> Renting:
    """The plain rule's, but a node that the plan soon needs stays, and none is ordered for what starts sooner."""
    nodes, now, names = situation.layout.nodes, situation.now, situation.queue.names
    off = [j for j in range(len(nodes.startup)) if j not in situation.state.nodes]
    startup = float(nodes.startup[off].min()) if off else np.inf
    late = [row for row in order if plan.turns[names[row]].start - now >= startup]
    found = rent(situation, starts, [*late, *(row for row, _ in starts)])
    next_start = {turn.node: turn.start for turn in reversed(plan.turns.values())}
    soon = {
        j for j, start in next_start.items() if start - now <= max(float(nodes.billing[j]), float(nodes.startup[j]))
    }
    return Renting(found.start, [j for j in found.release if j not in soon])

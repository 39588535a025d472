"""Which plan a queue goes by: the one so far as long as reality keeps to it, else a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from app.charts.text import number
from app.kinds.workflow.plans.departures import broken, departed
from app.kinds.workflow.plans.message import WORTHWHILE, Found, Remaining
from app.kinds.workflow.plans.plan import QueuePlan, Turn
from app.kinds.workflow.plans.remaining import Left, UnplannableError, left_of, rented
from app.kinds.workflow.plans.search import SearchUnavailableError
from app.kinds.workflow.scheduling.situation import QueueSituation

Search = Callable[[Remaining], Found]


class Planned(NamedTuple):
    """The plan of a queue (None: there is none now), and what there is to say of it."""

    plan: QueuePlan | None
    text: str


def planned(situation: QueueSituation, search: Search) -> Planned:
    """The plan to go by, searched for anew where reality has departed from the one so far.

    A plan that is merely late is gone on with while no search can be had.
    """
    plan, queue = situation.state.plan, situation.queue
    if not (queue.node < 0).any():
        return Planned(plan, described(plan) if plan else "nothing is left to plan")
    unfit = broken(situation, plan) if plan else "the first one"
    because = unfit or (departed(situation, plan) if plan else "")
    if plan is not None and not because:
        return Planned(plan, described(plan))
    try:
        left = left_of(situation, plan)
        made = _made(situation, left, search(left.remaining), because)
    except (SearchUnavailableError, UnplannableError) as problem:
        if plan is None or unfit:
            return Planned(None, f"HEFT answers without a plan: {problem}")
        return Planned(plan, f"{described(plan)}; now {because}, but {problem}")
    return Planned(made, described(made))


def _made(situation: QueueSituation, left: Left, found: Found, because: str) -> QueuePlan:
    """A search's answer, in names and the reports' clock."""
    now, nodes = situation.now, left.nodes
    columns = zip(found.node.tolist(), found.start.tolist(), found.end.tolist(), strict=True)
    turns = [Turn(nodes[node], now + start, now + end) for node, start, end in columns]
    ended = sum(name not in situation.queue.row for name in left.names)  # they come first
    order = [task for task in found.order.tolist() if task >= ended]
    length = float(found.end.max())
    return QueuePlan(
        turns={left.names[task]: turns[task] for task in order},
        nodes=tuple(rented(situation)),
        made=now,
        length=length,
        heft=min(found.heft, found.base),
        took=round(found.took, 3),
        followed=found.better,
        because=because,
    )


def described(plan: QueuePlan) -> str:
    """A plan in words, with its reason."""
    heft, took = f"HEFT's {number(plan.heft)} s", f"{plan.took:.2f} s"
    if not plan.followed:
        return f"HEFT answers: a search of {took} found no plan that is {WORTHWHILE:.0%} below {heft}"
    less = 1 - plan.length / plan.heft
    against = f"{less:.0%} below {heft}" if less > 0 else "HEFT's own"  # never longer: HEFT's is among its beginnings
    return f"follows a plan of {number(plan.length)} s found in {took}, {against} ({plan.because})"

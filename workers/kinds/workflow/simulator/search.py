"""Search for a better plan around a rule's: tasks on the critical chain change their node or their turn."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling import ranks
from app.kinds.workflow.scheduling.placement import Fleet, Plan, Rule, Work, bill
from app.kinds.workflow.scheduling.planning import Problem
from app.kinds.workflow.scheduling.portfolio import cost_rules, length, money, rules
from app.kinds.workflow.scheduling.ranks import Floats, Graph, Indices
from workers.kinds.workflow.simulator.compiling import compilable, kernel
from workers.kinds.workflow.simulator.planner import place, plan

DRAWS = 6  # random numbers that an attempt needs
PLACEMENTS = 6e6  # tasks tried on nodes, in all of a search: about a second
ATTEMPTS = (300, 8000)  # at least and at most
TIE_WEIGHT = 1e-6
TEMPERATURE = 0.01  # share of the value by which an attempt at the beginning may be worse than the plan it is made from


class SearchObjective(NamedTuple):
    """The objective of a search for plans.

    Attributes:
        time_weight: weight of a second until the last task ends.
        cost_weight: weight of a unit of money; what counts is the greater of both products.
        enough: a worth at which the search may end.
    """

    time_weight: float = 1.0
    cost_weight: float = 0.0
    enough: float = 0.0


SHORT = SearchObjective()


def chain(graph: Graph, work: Work, fleet: Fleet, plan: Plan) -> Indices:
    """Tasks that the end of ``plan`` hangs on: each starts when data of the one before come, or its node is free."""
    tasks = len(plan.start)
    found, count = np.empty(tasks, np.int64), 0
    task = int(np.argmax(plan.end))
    while task >= 0 and count < tasks:
        found[count] = task
        count += 1
        j, at, before = plan.node[task], plan.start[task], -1
        slack = 1e-9 * (1.0 + at)
        for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
            parent = graph.parents[e]
            there = plan.end[parent]
            if plan.node[parent] != j:
                there += work.data[e] * max(fleet.pace[plan.node[parent]], fleet.pace[j])
            if there >= at - slack:
                before = parent
        if before < 0 and at > fleet.available[j] + slack:
            for other in range(tasks):
                if plan.node[other] == j and abs(plan.end[other] - at) <= slack and plan.start[other] < at:
                    before = other
        task = before
    return found[:count]


def plan_cost(fleet: Fleet, plan: Plan, time_weight: float, cost_weight: float) -> float:
    """The greater of ``time_weight * seconds`` and ``cost_weight * money``, with small terms that break ties."""
    last, total = 0.0, 0.0
    for task in range(len(plan.end)):
        last = max(last, plan.end[task])
        total += plan.end[task]
    bills = 0.0
    if cost_weight > 0:
        for j in range(len(fleet.processors)):
            first, until = np.inf, -np.inf
            for task in range(len(plan.end)):
                if plan.node[task] == j:
                    first, until = min(first, plan.start[task]), max(until, plan.end[task])
            bills += bill(fleet, j, first, until)
    both = time_weight * last + cost_weight * bills
    return (
        max(time_weight * last, cost_weight * bills)
        + TIE_WEIGHT * both
        + TIE_WEIGHT * TIE_WEIGHT * time_weight * total / len(plan.end)
    )


def pin(bias: Floats, cost: Floats, task: int, j: int) -> None:
    """Leave ``task`` node ``j`` alone, if it fits there."""
    if np.isfinite(cost[task, j]):
        for other in range(cost.shape[1]):
            bias[task, other] = 0.0 if other == j else np.inf


def changed(
    graph: Graph, work: Work, plan: Plan, key: Floats, bias: Floats, base: Floats, on: Indices, draw: Floats
) -> None:
    """Change ``key`` [N] and ``bias`` [N, M] in place: one task's node, its and its relatives', or its turn."""
    tasks, nodes = work.cost.shape
    task = on[int(draw[0] * len(on))] if draw[1] < 0.8 else int(draw[0] * tasks)
    j = int(draw[3] * nodes)
    first, after = graph.parent_start[task], graph.parent_start[task + 1]
    if draw[2] < 0.35:
        pin(bias, work.cost, task, j)
    elif draw[2] < 0.5 and after > first:
        pin(bias, work.cost, task, plan.node[graph.parents[first + int(draw[4] * (after - first))]])
    elif draw[2] < 0.6:
        pin(bias, work.cost, task, j)
        for e in range(first, after):
            if draw[4] < 0.5 or draw[5] < 0.5:
                pin(bias, work.cost, graph.parents[e], j)
        for c in range(graph.child_start[task], graph.child_start[task + 1]):
            if draw[4] >= 0.5:
                pin(bias, work.cost, graph.children[c], j)
    elif draw[2] < 0.7:
        bias[task] = base[task]
    elif draw[2] < 0.85:
        key[task] = key[int(draw[4] * tasks)] * (1.0 + 1e-6 * (draw[5] - 0.5))
    else:
        key[task] *= 1.0 + (draw[5] - 0.5)


def search(
    graph: Graph, work: Work, fleet: Fleet, key: Floats, rule: Rule, objective: SearchObjective, draws: Floats
) -> tuple[Plan, int]:
    """The best plan found by ``draws`` [attempts, DRAWS] of uniform numbers, and the attempts until it was enough.

    Threshold accepting (Dueck and Scheuer 1990) with a threshold that falls to zero.
    """
    base = rule.bias
    key, bias = key.copy(), base.copy()
    best = place(graph, work, fleet, rule)
    plan, value = best, plan_cost(fleet, best, objective.time_weight, objective.cost_weight)
    least = value
    on = chain(graph, work, fleet, plan)
    for attempt in range(len(draws)):
        if least <= objective.enough:
            return best, attempt
        trial_key, trial_bias = key.copy(), bias.copy()
        changed(graph, work, plan, trial_key, trial_bias, base, on, draws[attempt])
        order = ranks.first_ready(graph, trial_key)
        trial = place(graph, work, fleet, Rule(order, trial_bias, rule.latest, rule.time_weight, rule.cost_weight))
        reached = plan_cost(fleet, trial, objective.time_weight, objective.cost_weight)
        if reached <= value or reached <= least * (1.0 + TEMPERATURE * (1.0 - (attempt + 1) / len(draws))):
            key, bias, plan, value = trial_key, trial_bias, trial, reached
            on = chain(graph, work, fleet, plan)
        if reached < least:
            best, least = trial, reached
    return best, len(draws)


compilable(chain, plan_cost, pin, changed)
_search = kernel(search)


def turns(order: Indices) -> Floats:
    """Priorities that give ``order``, positive, [N]."""
    key = np.empty(len(order))
    key[order] = np.arange(len(order), 0, -1)
    return key


def bound(given: Problem) -> float:
    """No plan is shorter, seconds: the longest way on the quickest nodes, or all work on all nodes at once."""
    graph, work, fleet = given.graph, given.work, given.fleet
    least = work.cost.min(axis=1)
    ends = np.zeros(len(least))
    for task in graph.sequence:
        parents = graph.parents[graph.parent_start[task] : graph.parent_start[task + 1]]
        begins = max(work.submit[task], ends[parents].max(initial=0.0), fleet.available.min())
        ends[task] = begins + least[task]
    speed = (least[:, None] / np.where(work.cost > 0, work.cost, 1.0)).max(axis=0)  # of each node against the quickest
    together = (least * work.processors).sum() / max((speed * fleet.processors).sum(), 1e-12)
    return float(max(ends.max(initial=0.0), work.submit.min(initial=0.0) + fleet.available.min() + together))


def value(given: Problem, plan: Plan, objective: SearchObjective) -> float:
    """How far ``plan`` is from ``objective``; less is better."""
    return max(objective.time_weight * length(plan), objective.cost_weight * money(given, plan))


def searched(
    given: Problem, rule: Rule, objective: SearchObjective, random: np.random.Generator, attempts: int
) -> Plan:
    """A plan at least as good as that of ``rule``, after so many ``attempts`` to better it."""
    draws: NDArray[np.float64] = random.uniform(size=(attempts, DRAWS))
    enough = bound(given) * objective.time_weight * (1 + 2 * TIE_WEIGHT) if objective.cost_weight == 0 else 0.0
    return _search(
        given.graph, given.work, given.fleet, turns(rule.order), rule, objective._replace(enough=enough), draws
    )[0]


def candidates(given: Problem, objective: SearchObjective) -> list[Rule]:
    """The rules that the agent begins with."""
    return rules(given) + cost_rules(given) if objective.cost_weight > 0 else rules(given)


def agent(
    given: Problem, random: np.random.Generator, objective: SearchObjective = SHORT, attempts: int | None = None
) -> Plan:
    """The best plan of published and learned rules for ``objective``, improved by search; never worse than HEFT's."""
    rule = min(candidates(given, objective), key=lambda rule: value(given, plan(given, rule), objective))
    enough = int(np.clip(PLACEMENTS / given.work.cost.size, *ATTEMPTS)) if attempts is None else attempts
    return searched(given, rule, objective, random, enough)

"""Search for plans of workflows: rules, then threshold accepting on order and nodes of tasks.

Tasks and nodes are indices, times are seconds; [N] counts tasks, [M] nodes, [S] processors of all nodes. ``at`` is a
solution, changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from app.kinds.workflow.scheduling import placement
from app.kinds.workflow.scheduling.placement import Fleet, Floats, Graph, Indices, Plan, Rule, Work, bill
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem, cost_rules, length, money, rules
from workers.kinds.workflow.simulator.world import compilable, kernel

DRAWS = 6  # random numbers per attempt
THRESHOLD = 0.01  # share of the best value by which a solution may be worse at first; it falls to zero
MEAN_WEIGHT = 0.05  # weight of the tasks' mean end beside the last one, as a tie-breaker
NODE, BESIDE, SOONEST, TOGETHER = 0.2, 0.35, 0.5, 0.65  # cumulative shares of kinds of moves; the rest change positions


class Course(NamedTuple):
    """A solution and the resulting times; arrays change in place.

    Attributes:
        order: tasks, each after its parents, [N].
        turn: position of each task in ``order``, [N].
        node: index of each task's node, [N].
        start, end: seconds at which each task begins and ends, [N].
        cause: the parent, or previous task on its processors, that determines each task's start; −1: none, [N].
        before: overwritten ends by position, to undo an attempt, [N].
        caused: overwritten causes by position, [N].
        first: node j's processors are ``free[first[j]:first[j + 1]]``, [M + 1].
        free: seconds from which each processor is free, ascending within a node, [S].
        last: the task that last used each processor; −1: none, [S].
        on: the critical chain from its end backwards, [N].
        moved: tasks that the present attempt moved to other nodes, [N].
        previous_node: previous node of each task in ``moved``, [N].
        fixed: number of tasks that have started, the first of ``order``, whose times are fixed.
        fetched: whether a task's data are transferred when it starts, while it holds its processors; else as soon as
            they exist.
    """

    order: Indices
    turn: Indices
    node: Indices
    start: Floats
    end: Floats
    cause: Indices
    before: Floats
    caused: Indices
    first: Indices
    free: Floats
    last: Indices
    on: Indices
    moved: Indices
    previous_node: Indices
    fixed: int
    fetched: bool


class SearchObjective(NamedTuple):
    """The objective of a search, to be minimised: the larger of weighted time and weighted cost.

    Attributes:
        time_weight: weight of a second until the last task ends.
        cost_weight: weight of a unit of money.
        enough: value of the objective at which the search may stop.
    """

    time_weight: float = 1.0
    cost_weight: float = 0.0
    enough: float = 0.0


def course(order: Indices, node: Indices, processors: Indices, fixed: int = 0, fetched: bool = False) -> Course:
    """Make a solution without times on nodes with ``processors`` [M]: tasks in ``order`` [N], each on its ``node`` [N].

    The caller sets the ends of the first ``fixed`` tasks, which have started. ``fetched``: data move at a task's start.
    """
    tasks, slots = len(order), int(processors.sum())
    first = np.zeros(len(processors) + 1, np.int64)
    first[1:] = np.cumsum(processors)
    turn = np.empty(tasks, np.int64)
    turn[order] = np.arange(tasks)
    times, indices = np.zeros((3, tasks)), np.zeros((5, tasks), np.int64)
    free, last = np.zeros(slots), np.zeros(slots, np.int64)
    start, end, before = times
    cause, caused, on, moved, left = indices
    cause[order[:fixed]] = -1
    return Course(
        order.copy(), turn, node.copy(), start, end, cause, before, caused, first, free, last, on, moved, left,
        fixed, fetched,
    )  # fmt: skip


def supply_times(at: Course, graph: Graph, work: Work, fleet: Fleet, task: int, j: int) -> tuple[float, float, int]:
    """Return the second from which the parents allow ``task`` to start on node ``j``, the seconds of transfer after
    that, and the last parent (−1: none)."""
    start, wait, cause = work.submit[task], 0.0, -1
    for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
        parent = graph.parents[e]
        there = at.end[parent]
        if at.node[parent] != j:
            travel = work.data[e] * max(fleet.pace[at.node[parent]], fleet.pace[j])
            if at.fetched:
                wait = max(wait, travel)
            else:
                there += travel
        if there > start:
            start, cause = there, parent
    return start, wait, cause


def use_processors(at: Course, j: int, need: int, end: float, task: int) -> None:
    """Give the ``need`` processors of node ``j`` that are free first to ``task`` until ``end`` seconds."""
    k, stop = at.first[j] + need, at.first[j + 1]
    while k < stop and at.free[k] <= end:
        at.free[k - need], at.last[k - need] = at.free[k], at.last[k]
        k += 1
    for slot in range(k - need, k):
        at.free[slot], at.last[slot] = end, task


def replay_processors(at: Course, work: Work, fleet: Fleet, turns: int) -> float:
    """Set the processors to their state after the first ``turns`` tasks, already timed; return their latest end."""
    for j in range(len(fleet.available)):
        for slot in range(at.first[j], at.first[j + 1]):
            at.free[slot], at.last[slot] = fleet.available[j], -1
    latest = 0.0
    for k in range(turns):
        task = at.order[k]
        use_processors(at, at.node[task], work.processors[task], at.end[task], task)
        latest = max(latest, at.end[task])
    return latest


def compute_times(
    at: Course, graph: Graph, work: Work, fleet: Fleet, rest: Floats, begin: int, limit: float
) -> tuple[float, float, int]:
    """Compute times from index ``begin`` in the order on; overwritten values go to ``before`` and ``caused``.

    Args:
        rest: least seconds from each task's end to the end of all, [N].
        limit: seconds; the computation stops when the last end must exceed them.

    Returns:
        The last end in seconds, infinite beyond ``limit``; increase of the sum of ends; the index reached.
    """
    latest, more = replay_processors(at, work, fleet, begin), 0.0
    for k in range(begin, len(at.order)):
        task = at.order[k]
        j = at.node[task]
        start, wait, cause = supply_times(at, graph, work, fleet, task, j)
        slot = at.first[j] + work.processors[task] - 1
        if at.free[slot] > start:
            start, cause = at.free[slot], at.last[slot]
        end = start + wait + work.cost[task, j]
        if end + rest[task] > limit:
            return np.inf, 0.0, k
        at.before[k], at.caused[k] = at.end[task], at.cause[task]
        more += end - at.end[task]
        at.start[task], at.end[task], at.cause[task] = start, end, cause
        latest = max(latest, end)
        use_processors(at, j, work.processors[task], end, task)
    return latest, more, len(at.order)


def restore_times(at: Course, begin: int, reached: int) -> None:
    """Undo the times of the tasks from index ``begin`` in the order to before ``reached``."""
    for k in range(begin, reached):
        task = at.order[k]
        at.end[task], at.cause[task] = at.before[k], at.caused[k]


def critical_chain(at: Course, latest: float) -> int:
    """Write the chain of tasks that determine the last end, ``latest`` seconds, to ``at.on``; return their number."""
    task, count = -1, 0
    for other in range(len(at.end)):
        if at.end[other] >= latest:
            task = other
    while task >= 0:
        at.on[count] = task
        count += 1
        task = at.cause[task]
    return count


def move_position(at: Course, old: int, new: int) -> None:
    """Move the task at index ``old`` of the order to index ``new``; tasks between shift by one."""
    task, step = at.order[old], 1 if new > old else -1
    for k in range(old, new, step):
        at.order[k] = at.order[k + step]
        at.turn[at.order[k]] = k
    at.order[new], at.turn[task] = task, new


def turns_open(at: Course, graph: Graph, task: int) -> tuple[int, int]:
    """Return the first and last index in the order that ``task`` may have between its parents and children."""
    low, high = at.fixed, len(at.order) - 1
    if at.turn[task] < at.fixed:
        return at.turn[task], at.turn[task]
    for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
        low = max(low, at.turn[graph.parents[e]] + 1)
    for c in range(graph.child_start[task], graph.child_start[task + 1]):
        high = min(high, at.turn[graph.children[c]] - 1)
    return low, high


def soonest(at: Course, graph: Graph, work: Work, fleet: Fleet, task: int, share: float) -> int:
    """Return the other node on which ``task`` ends first by its data and ``share`` of its run time; none: its own."""
    best, least = at.node[task], np.inf
    for j in range(len(fleet.pace)):
        if j == at.node[task] or not np.isfinite(work.cost[task, j]):
            continue
        start, wait, _ = supply_times(at, graph, work, fleet, task, j)
        there = start + wait
        if there + work.cost[task, j] * share < least:
            best, least = j, there + work.cost[task, j] * share
    return best


def beside(at: Course, graph: Graph, task: int, draw: float) -> int:
    """Return the node of a parent or child of ``task``, chosen by ``draw`` in 0…1; its own node without relatives."""
    above = graph.parent_start[task + 1] - graph.parent_start[task]
    below = graph.child_start[task + 1] - graph.child_start[task]
    k = int(draw * (above + below))
    if above + below == 0:
        return at.node[task]
    if k < above:
        return at.node[graph.parents[graph.parent_start[task] + k]]
    return at.node[graph.children[graph.child_start[task] + k - above]]


def put(at: Course, work: Work, task: int, j: int, count: int) -> int:
    """Move ``task`` to node ``j`` if it fits there; return ``count``, plus 1 if it moved."""
    if at.node[task] == j or not np.isfinite(work.cost[task, j]):
        return count
    at.moved[count], at.previous_node[count] = task, at.node[task]
    at.node[task] = j
    return count + 1


def relatives(at: Course, graph: Graph, work: Work, task: int, j: int, link: int, chain: int, draw: Floats) -> int:
    """Move ``task`` and some parents, children or predecessors in the critical chain to node ``j``; return the number
    moved.

    Args:
        link: index of the task in the chain; at least ``chain`` if it is not in it.
        chain: length of the chain.
        draw: numbers uniform in 0…1, [DRAWS].
    """
    old, everyone = at.node[task], draw[5] < 0.3
    count = put(at, work, task, j, 0)
    if draw[4] < 0.4:
        for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
            if everyone or at.node[graph.parents[e]] == old:
                count = put(at, work, graph.parents[e], j, count)
    elif draw[4] < 0.8:
        for c in range(graph.child_start[task], graph.child_start[task + 1]):
            if everyone or at.node[graph.children[c]] == old:
                count = put(at, work, graph.children[c], j, count)
    else:
        for k in range(link + 1, min(chain, link + 2 + int(draw[5] * 4))):
            count = put(at, work, at.on[k], j, count)
    return count


def turn_for(at: Course, task: int, low: int, high: int, draw: Floats) -> int:
    """Choose a new index in the order for ``task``, in ``low`` to ``high``, by ``draw`` (uniform in 0…1, [DRAWS]),
    often just before the task whose processors it waits for."""
    cause = at.cause[task]
    if draw[3] < 0.6 and cause >= 0 and at.node[cause] == at.node[task] and at.turn[cause] >= low:
        return at.turn[cause]
    if draw[3] < 0.8:
        high = at.turn[task]
    return low + int(draw[4] * (high - low + 1))


def attempt(at: Course, graph: Graph, work: Work, fleet: Fleet, chain: int, draw: Floats) -> tuple[int, int, int, int]:
    """Change the solution at random, by ``draw`` (uniform in 0…1, [DRAWS]); ``chain``: length of the critical chain.

    Returns the number of moved tasks, a task's old and new index in the order, and the first changed index (the number
    of tasks if nothing changed)."""
    link = int(draw[0] * chain) if draw[1] < 0.85 else chain
    task = at.on[link] if link < chain else at.order[at.fixed + int(draw[0] * (len(at.order) - at.fixed))]
    old, count, sort = at.turn[task], 0, draw[2]
    new = old
    if sort < NODE:
        count = put(at, work, task, int(draw[3] * len(fleet.pace)), 0)
    elif sort < BESIDE:
        count = put(at, work, task, beside(at, graph, task, draw[3]), 0)
    elif sort < SOONEST:
        count = put(at, work, task, soonest(at, graph, work, fleet, task, 0.5 + draw[5]), 0)
    elif sort < TOGETHER:
        count = relatives(at, graph, work, task, int(draw[3] * len(fleet.pace)), link, chain, draw)
    if sort >= TOGETHER or (sort < SOONEST and draw[5] < 0.3):
        low, high = turns_open(at, graph, task)
        new = turn_for(at, task, low, high, draw) if sort >= TOGETHER else low + int(draw[4] * (high - low + 1))
    begin = min(old, new) if count > 0 or new != old else len(at.order)
    for k in range(count):
        begin = min(begin, at.turn[at.moved[k]])
    move_position(at, old, new)
    return count, old, new, max(begin, at.fixed)


def bills(at: Course, work: Work, fleet: Fleet) -> float:
    """Sum the cost of all priced nodes, each rented from its start-up before its first task to its last task's end."""
    total = 0.0
    for j in range(len(fleet.price)):
        if fleet.price[j] > 0:
            begun, ended = np.inf, -np.inf
            for task in range(len(at.end)):
                if at.node[task] == j:
                    begun, ended = min(begun, at.end[task] - work.cost[task, j]), max(ended, at.end[task])
            total += bill(fleet, j, begun, ended)
    return total


def worth_of(
    at: Course, work: Work, fleet: Fleet, latest: float, mean: float, objective: SearchObjective
) -> tuple[float, float]:
    """Return the objective of a solution with last end ``latest`` (seconds), and the same plus a small weight on the
    mean end ``mean`` (seconds), as a tie-breaker."""
    seconds, money = objective.time_weight * latest, 0.0
    if objective.cost_weight > 0 and np.isfinite(latest):
        money = objective.cost_weight * bills(at, work, fleet)
    return max(seconds, money), max(seconds, money) + MEAN_WEIGHT * objective.time_weight * mean


def anneal_course(
    at: Course, graph: Graph, work: Work, fleet: Fleet, rest: Floats, objective: SearchObjective, draws: Floats
) -> tuple[Indices, Indices, float]:
    """Improve ``at`` in place by threshold accepting; return order [N], nodes [N] and objective of the best solution.

    ``rest`` are the least seconds from each task's end to the end of all, [N]; ``draws`` are uniform in 0…1, one row
    per attempt, [attempts, DRAWS].
    """
    tasks = len(at.order)
    latest, more, _ = compute_times(at, graph, work, fleet, rest, at.fixed, np.inf)
    mean = more / max(tasks, 1)
    best, value = worth_of(at, work, fleet, latest, mean, objective)
    least, order, node = value, at.order.copy(), at.node.copy()
    chain = critical_chain(at, latest)
    for k in range(len(draws)):
        if best <= objective.enough or at.fixed == tasks:
            return order, node, best
        limit = max(value, least * (1.0 + THRESHOLD * (1.0 - k / len(draws))))
        count, old, new, begin = attempt(at, graph, work, fleet, chain, draws[k])
        if begin == tasks:
            continue
        reached, more, until = compute_times(at, graph, work, fleet, rest, begin, limit / objective.time_weight)
        plain, worth = worth_of(at, work, fleet, reached, mean + more / tasks, objective)
        if worth > limit:
            restore_times(at, begin, until)
            move_position(at, new, old)
            for m in range(count):
                at.node[at.moved[m]] = at.previous_node[m]
            continue
        latest, mean, value = reached, mean + more / tasks, worth
        chain = critical_chain(at, latest)
        if plain < best or (plain == best and value < least):
            best = plain
            order[:], node[:] = at.order, at.node
        least = min(least, value)
    return order, node, best


def plan_of(order: Indices, node: Indices, graph: Graph, work: Work, fleet: Fleet) -> Plan:
    """Compute the times of a solution (tasks in order [N], node of each task [N]) as a plan."""
    at = course(order, node, fleet.processors)
    compute_times(at, graph, work, fleet, np.zeros(len(order)), 0, np.inf)
    return Plan(at.start, at.end, node)


compilable(placement.opened, placement.grown, placement.earliest, placement.split, placement.occupy)
compilable(placement.arrival, placement.bill, placement.offer, placement.planned, placement.first_ready)
compilable(use_processors, replay_processors, supply_times, compute_times, restore_times)
compilable(critical_chain, move_position, turns_open, soonest)
compilable(beside, put)
compilable(relatives, turn_for, attempt, bills, worth_of)
place = kernel(placement.planned)
anneal = kernel(anneal_course)
COMPILED_RANKS = placement.Ranks(
    kernel(placement.upward), kernel(placement.downward), kernel(placement.optimistic), kernel(placement.first_ready)
)


def plan(problem: Problem, rule: Rule) -> Plan:
    """Make the plan of a placement ``rule``: node, start and end of each task."""
    return place(problem.graph, problem.work, problem.fleet, rule)


def plan_by(problem: Problem, strategy: str) -> Plan:
    """Make the plan of the rule named ``strategy``. Raises KeyError if it is not in ``STRATEGIES``."""
    return plan(problem, STRATEGIES[strategy](problem))


# Search for better plans: the best rules' plans, improved by threshold accepting in stages.


Solution = TypeVar("Solution")
LEGS = ((3, 0.4), (1, 0.3), (1, 0.3))  # stages: number of solutions kept, and share of all attempts
STARTS = LEGS[0][0]
WORK = 8e4  # of a search, in units of about a microsecond
MOST_ATTEMPTS = 100_000
ATTEMPT_WORK = (0.4, 0.0055, 0.001)  # of an attempt: constant, per task, per edge
MOMENTS = 100  # times at which a lower bound looks at the remaining work
SHORT = SearchObjective()


def rest(problem: Problem) -> Floats:
    """Return the least seconds from each task's end to the end of its successors, on the fastest nodes, [N]."""
    graph, least = problem.graph, problem.work.cost.min(axis=1)
    return COMPILED_RANKS.upward(graph, least, np.zeros(len(graph.parents))) - least


def bound(problem: Problem) -> float:
    """Compute a lower bound of any plan's last end, in seconds.

    It is the largest of the critical path on the fastest nodes and, for all times t and tails r, t + r + the time that
    the tasks which start at t or later and are followed by at least r need on as many of the fastest processors as they
    can use (Fernandez and Bussell 1973).
    """
    graph, work, fleet = problem.graph, problem.work, problem.fleet
    least, after = work.cost.min(axis=1), rest(problem)
    if not len(least):
        return 0.0
    head = np.zeros(len(least))
    for task in graph.sequence:
        parents = graph.parents[graph.parent_start[task] : graph.parent_start[task + 1]]
        ready = (head[parents] + least[parents]).max(initial=0.0)
        head[task] = max(work.submit[task], fleet.available.min(), ready)
    speed = (least[:, None] / np.where(work.cost > 0, work.cost, 1.0)).max(axis=0)  # of each node over the fastest
    rates = np.concatenate([[0.0], np.cumsum(np.sort(np.repeat(speed, fleet.processors))[::-1])])
    value = float((head + least + after).max())
    moments = np.unique(head)
    for moment in moments[:: max(1, len(moments) // MOMENTS)]:
        late = np.flatnonzero(head >= moment)
        late = late[np.argsort(-after[late], kind="stable")]
        width = np.minimum(np.cumsum(work.processors[late]), len(rates) - 1)
        together = np.cumsum(least[late] * work.processors[late]) / np.maximum(rates[width], 1e-12)
        value = max(value, float((moment + together + after[late]).max()))
    return value


def value(problem: Problem, plan: Plan, objective: SearchObjective) -> float:
    """Return the objective of ``plan``, to be minimised: the larger of weighted seconds and weighted money."""
    bills = money(problem, plan) if objective.cost_weight > 0 else 0.0
    return max(objective.time_weight * length(plan), objective.cost_weight * bills)


def attempts_for(problem: Problem) -> int:
    """Estimate, from the input's size alone, the attempts that take a tenth of a second; at most 100,000."""
    each, task, edge = ATTEMPT_WORK
    cost = each + task * len(problem.average) + edge * len(problem.along)
    return int(min(MOST_ATTEMPTS, WORK / cost))


def order_of(problem: Problem, plan: Plan) -> Indices:
    """Return the tasks of a plan by start, [N]; simultaneous ones after their parents."""
    place = np.empty(len(plan.start), np.int64)
    place[problem.graph.sequence] = np.arange(len(place))
    return np.lexsort((place, plan.start))


def search_better(
    problem: Problem, start: Plan, objective: SearchObjective, random: np.random.Generator, attempts: int
) -> Plan:
    """Search for a better plan than ``start`` in ``attempts`` attempts; return the better of both."""
    draws = random.uniform(size=(attempts, DRAWS))
    enough = bound(problem) * objective.time_weight * (1 + 1e-9) if objective.cost_weight == 0 else 0.0
    at = course(order_of(problem, start), start.node.astype(np.int64), problem.fleet.processors)
    order, node, _ = anneal(
        at, problem.graph, problem.work, problem.fleet, rest(problem), objective._replace(enough=enough), draws
    )
    result = remembering(problem, order, node) if forgetful(problem) else plan_of(order, node, *problem[:3])
    return min(start, result, key=lambda one: value(problem, one, objective))


def forgetful(problem: Problem) -> bool:
    """Return whether tasks that run together could exceed a node's memory, which searches ignore."""
    largest = np.sort(problem.work.memory)[::-1]
    needed = np.cumsum(largest)[np.minimum(problem.fleet.processors, len(largest)) - 1] if len(largest) else 0.0
    return bool((needed > problem.fleet.memory).any())


def remembering(problem: Problem, order: Indices, node: Indices) -> Plan:
    """Make the plan with the tasks in ``order`` [N], each on its ``node`` [N], that keeps to the nodes' memory."""
    bias = np.full(problem.work.cost.shape, np.inf)
    bias[np.arange(len(node)), node] = 0.0
    rule = Rule(order, bias, np.full(len(node), np.inf), 1.0, 0.0)
    return place(problem.graph, problem.work, problem.fleet, rule)


def candidates(problem: Problem, objective: SearchObjective) -> list[Rule]:
    """List the rules from whose plans the search starts; rules that save cost are among them only if cost counts."""
    known = rules(problem, ranks=COMPILED_RANKS)
    return known + cost_rules(problem) if objective.cost_weight > 0 else known


def initial_plans(problem: Problem, objective: SearchObjective) -> list[Plan]:
    """Plan by every rule; return at most ``STARTS`` plans of different objective, the best one first."""
    result = [plan(problem, rule) for rule in candidates(problem, objective)]
    worth = [value(problem, one, objective) for one in result]
    _, first = np.unique(np.round(worth, 9), return_index=True)
    return [result[k] for k in sorted(first, key=lambda k: worth[k])[:STARTS]]


def agent(
    problem: Problem, random: np.random.Generator, objective: SearchObjective = SHORT, attempts: int | None = None
) -> Plan:
    """Return the best plan of all rules for ``objective``, improved by search; never worse than HEFT's.

    Args:
        problem: the workflow and its nodes.
        random: random generator of the search.
        objective: weighted time and cost to minimise.
        attempts: number of attempts; None: as many as ``attempts_for`` gives.
    """
    return improve_stages(
        initial_plans(problem, objective),
        lambda start, each: search_better(problem, start, objective, random, each),
        lambda one: value(problem, one, objective),
        attempts_for(problem) if attempts is None else attempts,
    )


def improve_stages(
    starts: Sequence[Solution],
    search: Callable[[Solution, int], Solution],
    worth: Callable[[Solution], float],
    attempts: int,
) -> Solution:
    """Improve the best of ``starts`` in stages; each passes fewer solutions on. ``search`` (solution, number of
    attempts) improves one, ``worth`` is minimised, and ``attempts`` is the number in all stages together."""
    for keep, share in LEGS:
        starts = sorted(starts, key=worth)[:keep]
        starts = [search(start, int(attempts * share / len(starts))) for start in starts]
    return min(starts, key=worth)

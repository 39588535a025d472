"""The 72 parametric list schedulers, and workflows on which a scheduler is worst beside the best of them.

Coleman, Agrawal, Hirani and Krishnamachari (2024, arXiv 2403.07112) take list scheduling apart into five choices, of
which every combination is a scheduler: *priority* of tasks (upward rank, CPOP's, or an arbitrary topological order);
*compare*, what is least on the node that a task gets (end, start, or run time); *append* behind the last task of a
node, or insertion between others; *critical path* on its fastest node; and *sufferage*: of the two first ready tasks,
that is placed which loses more by its second-best node. HEFT, CPOP, MCT, MET and Sufferage are members. Nodes have one
processor. Data travel as soon as they exist; ``fetched``: when their task starts, which holds its node meanwhile, as in
live runs.

``worst`` looks for adversarial workflows by simulated annealing, as Coleman and Krishnamachari (2024, arXiv
2403.07120) do: small workflows and networks whose weights and edges change one at a time.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.scheduling.placement import (
    SPARE,
    Calendar,
    Fleet,
    Floats,
    Graph,
    Indices,
    Plan,
    Work,
    arrival,
    critical,
    downward,
    earliest,
    graph,
    grown,
    occupy,
    opened,
    upward,
)
from app.kinds.workflow.scheduling.planning import Problem, length, problem
from workers.kinds.workflow.simulator.world import compilable, kernel

PRIORITIES = ("upward rank", "cpop", "arbitrary")
COMPARED = ("end", "start", "run time")
END, START, RUN_TIME = range(len(COMPARED))


class Scheduler(NamedTuple):
    """One of the 72: indices into ``PRIORITIES`` and ``COMPARED``, and whether each of the others is chosen."""

    priority: int
    compare: int
    append: bool
    reserved: bool
    sufferage: bool

    def __str__(self) -> str:
        chosen = [name for name, on in zip(("append", "critical path", "sufferage"), self[2:], strict=True) if on]
        return ", ".join([PRIORITIES[self.priority], f"least {COMPARED[self.compare]}", *chosen])


ALL = [
    Scheduler(priority, compare, append, reserved, sufferage)
    for priority, compare in product(range(len(PRIORITIES)), range(len(COMPARED)))
    for append, reserved, sufferage in product((False, True), repeat=3)
]
HEFT = Scheduler(0, END, append=False, reserved=False, sufferage=False)


class Offer(NamedTuple):
    """The best node for a task (-1: none), the seconds from and until which it is held there, and what the second-best
    node adds to the value that is compared."""

    node: int
    start: float
    end: float
    loss: float


def supply(graph: Graph, work: Work, fleet: Fleet, plan: Plan, task: int, j: int, fetched: bool) -> tuple[float, float]:
    """The second from which a task can start on node ``j``, and the seconds of transfer after that."""
    if not fetched:
        return arrival(graph, work, fleet, plan, task, j), 0.0
    start, wait = work.submit[task], 0.0
    for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
        parent = graph.parents[e]
        start = max(start, plan.end[parent])
        if plan.node[parent] != j:
            wait = max(wait, work.data[e] * max(fleet.pace[plan.node[parent]], fleet.pace[j]))
    return start, wait


def best_node(
    graph: Graph, work: Work, fleet: Fleet, plan: Plan, calendar: Calendar, last: Floats, task: int, pinned: int,
    compare: int, append: bool, fetched: bool,
) -> Offer:  # fmt: skip
    """The offer of least ``compare``; ``last``: end of each node's last task in seconds, [M]."""
    best, second, node, at, until = np.inf, np.inf, -1, np.inf, np.inf
    for j in range(len(last)):
        if pinned >= 0 and pinned != j:
            continue
        there, wait = supply(graph, work, fleet, plan, task, j, fetched)
        duration = wait + work.cost[task, j]
        start = max(there, last[j]) if append else earliest(calendar, j, there, duration, 1, 0.0)
        value = start + duration if compare == END else start if compare == START else work.cost[task, j]
        if value < best:
            best, second, node, at, until = value, best, j, start, start + duration
        else:
            second = min(second, value)
    return Offer(node, at, until, second - best if second < np.inf else 0.0)


def most_urgent(
    graph: Graph, work: Work, fleet: Fleet, plan: Plan, calendar: Calendar, last: Floats, firsts: list[int],
    pinned: Indices, compare: int, append: bool, fetched: bool,
) -> tuple[int, Offer]:  # fmt: skip
    """The task of ``firsts`` that loses most by its second-best node, and its offer."""
    chosen, taken = -1, Offer(-1, np.inf, np.inf, -1.0)
    for task in firsts:
        offer = best_node(graph, work, fleet, plan, calendar, last, task, pinned[task], compare, append, fetched)
        if offer.loss > taken.loss:
            chosen, taken = task, offer
    return chosen, taken


def listed(
    graph: Graph, work: Work, fleet: Fleet, priority: Floats, pinned: Indices, compare: int, append: bool,
    several: int, fetched: bool,
) -> Plan:  # fmt: skip
    """Place ready tasks by descending ``priority`` [N]; ``pinned``: the node that a task must get, -1: any, [N];
    ``several``: number of ready tasks, of which the one that loses most by its second-best node is placed."""
    tasks = len(priority)
    plan = Plan(np.full(tasks, np.inf), np.full(tasks, np.inf), np.full(tasks, -1))
    calendar, last = opened(fleet, SPARE), fleet.available.copy()
    missing = graph.parent_start[1:] - graph.parent_start[:-1]
    ready = [(0.0, 0)]
    ready.pop()
    for task in range(tasks):
        if missing[task] == 0:
            heappush(ready, (-priority[task], task))
    while len(ready) > 0:
        firsts = [heappop(ready)[1]]
        while len(firsts) < several and len(ready) > 0:
            firsts.append(heappop(ready)[1])
        chosen, taken = most_urgent(graph, work, fleet, plan, calendar, last, firsts, pinned, compare, append, fetched)
        for task in firsts:
            if task != chosen:
                heappush(ready, (-priority[task], task))
        node, end = taken.node, taken.end
        if calendar.spans[node] + 2 > calendar.time.shape[1]:
            calendar = grown(calendar)
        occupy(calendar, node, taken.start, end, 1, 0.0)
        plan.start[chosen], plan.end[chosen], plan.node[chosen] = taken.start, end, node
        last[node] = max(last[node], end)
        for child in graph.children[graph.child_start[chosen] : graph.child_start[chosen + 1]]:
            missing[child] -= 1
            if missing[child] == 0:
                heappush(ready, (-priority[child], child))
    return plan


compilable(supply, best_node, most_urgent)
_listed = kernel(listed)
_upward, _downward = kernel(upward), kernel(downward)


def parametric(problem: Problem, schedulers: list[Scheduler] = ALL, *, fetched: bool = False) -> list[Plan]:
    """Plans by the schedulers, every task of which must fit every node."""
    cost, count = problem.work.cost, len(problem.average)
    above = _upward(problem.graph, problem.average, problem.along)
    through = above + _downward(problem.graph, problem.average, problem.along)
    arbitrary = np.empty(count)
    arbitrary[problem.graph.sequence] = -np.arange(float(count))
    priorities = (above, through, arbitrary)
    on = critical(problem.graph, through)
    free, pinned = np.full(count, -1), np.where(on, int(np.argmin(cost[on].sum(axis=0))), -1)
    return [
        _listed(
            *problem[:3], priorities[one.priority], pinned if one.reserved else free, one.compare, one.append,
            2 if one.sufferage else 1, fetched,
        )
        for one in schedulers
    ]  # fmt: skip


class Drawn(NamedTuple):
    """A small workflow and its network, which ``changed`` changes: run times at speed 1, data of each pair of tasks (0:
    no edge), speeds, and seconds per byte of nodes."""

    seconds: Floats
    data: Floats
    speed: Floats
    pace: Floats

    def problem(self) -> Problem:
        """The same as the input of schedulers."""
        child, parent = np.nonzero(self.data.T)
        count, nodes = len(self.seconds), len(self.speed)
        start = np.concatenate([[0], np.cumsum(np.bincount(child, minlength=count))]).astype(np.int64)
        nothing, ones = np.zeros(nodes), np.ones(count, np.int64)
        fleet = Fleet(np.ones(nodes, np.int64), nothing + np.inf, self.pace, nothing, nothing, nothing + 1, nothing)
        cost = self.seconds[:, None] / self.speed
        work = Work(cost, np.zeros(count), ones, np.zeros(count), self.data[parent, child])
        return problem(graph(start, parent.astype(np.int64)), work, fleet)


LEAST = 0.01  # of all that is drawn, up to 1
TASKS, NODES = (3, 8), (2, 5)
COOLING = 0.99
STEP = 0.2


def drawn(random: np.random.Generator) -> Drawn:
    """A chain of tasks on a few nodes."""
    tasks, nodes = int(random.integers(*TASKS)), int(random.integers(*NODES))
    data = np.diag(random.uniform(LEAST, 1, tasks - 1), 1)
    return Drawn(random.uniform(LEAST, 1, tasks), data, *random.uniform(LEAST, 1, (2, nodes)))


def changed(one: Drawn, random: np.random.Generator) -> Drawn:
    """The same with another weight of a task, edge, node or link, or with an edge more or less."""
    one = Drawn(*(part.copy() for part in one))
    what, (i, j) = int(random.integers(6)), np.sort(random.choice(len(one.seconds), 2, replace=False))
    if what < 4:
        part = one[what]
        where = tuple(random.choice(np.argwhere(part > 0))) if part.any() else ()
        if where:
            part[where] = np.clip(part[where] + random.uniform(-STEP, STEP), LEAST, 1)
    else:
        one.data[i, j] = random.uniform(LEAST, 1) if what == 4 else 0.0
    return one


def shortest(problem: Problem, *, fetched: bool = False) -> float:
    """The least makespan of the 72, seconds."""
    return min(length(plan) for plan in parametric(problem, fetched=fetched))


def worst(
    makespan: Callable[[Problem], float],
    random: np.random.Generator,
    steps: int,
    least: Callable[[Problem], float] = shortest,
    warmth: float = 0.1,
) -> tuple[float, Problem]:
    """The largest ratio found of a scheduler's makespan to the ``least`` of the 72, and its workflow.

    ``warmth``: temperature of the ratio's logarithm at first.
    """

    def ratio(one: Drawn) -> float:
        problem = one.problem()
        return makespan(problem) / least(problem)

    at = drawn(random)
    now = ratio(at)
    most, result = now, at
    for _ in range(steps):
        other = changed(at, random)
        value = ratio(other)
        if random.uniform() < np.exp(min(np.log(value / now) / warmth, 0.0)):
            at, now = other, value
        if value > most:
            most, result = value, other
        warmth *= COOLING
    return most, result.problem()

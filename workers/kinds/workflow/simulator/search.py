"""Search for a better plan than any rule's: the best rules' plans, bettered by threshold accepting, then the best."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from app.kinds.workflow.scheduling.placement import Plan, Rule
from app.kinds.workflow.scheduling.planning import Problem
from app.kinds.workflow.scheduling.portfolio import cost_rules, length, money, rules
from app.kinds.workflow.scheduling.ranks import Floats, Indices
from workers.kinds.workflow.simulator.annealing import DRAWS, SearchObjective, course, plan_of
from workers.kinds.workflow.simulator.planner import COMPILED_RANKS, anneal, place, plan

Solution = TypeVar("Solution")
LEGS = ((3, 0.4), (1, 0.3), (1, 0.3))  # of a search: how many of the best go on, and their share of all attempts
STARTS = LEGS[0][0]
WORK = 8e4  # of a search, in what takes about a microsecond
MOST_ATTEMPTS = 100_000
ATTEMPT_WORK = (0.4, 0.0055, 0.001)  # of an attempt: whatever its size, for each task, for each edge
MOMENTS = 100  # from which a lower bound looks at what is left
SHORT = SearchObjective()


def rest(given: Problem) -> Floats:
    """Seconds that what follows each task takes at least, [N]."""
    graph, least = given.graph, given.work.cost.min(axis=1)
    return COMPILED_RANKS.upward(graph, least, np.zeros(len(graph.parents))) - least


def bound(given: Problem) -> float:
    """No plan is shorter, seconds.

    The longest way on the quickest nodes; and, of all tasks that can't begin before one moment and leave so much after
    them, together their work on as many of the quickest processors as they could use (Fernandez and Bussell 1973).
    """
    graph, work, fleet = given.graph, given.work, given.fleet
    least, after = work.cost.min(axis=1), rest(given)
    if not len(least):
        return 0.0
    head = np.zeros(len(least))
    for task in graph.sequence:
        parents = graph.parents[graph.parent_start[task] : graph.parent_start[task + 1]]
        ready = (head[parents] + least[parents]).max(initial=0.0)
        head[task] = max(work.submit[task], fleet.available.min(), ready)
    speed = (least[:, None] / np.where(work.cost > 0, work.cost, 1.0)).max(axis=0)  # of each node against the quickest
    rates = np.concatenate([[0.0], np.cumsum(np.sort(np.repeat(speed, fleet.processors))[::-1])])
    found = float((head + least + after).max())
    moments = np.unique(head)
    for moment in moments[:: max(1, len(moments) // MOMENTS)]:
        late = np.flatnonzero(head >= moment)
        late = late[np.argsort(-after[late], kind="stable")]
        width = np.minimum(np.cumsum(work.processors[late]), len(rates) - 1)
        together = np.cumsum(least[late] * work.processors[late]) / np.maximum(rates[width], 1e-12)
        found = max(found, float((moment + together + after[late]).max()))
    return found


def value(given: Problem, plan: Plan, objective: SearchObjective) -> float:
    """How far ``plan`` is from ``objective``; less is better."""
    bills = money(given, plan) if objective.cost_weight > 0 else 0.0
    return max(objective.time_weight * length(plan), objective.cost_weight * bills)


def attempts_for(given: Problem) -> int:
    """Attempts of a whole search, about a tenth of a second: of the input alone, so that the plan is, too."""
    each, task, edge = ATTEMPT_WORK
    cost = each + task * len(given.average) + edge * len(given.along)
    return int(min(MOST_ATTEMPTS, WORK / cost))


def order_of(given: Problem, made: Plan) -> Indices:
    """The tasks of a plan by their starts, those of one moment after their parents, [N]."""
    place = np.empty(len(made.start), np.int64)
    place[given.graph.sequence] = np.arange(len(place))
    return np.lexsort((place, made.start))


def searched(
    given: Problem, start: Plan, objective: SearchObjective, random: np.random.Generator, attempts: int
) -> Plan:
    """A plan at least as good as ``start``, after so many ``attempts`` to better it."""
    draws = random.uniform(size=(attempts, DRAWS))
    enough = bound(given) * objective.time_weight * (1 + 1e-9) if objective.cost_weight == 0 else 0.0
    at = course(order_of(given, start), start.node.astype(np.int64), given.fleet.processors)
    order, node, _ = anneal(
        at, given.graph, given.work, given.fleet, rest(given), objective._replace(enough=enough), draws
    )
    made = remembering(given, order, node) if forgetful(given) else plan_of(order, node, *given[:3])
    return min(start, made, key=lambda one: value(given, one, objective))


def forgetful(given: Problem) -> bool:
    """Whether tasks could need more memory beside each other than a node has; searches do not look at it."""
    largest = np.sort(given.work.memory)[::-1]
    needed = np.cumsum(largest)[np.minimum(given.fleet.processors, len(largest)) - 1] if len(largest) else 0.0
    return bool((needed > given.fleet.memory).any())


def remembering(given: Problem, order: Indices, node: Indices) -> Plan:
    """A solution placed anew, each task where and after what it was, with memory looked at."""
    bias = np.full(given.work.cost.shape, np.inf)
    bias[np.arange(len(node)), node] = 0.0
    rule = Rule(order, bias, np.full(len(node), np.inf), 1.0, 0.0)
    return place(given.graph, given.work, given.fleet, rule)


def candidates(given: Problem, objective: SearchObjective) -> list[Rule]:
    """The rules that the agent begins with."""
    known = rules(given, ranks=COMPILED_RANKS)
    return known + cost_rules(given) if objective.cost_weight > 0 else known


def begun(given: Problem, objective: SearchObjective) -> list[Plan]:
    """The best few plans of rules, no two of the same worth; the best one first."""
    made = [plan(given, rule) for rule in candidates(given, objective)]
    worth = [value(given, one, objective) for one in made]
    _, first = np.unique(np.round(worth, 9), return_index=True)
    return [made[k] for k in sorted(first, key=lambda k: worth[k])[:STARTS]]


def agent(
    given: Problem, random: np.random.Generator, objective: SearchObjective = SHORT, attempts: int | None = None
) -> Plan:
    """The best plan of published and learned rules for ``objective``, improved by search; never worse than HEFT's."""
    return bettered(
        begun(given, objective),
        lambda start, each: searched(given, start, objective, random, each),
        lambda one: value(given, one, objective),
        attempts_for(given) if attempts is None else attempts,
    )


def bettered(
    starts: Sequence[Solution],
    search: Callable[[Solution, int], Solution],
    worth: Callable[[Solution], float],
    attempts: int,
) -> Solution:
    """The best of ``starts`` after a search by ``LEGS``, none of which makes a solution worse; the least is best."""
    for keep, share in LEGS:
        starts = sorted(starts, key=worth)[:keep]
        starts = [search(start, int(attempts * share / len(starts))) for start in starts]
    return min(starts, key=worth)

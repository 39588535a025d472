"""From what is left of a live workflow to the best plan that can be found in about a tenth of a second."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.plans.message import WORTHWHILE, Found, Remaining
from app.kinds.workflow.scheduling.placement import Fleet, Rule, Work
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem, problem
from app.kinds.workflow.scheduling.portfolio import rules
from app.kinds.workflow.scheduling.ranks import Indices, graph
from workers.kinds.workflow.plan_search import beginnings
from workers.kinds.workflow.simulator.annealing import DRAWS, Course, course, timed
from workers.kinds.workflow.simulator.compiling import compilable, kernel
from workers.kinds.workflow.simulator.planner import COMPILED_RANKS, anneal
from workers.kinds.workflow.simulator.search import SHORT, STARTS, attempts_for, bettered, bound, rest

compilable(beginnings.take, beginnings.room, beginnings.ready_at)
_appended = kernel(beginnings.appended)
_dispatched = kernel(beginnings.dispatched)
_timed = kernel(timed)


class Solution(NamedTuple):
    """An order of all tasks [N], a node for each [N], and when the last one ends, seconds."""

    order: Indices
    node: Indices
    length: float


def problem_of(left: Remaining) -> Problem:
    """What rules and searches take."""
    tasks, nodes = left.cost.shape
    nothing = np.zeros(nodes)
    work = Work(left.cost, np.zeros(tasks), left.processors, np.zeros(tasks), left.data)
    fleet = Fleet(left.slots, nothing + np.inf, left.pace, left.available, nothing, nothing + 1, nothing)
    return problem(graph(left.parent_start, left.parents), work, fleet)


def _begun(left: Remaining, order: Indices, node: Indices) -> Course:
    """A solution whose fixed tasks are where they are."""
    at = course(order, node, left.slots, left.fixed, fetched=True)
    at.end[: left.fixed] = left.end
    return at


def _free(left: Remaining, rule: Rule) -> Indices:
    """The tasks of a rule's order that aren't fixed."""
    return rule.order[rule.order >= left.fixed]


def base(left: Remaining, given: Problem) -> Solution:
    """What a live queue does by HEFT, if all goes as expected."""
    at = _begun(left, np.arange(len(left.node)), left.node)
    length = _dispatched(at, *given[:3], _free(left, STRATEGIES["heft"](given)))
    return Solution(at.order, at.node, length)


def by_rule(left: Remaining, given: Problem, rule: Rule) -> Solution:
    """The plan of a rule of placement; infinitely long where the rule has no place for a task."""
    at = _begun(left, np.arange(len(left.node)), left.node)
    length = _appended(at, *given[:3], _free(left, rule), rule.bias)
    return Solution(at.order, at.node, length)


def so_far(left: Remaining, given: Problem) -> list[Solution]:
    """The plan that was followed, where it has all tasks."""
    if (left.node < 0).any():
        return []
    at = _begun(left, left.order, left.node)
    return [Solution(left.order, left.node, _timed(at, *given[:3], rest(given), left.fixed, np.inf)[0])]


def searched(left: Remaining, seed: int = 0, attempts: int | None = None) -> Found:
    """The best plan found, if it is worth its while."""
    begun = perf_counter()
    given, random = problem_of(left), np.random.default_rng(seed)
    own, (heft, *others) = base(left, given), rules(given, ranks=COMPILED_RANKS)
    planned = by_rule(left, given, heft)
    known = [own, planned, *so_far(left, given), *(by_rule(left, given, rule) for rule in others)]
    known = [one for one in known if np.isfinite(one.length)]
    _, first = np.unique(np.round([one.length for one in known], 9), return_index=True)
    enough, after = SHORT._replace(enough=bound(given) * (1 + 1e-9)), rest(given)

    def annealed(start: Solution, attempts: int) -> Solution:
        draws = random.uniform(size=(attempts, DRAWS))
        return Solution(*anneal(_begun(left, start.order, start.node), *given[:3], after, enough, draws))

    most = attempts_for(given) if attempts is None else attempts
    best = bettered([known[k] for k in first[:STARTS]], annealed, lambda one: one.length, most)
    better = best.length < own.length * (1 - WORTHWHILE)
    best = best if better else own
    at = _begun(left, best.order, best.node)
    _timed(at, *given[:3], after, left.fixed, np.inf)
    return Found(best.order, best.node, at.start, at.end, planned.length, own.length, better, perf_counter() - begun)

"""Searches for live queues in a child process of a server: plans of workflows, and simulations ahead.

One message in, one message out.

``python -m workers.kinds.workflow.plan_search DESCRIPTOR`` reads and writes raw bytes on a ``multiprocessing``
connection until the parent closes it. Its first message is empty, and says that its loops are compiled.
"""

from __future__ import annotations

import sys
from importlib import import_module
from multiprocessing.connection import Connection
from time import perf_counter
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.ahead import Outlook
from app.kinds.workflow.plans import WORTHWHILE, Remaining, SearchResult, decode, encode
from app.kinds.workflow.scheduling.dispatch import EASY
from app.kinds.workflow.scheduling.placement import Fleet, Floats, Graph, Indices, Rule, Work, graph
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem, problem, rules
from workers.kinds.workflow.simulator.ahead import simulate_ahead
from workers.kinds.workflow.simulator.annealing import (
    COMPILED_RANKS,
    DRAWS,
    SHORT,
    STARTS,
    Course,
    anneal,
    attempts_for,
    bound,
    compute_times,
    course,
    improve_stages,
    replay_processors,
    rest,
    supply_times,
    use_processors,
)
from workers.kinds.workflow.simulator.world import compilable, kernel

# Initial solutions for the rest of a workflow while some of it runs.
#
# Plain functions over arrays that also compile. ``urgent`` are the tasks that are not fixed, each after its parents,
# most urgent first, [N − fixed]; ``at`` changes in place, and the ends of its fixed tasks are set.


def take(at: Course, work: Work, task: int, j: int, turn: int, start: float, end: float) -> None:
    """Append ``task`` at position ``turn`` on node ``j``, from ``start`` to ``end`` seconds."""
    at.order[turn], at.turn[task], at.node[task] = task, turn, j
    at.start[task], at.end[task] = start, end
    use_processors(at, j, work.processors[task], end, task)


def append_tasks(at: Course, graph: Graph, work: Work, fleet: Fleet, urgent: Indices, bias: Floats) -> float:
    """Place each task of ``urgent`` in turn on the node where it ends first, with ``bias`` [N, M] seconds added.

    ``bias`` is infinite on excluded nodes. Returns the last end in seconds; infinite if a task fits no node.
    """
    latest = replay_processors(at, work, fleet, at.fixed)
    for k in range(len(urgent)):
        task = urgent[k]
        chosen, least, begun, ended = -1, np.inf, 0.0, np.inf
        for j in range(len(fleet.pace)):
            if not np.isfinite(work.cost[task, j] + bias[task, j]):
                continue
            start, wait, _ = supply_times(at, graph, work, fleet, task, j)
            start = max(start, at.free[at.first[j] + work.processors[task] - 1])
            end = start + wait + work.cost[task, j]
            if end + bias[task, j] < least:
                chosen, least, begun, ended = j, end + bias[task, j], start, end
        if chosen < 0:
            return np.inf
        take(at, work, task, chosen, at.fixed + k, begun, ended)
        latest = max(latest, ended)
    return latest


def room(at: Course, graph: Graph, work: Work, fleet: Fleet, task: int, now: float) -> tuple[int, float, float]:
    """Return the free node on which a ready task ends first (−1: none), its end, and the second at which enough
    processors are next free on another node (infinite: never)."""
    chosen, ended, following = -1, np.inf, np.inf
    for j in range(len(fleet.pace)):
        if not np.isfinite(work.cost[task, j]):
            continue
        free = at.free[at.first[j] + work.processors[task] - 1]
        if free > now:
            following = min(following, free)
            continue
        _, wait, _ = supply_times(at, graph, work, fleet, task, j)
        if now + wait + work.cost[task, j] < ended:
            chosen, ended = j, now + wait + work.cost[task, j]
    return chosen, ended, following


def ready_at(at: Course, graph: Graph, work: Work, task: int) -> float:
    """Return the second at which all parents of ``task`` have ended; infinite if one is not placed yet."""
    ready = work.submit[task]
    for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
        parent = graph.parents[e]
        if at.turn[parent] < 0:
            return np.inf
        ready = max(ready, at.end[parent])
    return ready


def dispatch_tasks(at: Course, graph: Graph, work: Work, fleet: Fleet, urgent: Indices) -> float:
    """Start the ready tasks among ``urgent`` [k] in turn, each on the free node where it ends first, as a live queue
    does, without waiting for a better node. Returns the last end in seconds; infinite if a task fits no node."""
    latest, now, turn = replay_processors(at, work, fleet, at.fixed), 0.0, at.fixed
    at.turn[urgent] = -1
    while turn < len(at.order):
        following = np.inf
        for task in urgent:
            if at.turn[task] >= 0:
                continue
            ready = ready_at(at, graph, work, task)
            if ready > now:
                following = min(following, ready)
                continue
            j, end, later = room(at, graph, work, fleet, task, now)
            if j < 0:
                following = min(following, later)
                continue
            take(at, work, task, j, turn, now, end)
            turn, latest = turn + 1, max(latest, end)
        if turn < len(at.order) and not np.isfinite(following):
            return np.inf
        now = following
    return latest


compilable(take, room, ready_at)
_appended = kernel(append_tasks)
_dispatched = kernel(dispatch_tasks)
_timed = kernel(compute_times)


class Solution(NamedTuple):
    """A plan: indices of all tasks in order [N], node of each task [N], and the last end in seconds (``length``)."""

    order: Indices
    node: Indices
    length: float


def problem_of(left: Remaining) -> Problem:
    """Convert the remaining workflow to the input of rules and searches, without costs and memory."""
    tasks, nodes = left.cost.shape
    nothing = np.zeros(nodes)
    work = Work(left.cost, np.zeros(tasks), left.processors, np.zeros(tasks), left.data)
    fleet = Fleet(left.slots, nothing + np.inf, left.pace, left.available, nothing, nothing + 1, nothing)
    return problem(graph(left.parent_start, left.parents), work, fleet)


def _initial_course(left: Remaining, order: Indices, node: Indices) -> Course:
    """Make a solution (tasks in ``order`` [N], each on its ``node`` [N]) in which the ends of fixed tasks are set."""
    at = course(order, node, left.slots, left.fixed, fetched=True)
    at.end[: left.fixed] = left.end
    return at


def _free(left: Remaining, rule: Rule) -> Indices:
    """Return the tasks that are not fixed, in the rule's order, [N − fixed]."""
    return rule.order[rule.order >= left.fixed]


def base(left: Remaining, problem: Problem) -> Solution:
    """Make the plan of a live queue that dispatches by HEFT, if run times are as expected."""
    at = _initial_course(left, np.arange(len(left.node)), left.node)
    length = _dispatched(at, *problem[:3], _free(left, STRATEGIES["heft"](problem)))
    return Solution(at.order, at.node, length)


def by_rule(left: Remaining, problem: Problem, rule: Rule) -> Solution:
    """Make the plan of a placement rule; its length is infinite if the rule can't place a task."""
    at = _initial_course(left, np.arange(len(left.node)), left.node)
    length = _appended(at, *problem[:3], _free(left, rule), rule.bias)
    return Solution(at.order, at.node, length)


def so_far(left: Remaining, problem: Problem) -> list[Solution]:
    """Return a list of the present plan with its times computed anew; empty if it lacks a task."""
    if (left.node < 0).any():
        return []
    at = _initial_course(left, left.order, left.node)
    return [Solution(left.order, left.node, _timed(at, *problem[:3], rest(problem), left.fixed, np.inf)[0])]


def search_plan(left: Remaining, seed: int = 0, attempts: int | None = None) -> SearchResult:
    """Search for a plan; return it if it is shorter than the plan of dispatching by the share ``WORTHWHILE``, else that
    plan.

    ``attempts``: number of search attempts; None: about a tenth of a second's worth."""
    begun = perf_counter()
    problem, random = problem_of(left), np.random.default_rng(seed)
    own, (heft, *others) = base(left, problem), rules(problem, ranks=COMPILED_RANKS)
    planned = by_rule(left, problem, heft)
    known = [own, planned, *so_far(left, problem), *(by_rule(left, problem, rule) for rule in others)]
    known = [one for one in known if np.isfinite(one.length)]
    _, first = np.unique(np.round([one.length for one in known], 9), return_index=True)
    enough, after = SHORT._replace(enough=bound(problem) * (1 + 1e-9)), rest(problem)

    def annealed(start: Solution, attempts: int) -> Solution:
        draws = random.uniform(size=(attempts, DRAWS))
        return Solution(*anneal(_initial_course(left, start.order, start.node), *problem[:3], after, enough, draws))

    most = attempts_for(problem) if attempts is None else attempts
    best = improve_stages([known[k] for k in first[:STARTS]], annealed, lambda one: one.length, most)
    better = best.length < own.length * (1 - WORTHWHILE)
    best = best if better else own
    at = _initial_course(left, best.order, best.node)
    _timed(at, *problem[:3], after, left.fixed, np.inf)
    return SearchResult(
        best.order, best.node, at.start, at.end, planned.length, own.length, better, perf_counter() - begun
    )


TRIAL = Remaining(
    parent_start=np.array([0, 0, 1]), parents=np.array([0]), data=np.ones(1), cost=np.ones((2, 2)),
    processors=np.ones(2, np.int64), end=np.zeros(0), node=np.array([0, 0]), order=np.arange(2),
    slots=np.ones(2, np.int64), available=np.zeros(2), pace=np.ones(2),
)  # fmt: skip

TRIAL_QUEUE = Outlook(
    need=np.array([2, 1]), plan=np.full(2, 60.0), score=np.arange(2.0), length=np.zeros(2), share=np.zeros(2),
    processors=np.ones(1, np.int64), planned=np.full(1, 60.0), ran=np.ones(1), running_length=np.zeros(1),
    running_share=np.zeros(1), past=np.zeros(0), free=1, head=-1, waiting=2, mechanism=EASY, seed=0,
)  # fmt: skip


def main(descriptor: int) -> None:
    """Search a plan, or simulate a queue ahead, for each message on the file descriptor, until the parent closes the
    connection.

    Raises:
        OSError: the descriptor is no open connection, or an answer can't be sent.
    """
    search_plan(TRIAL, attempts=30)
    simulate_ahead(TRIAL_QUEUE)
    with Connection(descriptor) as parent:
        parent.send_bytes(b"")
        while True:
            try:
                message = parent.recv_bytes()
            except EOFError:
                return
            fields = decode(message)
            parent.send_bytes(
                encode(simulate_ahead(Outlook(**fields)) if "past" in fields else search_plan(Remaining(**fields)))
            )


if __name__ == "__main__":  # run under the module's own name, by which compiled loops are cached
    import_module("workers.kinds.workflow.plan_search").main(int(sys.argv[1]))

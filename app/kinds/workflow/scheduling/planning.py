"""Planning strategies by name, learned rules, and tuned priorities."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.queue import Nodes
from app.kinds.workflow.scheduling.placement import (
    PLAIN,
    Fleet,
    Floats,
    Graph,
    Plan,
    Ranks,
    Rule,
    Work,
    bill,
    critical,
    downward,
    first_ready,
    graph,
    levels,
    optimistic,
    upward,
)
from app.kinds.workflow.trace import Seconds, Trace

INSTANT = 1e-6  # weight of a second under cost rules: among equally cheap nodes the fastest


class Problem(NamedTuple):
    """N tasks to place on nodes, with quantities derived for rules.

    Attributes:
        graph: edges between the tasks.
        work: the tasks.
        fleet: the nodes.
        average: run time of each task averaged over nodes that it fits, seconds, [N].
        along: transfer time along each of E edges, averaged over pairs of different nodes, seconds, [E].
        deadline: deadline of each task, seconds; infinite: none, [N].
    """

    graph: Graph
    work: Work
    fleet: Fleet
    average: Floats
    along: Floats
    deadline: Floats


def mean_pace(pace: Floats) -> float:
    """Return mean seconds per byte between two different nodes, over all pairs; ``pace``: of each of M nodes, [M]."""
    count = len(pace)
    if count < 2:
        return 0.0
    return float((np.sort(pace) * np.arange(count)).sum() * 2 / (count * (count - 1)))


def problem(graph: Graph, work: Work, fleet: Fleet, deadline: Floats | None = None) -> Problem:
    """Return a problem of N tasks with averages over nodes derived; ``deadline``: seconds, [N], None: no deadlines."""
    fits = np.isfinite(work.cost)
    average = np.where(fits, work.cost, 0.0).sum(axis=1) / np.maximum(fits.sum(axis=1), 1)
    due = np.full(len(average), np.inf) if deadline is None else deadline
    return Problem(graph, work, fleet, average, work.data * mean_pace(fleet.pace), due)


def fleet_of(nodes: Nodes) -> Fleet:
    """Return the nodes at time 0, when only permanent ones are up; these have price 0, as they are paid for anyway."""
    startup, price = np.where(nodes.permanent, 0.0, nodes.startup), np.where(nodes.permanent, 0.0, nodes.price)
    return Fleet(nodes.processors, nodes.memory, 1.0 / nodes.bandwidth, startup, price, nodes.billing, startup)


def work_of(trace: Trace, nodes: Nodes, runtime: Floats) -> Work:
    """Return the N tasks of ``trace`` with run times ``runtime`` at speed 1, seconds, [N].

    Raises:
        ValueError: a task fits none of the nodes.
    """
    memory = np.where(np.isnan(trace.memory), 0.0, trace.memory)
    fits = (trace.processors[:, None] <= nodes.processors) & (memory[:, None] <= nodes.memory)
    if not fits.any(axis=1).all():
        task = int(np.flatnonzero(~fits.any(axis=1))[0])
        raise ValueError(
            f"task {trace.names[task]} is larger than any node: {trace.processors[task]} processors, "
            f"{memory[task] / 1e9:.3g} GB of memory"
        )
    cost = np.where(fits, runtime[:, None] / nodes.speed, np.inf)
    data = np.where(np.isnan(trace.data), 0.0, trace.data)
    return Work(cost, trace.submit.copy(), trace.processors.copy(), memory, data)


def problem_of(trace: Trace, nodes: Nodes, runtime: Floats | None = None) -> Problem:
    """Return the problem of N tasks of ``trace`` on ``nodes``. ``runtime``: seconds at speed 1, [N]; None: those a
    scheduler expects.

    Raises:
        ValueError: a task fits none of the nodes, or there is a cycle.
    """
    seconds = trace.expected if runtime is None else runtime
    deadline = np.where(np.isnan(trace.deadline), np.inf, trace.deadline)
    edges = graph(trace.parent_start, trace.parents)
    return problem(edges, work_of(trace, nodes, seconds), fleet_of(nodes), deadline)


def _rule(problem: Problem, priority: Floats, bias: Floats | None = None) -> Rule:
    tasks = len(priority)
    order = first_ready(problem.graph, priority)
    none = np.zeros(problem.work.cost.shape) if bias is None else bias
    return Rule(order, none, np.full(tasks, np.inf), 1.0, 0.0)


def heft(problem: Problem) -> Rule:
    """Return the rule of heterogeneous earliest finish time (HEFT; Topcuoglu, Hariri and Wu 2002)."""
    return _rule(problem, upward(problem.graph, problem.average, problem.along))


def cpop(problem: Problem) -> Rule:
    """Return the rule of critical path on a processor (CPOP; Topcuoglu, Hariri and Wu 2002), which places all tasks of
    that path on the node that is fastest for them."""
    priority = upward(problem.graph, problem.average, problem.along) + downward(
        problem.graph, problem.average, problem.along
    )
    on = critical(problem.graph, priority)
    bias = np.zeros(problem.work.cost.shape)
    node = int(np.argmin(problem.work.cost[on].sum(axis=0)))
    pinned = on & np.isfinite(problem.work.cost[:, node])
    bias[pinned] = np.inf
    bias[pinned, node] = 0.0
    return _rule(problem, priority, bias)


def peft(problem: Problem) -> Rule:
    """Return the rule of predict earliest finish time, by the optimistic cost table (PEFT; Arabnejad and Barbosa
    2014)."""
    table = optimistic(problem.graph, problem.work.cost, problem.along)
    return _rule(problem, table.mean(axis=1), table)


def level(problem: Problem) -> Rule:
    """Return the rule that places tasks by level (most edges from an entry task), in each level the longest first."""
    depth = levels(problem.graph)
    longest = problem.average.max(initial=0.0) + 1.0
    return _rule(problem, -depth - 1 + problem.average / longest)


def cheapest(problem: Problem) -> Rule:
    """Return the rule with HEFT's order that places each task on the node whose bill grows least."""
    return heft(problem)._replace(time_weight=INSTANT, cost_weight=1.0)


def deadline(problem: Problem) -> Rule:
    """Return the rule with HEFT's order that places a task on the cheapest node that lets its descendants meet their
    deadlines. Descendants take their upward rank on the average node; a task without a deadline inherits its
    children's."""
    rest = upward(problem.graph, problem.average, problem.along)
    latest = problem.deadline.copy()
    for task in problem.graph.sequence[::-1]:
        for k in range(problem.graph.child_start[task], problem.graph.child_start[task + 1]):
            child, edge = problem.graph.children[k], problem.graph.edge[k]
            before = latest[child] - problem.average[child] - problem.along[edge]
            latest[task] = min(latest[task], before)
    order = first_ready(problem.graph, rest)
    return Rule(order, np.zeros(problem.work.cost.shape), latest, INSTANT, 1.0)


STRATEGIES: dict[str, Callable[[Problem], Rule]] = {
    "heft": heft,
    "cpop": cpop,
    "peft": peft,
    "level": level,
    "cheapest": cheapest,
    "deadline": deadline,
}


# Portfolio of placement rules: published strategies and learned ones, of which the best plan is used.
#
# A learned rule is seven numbers, chosen on generated workflows such that together they cover most.


MADE = ("heft", "cpop", "peft", "level")


class LearnedRule(NamedTuple):
    """Weights of a learned placement rule.

    Attributes:
        transfer: weight of transfers in ranks; 1 in HEFT.
        fastest: weight of the fastest node's run time against the average, in ranks; 0 in HEFT.
        optimism: weight of the optimistic cost table against the upward rank, in the priority; 1 in PEFT.
        depth: weight of the downward rank in the priority; 1 in CPOP.
        foresight: weight of the optimistic cost table added to a task's end; 1 in PEFT.
        waste: weight of the seconds longer than on the fastest node, added to a task's end.
        share: fraction of the nodes, the fastest, that are used.
    """

    transfer: float
    fastest: float
    optimism: float
    depth: float
    foresight: float
    waste: float
    share: float


LEARNED_RULES = (
    LearnedRule(1.0, 0.0, 0.76, 0.13, 1.11, 0.22, 1.0),
    LearnedRule(2.97, 0.17, 0.3, 0.15, 0.13, 0.0, 1.0),
    LearnedRule(1.0, 0.73, 0.71, 0.63, 0.62, 0.0, 1.0),
    LearnedRule(0.7, 0.49, 0.94, 0.0, 0.0, 0.0, 1.0),
    LearnedRule(2.9, 0.0, 0.06, 0.0, 0.93, 0.0, 1.0),
    LearnedRule(0.8, 0.0, 0.47, 0.0, 0.0, 0.33, 1.0),
    LearnedRule(1.11, 0.91, 0.92, 0.38, 0.06, 0.0, 0.86),
    LearnedRule(1.55, 0.26, 0.79, 0.0, 0.84, 0.0, 0.41),
    LearnedRule(2.9, 0.55, 0.0, -0.49, 0.0, 0.0, 1.0),
    LearnedRule(1.0, 0.75, 0.62, 0.01, 0.0, 0.0, 1.0),
    LearnedRule(1.29, 0.0, 0.95, -0.07, 0.0, 0.71, 0.15),
    LearnedRule(2.81, 0.0, 0.96, 0.95, 0.82, 0.0, 1.0),
    LearnedRule(0.22, 0.0, 0.0, 0.0, 0.0, 0.0, 0.41),
    LearnedRule(1.69, 0.94, 0.0, 0.0, 0.3, 0.0, 1.0),
    LearnedRule(1.0, 0.42, 0.61, 0.37, 1.23, 0.0, 1.0),
    LearnedRule(0.5, 0.0, 0.93, -0.16, 0.0, 0.0, 1.0),
)


class RuleInputs(NamedTuple):
    """Inputs of learned rules for N tasks on M nodes.

    Attributes:
        table: optimistic cost table in seconds, [N, M].
        least: least run time of each task in seconds, [N].
        place: rank of each node by speed over the number of nodes, above 0 and up to 1, fastest first, [M].
    """

    table: Floats
    least: Floats
    place: Floats


def rule_inputs(problem: Problem, ranks: Ranks = PLAIN) -> RuleInputs:
    """Return the inputs shared by all learned rules for a problem."""
    cost = problem.work.cost
    fits = np.isfinite(cost)
    total = np.where(fits, cost, 0.0).sum(axis=0) / np.maximum(fits.sum(axis=0), 1)
    place = np.argsort(np.argsort(total, kind="stable"), kind="stable")
    return RuleInputs(ranks.optimistic(problem.graph, cost, problem.along), cost.min(axis=1), (place + 1) / len(place))


def learned(problem: Problem, rule_inputs: RuleInputs, learned_rule: LearnedRule, ranks: Ranks = PLAIN) -> Rule:
    """Return the placement rule with the weights of ``learned_rule``; ``rule_inputs``: inputs from ``rule_inputs``."""
    average = (1 - learned_rule.fastest) * problem.average + learned_rule.fastest * rule_inputs.least
    along = learned_rule.transfer * problem.along
    priority = (1 - learned_rule.optimism) * ranks.upward(problem.graph, average, along)
    priority += learned_rule.optimism * (rule_inputs.table.mean(axis=1) + average)
    if learned_rule.depth:
        priority += learned_rule.depth * ranks.downward(problem.graph, average, along)
    fits = np.isfinite(problem.work.cost)
    wasted = np.where(fits, problem.work.cost, 0.0) - np.where(fits, rule_inputs.least[:, None], 0.0)
    bias = learned_rule.foresight * rule_inputs.table + learned_rule.waste * wasted
    used = rule_inputs.place <= max(learned_rule.share, 1 / len(rule_inputs.place)) + 1e-9
    bias[~fits] = np.inf
    bias[np.outer((fits & used).any(axis=1), ~used)] = np.inf
    count = len(priority)
    return Rule(ranks.first_ready(problem.graph, priority), bias, np.full(count, np.inf), 1.0, 0.0)


def rules(problem: Problem, learned_rules: tuple[LearnedRule, ...] = LEARNED_RULES, ranks: Ranks = PLAIN) -> list[Rule]:
    """Return the placement rules ``MADE`` (of the literature), then ``learned_rules``, for a problem."""
    inputs = rule_inputs(problem, ranks)
    return [STRATEGIES[name](problem) for name in MADE] + [
        learned(problem, inputs, learned_rule, ranks) for learned_rule in learned_rules
    ]


def length(plan: Plan) -> float:
    """Return a plan's makespan: seconds until the last task ends; infinite if a task fits no node."""
    return float(plan.end.max(initial=0.0))


def money(problem: Problem, plan: Plan) -> float:
    """Return the price of all nodes, each rented from its startup before its first task to its last one's end."""
    nodes = len(problem.fleet.processors)
    first, last = np.full(nodes, np.inf), np.full(nodes, -np.inf)
    np.minimum.at(first, plan.node, plan.start)
    np.maximum.at(last, plan.node, plan.end)
    return float(sum(bill(problem.fleet, j, first[j], last[j]) for j in range(nodes)))


def cost_rules(problem: Problem, slack: tuple[float, ...] = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)) -> list[Rule]:
    """Return rules for low cost: the cheapest node, and deadlines of ``slack`` times the longest path's seconds."""
    longest = PLAIN.upward(problem.graph, problem.average, problem.along).max(initial=0.0)
    due = [problem._replace(deadline=np.full(len(problem.average), times * longest)) for times in slack]
    return [STRATEGIES["cheapest"](problem), *(STRATEGIES["deadline"](each) for each in due)]


# Family of priority rules: a score per waiting task, smallest first, from few tuned numbers.
#
# p predicted run time, n processors, N those of the machine, w waiting time; SAF is a = 1 and the rest 0; the rules of
# Tang et al. 2009 and of Carastan-Santos and de Camargo 2017 are close to others of the family:
#
#     score = log p + a·log n + b·n/N − c·log(1 + w/(exp(d)·(p/3000)^e))
#
# Backfilling is by log p + f·log n. p is the requested time times the predicted share of it to the power of g; at g = 0
# users are believed. Compiled by Numba too.


NAMES = ("size", "width", "ageing", "patience", "stretch", "overtaking", "prediction")
SIZE, WIDTH, AGEING, PATIENCE, STRETCH, OVERTAKING, PREDICTION = range(7)
WEIGHTS = len(NAMES)
USUAL = 8.0  # log of 3000 seconds
SAF = (1.0, 0.0, 0.0, USUAL, 0.0, 1.0, 0.0)


def scores(
    weights: Seconds, now: float, submit: Seconds, length: Seconds, processors: NDArray[np.int64], machine: int
) -> Seconds:
    """Return the score of each of Q waiting tasks, smallest first, [Q].

    Args:
        weights: weights of size, width, waiting and others, in the order of ``NAMES``, [``WEIGHTS``].
        now: seconds on the clock of ``submit``.
        submit: submission in seconds, [Q].
        length: natural logarithm of the predicted run time in seconds, [Q].
        processors: number of processors of each task, [Q].
        machine: number of processors of the machine.
    """
    patience = np.exp(weights[PATIENCE] + weights[STRETCH] * (length - USUAL))
    waited = np.log1p(np.maximum(now - submit, 0.0) / patience)
    size = weights[SIZE] * np.log(processors) + weights[WIDTH] * processors / machine
    return length + size - weights[AGEING] * waited


def overtaking(weights: Seconds, length: Seconds, processors: NDArray[np.int64]) -> Seconds:
    """Return the scores of Q tasks for the backfilling order, smallest first, [Q], by logs of run time (``length``,
    [Q]) and processors; ``weights`` [``WEIGHTS``]."""
    return length + weights[OVERTAKING] * np.log(processors)


SHARE_POWER, SIZE_POWER = 0.75, 0.5
"""Powers of the predicted share and of the processors in ``lookahead``'s order under easy backfilling, those that are
best on five logs that have estimates (``benchmarks workflow_ahead:orders``)."""
FINEST = 1e-9
"""Step to which scores are rounded: sums in another order differ by less, and equal tasks must have equal scores."""


def starting_scores(
    length: Seconds, share: Seconds, reported: NDArray[np.bool_], processors: NDArray[np.int64], easy: bool
) -> Seconds:
    """Return the logarithm of each of Q tasks' score in the order that ``lookahead`` starts from, smallest first, [Q]:
    the predicted area, and under easy backfilling an order nearer to the shortest first where run times are predicted.
    Multiples of ``FINEST``.

    Args:
        length, share: natural logarithms of the estimate in seconds and of the predicted share of it, [Q].
        reported: whether a task has an estimate; the run time of others is taken as known, [Q].
        processors: processors of each task, [Q].
        easy: whether backfilling is easy.
    """
    of_share, of_size = (SHARE_POWER, SIZE_POWER) if easy else (1.0, 1.0)
    score = length + of_share * share + np.where(reported, of_size, 1.0) * np.log(processors)
    return FINEST * np.rint(score / FINEST)

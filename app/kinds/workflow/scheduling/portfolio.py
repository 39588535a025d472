"""A portfolio of rules of placement: the published strategies and learned ones, of which the best plan is taken.

A learned rule is seven numbers. They were chosen on generated workflows, so that together they reach the most.
"""

from typing import NamedTuple

import numpy as np

from app.kinds.workflow.scheduling.placement import Plan, Rule, bill
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem
from app.kinds.workflow.scheduling.ranks import PLAIN, Floats, Ranks

MADE = ("heft", "cpop", "peft", "level")


class LearnedRule(NamedTuple):
    """Weights of a learned rule of placement.

    Attributes:
        transfer: what transfers count in ranks, 1 in HEFT's.
        fastest: share of the quickest node's run time, against the average, in ranks; 0 in HEFT's.
        optimism: share of the optimistic cost table, against the upward rank, in the priority; 1 in PEFT's.
        depth: of the downward rank, added to the priority; 1 in CPOP's.
        foresight: of the optimistic cost table, added to a task's end on a node; 1 in PEFT.
        waste: of the seconds that a task takes longer than on the quickest node, added to its end.
        share: of the nodes, the quickest, that are used at all.
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
    """Inputs of learned rules: optimistic cost table [N, M], least run time of each task [N], nodes by speed [M]."""

    table: Floats
    least: Floats
    place: Floats


def rule_inputs(given: Problem, ranks: Ranks = PLAIN) -> RuleInputs:
    """The inputs that all learned rules share, from a problem."""
    cost = given.work.cost
    fits = np.isfinite(cost)
    total = np.where(fits, cost, 0.0).sum(axis=0) / np.maximum(fits.sum(axis=0), 1)
    place = np.argsort(np.argsort(total, kind="stable"), kind="stable")
    return RuleInputs(ranks.optimistic(given.graph, cost, given.along), cost.min(axis=1), (place + 1) / len(place))


def learned(given: Problem, seen: RuleInputs, learned_rule: LearnedRule, ranks: Ranks = PLAIN) -> Rule:
    """The rule of placement with the weights of ``learned_rule``."""
    average = (1 - learned_rule.fastest) * given.average + learned_rule.fastest * seen.least
    along = learned_rule.transfer * given.along
    priority = (1 - learned_rule.optimism) * ranks.upward(given.graph, average, along)
    priority += learned_rule.optimism * (seen.table.mean(axis=1) + average)
    if learned_rule.depth:
        priority += learned_rule.depth * ranks.downward(given.graph, average, along)
    fits = np.isfinite(given.work.cost)
    wasted = np.where(fits, given.work.cost, 0.0) - np.where(fits, seen.least[:, None], 0.0)
    bias = learned_rule.foresight * seen.table + learned_rule.waste * wasted
    used = seen.place <= max(learned_rule.share, 1 / len(seen.place)) + 1e-9
    bias[~fits] = np.inf
    bias[np.outer((fits & used).any(axis=1), ~used)] = np.inf
    count = len(priority)
    return Rule(ranks.first_ready(given.graph, priority), bias, np.full(count, np.inf), 1.0, 0.0)


def rules(given: Problem, learned_rules: tuple[LearnedRule, ...] = LEARNED_RULES, ranks: Ranks = PLAIN) -> list[Rule]:
    """The published rules and ``learned_rules``."""
    seen = rule_inputs(given, ranks)
    return [STRATEGIES[name](given) for name in MADE] + [
        learned(given, seen, learned_rule, ranks) for learned_rule in learned_rules
    ]


def length(plan: Plan) -> float:
    """Seconds until the last task ends."""
    return float(plan.end.max(initial=0.0))


def money(given: Problem, plan: Plan) -> float:
    """What the nodes cost, each rented from its start-up before its first task to its last one's end."""
    nodes = len(given.fleet.processors)
    first, last = np.full(nodes, np.inf), np.full(nodes, -np.inf)
    np.minimum.at(first, plan.node, plan.start)
    np.maximum.at(last, plan.node, plan.end)
    return float(sum(bill(given.fleet, j, first[j], last[j]) for j in range(nodes)))


def cost_rules(given: Problem, slack: tuple[float, ...] = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)) -> list[Rule]:
    """Rules that look at money: the cheapest node, and deadlines of so many times the longest way through the tasks."""
    longest = PLAIN.upward(given.graph, given.average, given.along).max(initial=0.0)
    due = [given._replace(deadline=np.full(len(given.average), times * longest)) for times in slack]
    return [STRATEGIES["cheapest"](given), *(STRATEGIES["deadline"](each) for each in due)]

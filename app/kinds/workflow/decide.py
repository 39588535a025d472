"""Decisions of kind ``workflow``: tasks to start and their nodes, by an order or a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from app.charts.text import duration, percent, seconds
from app.kinds.contract.engine import Snapshot
from app.kinds.contract.inputs import FieldIssue
from app.kinds.engine import deciding_policy
from app.kinds.workflow.ahead import look_ahead
from app.kinds.workflow.plan_search import PlanSearch, SearchUnavailableError, UnplannableError, left_of, rented_nodes
from app.kinds.workflow.plans import WORTHWHILE, QueuePlan, Remaining, SearchResult, Turn
from app.kinds.workflow.policies import SHIPPED, QueuePolicy, Waiting, artifact
from app.kinds.workflow.queue import Layout
from app.kinds.workflow.run_times import Predictor
from app.kinds.workflow.scheduling.decide import Choice, Chooser, DispatchDecision, by_strategy, decide
from app.kinds.workflow.scheduling.dispatch import MECHANISMS, NONE
from app.kinds.workflow.scheduling.fleet import OPEN, DispatchResult, Free, Renting, UserLimits, rent
from app.kinds.workflow.scheduling.situation import QueueSituation, ranking
from app.kinds.workflow.spec import AGENT, DEFAULT_STRATEGY, LOOKAHEAD, Spec
from app.policies.artifact import Artifact

# Choice of an agent's policy: order of starting ready tasks, and order of backfilling.


def choose_by(policy: QueuePolicy, situation: QueueSituation, spec: Spec) -> Choice:
    """Score the ready tasks by a policy; backfilling follows the policy's order if it has one, else the spec's."""
    mechanism = MECHANISMS.index(spec.backfilling)
    # Ready tasks as input of a policy; ``mechanism``: index into ``MECHANISMS``
    ready, queue = situation.ready, situation.queue
    machine = max(int(situation.layout.nodes.processors[situation.up].sum()), 1)
    submit, expected, need = queue.submit[ready], situation.expected[ready], queue.processors[ready]
    scores, overtaking = policy.orders(
        Waiting(situation.now, submit, expected, situation.requested, situation.shares, need, machine, mechanism)
    )
    if overtaking is None and spec.backfill_order:
        overtaking = ranking(spec.backfill_order, situation)
    return Choice(policy.name, scores, mechanism, overtaking)


# Deviations of a queue from its plan.


FAR = 0.05  # deviation of a task from its planned times, as a share of the plan's length, that causes a new plan
SHOWN = 3


def plan_obstacle(situation: QueueSituation, plan: QueuePlan) -> str:
    """Return why a plan can no longer be followed: a waiting task is new, or a planned node lost; empty if it can."""
    queue, names = situation.queue, situation.layout.names
    new = [queue.names[row] for row in np.flatnonzero(queue.node < 0) if queue.names[row] not in plan.turns]
    if new:
        shown = ", ".join(new[:SHOWN]) + (" …" if len(new) > SHOWN else "")
        return f"{shown} {'is' if len(new) == 1 else 'are'} new"
    up, waits = set(rented_nodes(situation)), queue.node < 0
    lost = [names[turn.node] for name, turn in plan.turns.items() if turn.node not in up and waits[queue.row[name]]]
    return f"{lost[0]} was lost" if lost else ""


def _on_nodes(situation: QueueSituation, plan: QueuePlan) -> str:
    queue, names = situation.queue, situation.layout.names
    more = [j for j in rented_nodes(situation) if j not in plan.nodes]
    if more:
        return f"{names[more[0]]} was added"
    for row in situation.running.tolist() if plan.followed else ():
        turn = plan.turns.get(queue.names[row])
        if turn is not None and turn.node != queue.node[row]:
            return f"{queue.names[row]} runs on {names[queue.node[row]]} instead of {names[turn.node]}"
    return ""


def _in_time(situation: QueueSituation, plan: QueuePlan) -> str:
    queue, far = situation.queue, FAR * plan.length
    if plan.departed and abs(plan.departed[1]) > far:
        task, seconds = plan.departed
        return f"{task} ended {duration(abs(seconds))} {'later' if seconds > 0 else 'earlier'} than planned"
    for row, end in zip(situation.running.tolist(), situation.ends.tolist(), strict=True):
        turn = plan.turns.get(queue.names[row])
        if turn is not None and end - turn.end > far:
            return f"{queue.names[row]} will end {duration(end - turn.end)} later than planned"
    for name, turn in plan.turns.items():
        if situation.now - turn.start > far and queue.node[queue.row[name]] < 0:
            return f"{name} is pending {duration(situation.now - turn.start)} longer than planned"
    return ""


# Choice of the plan: the present one while it holds, else a new one.


Search = Callable[[Remaining], SearchResult]


class PlanChoice(NamedTuple):
    """Plan of a queue, None if there is none, and a text about it for the decision's reason."""

    plan: QueuePlan | None
    text: str


def make_plan(situation: QueueSituation, search: Search) -> PlanChoice:
    """Return the plan to follow: the present one, or one that ``search`` finds anew if the queue deviates from it.
    While no search is possible, a plan that is only late continues to be followed, and the result has no plan if the
    present one can't be followed."""
    plan, queue = situation.state.plan, situation.queue
    if not (queue.node < 0).any():
        return PlanChoice(plan, describe_plan(plan) if plan else "no pending task to plan")
    unfit = plan_obstacle(situation, plan) if plan else "first plan"
    # Why the queue differs from its plan enough to make a new one: other nodes, or other times; empty if not
    because = unfit or ((_on_nodes(situation, plan) or _in_time(situation, plan)) if plan else "")
    if plan is not None and not because:
        return PlanChoice(plan, describe_plan(plan))
    try:
        left = left_of(situation, plan)
        # Plan of a search's result, with names of tasks, indices of nodes, and times of the reports' clock in seconds
        result = search(left.remaining)
        now, nodes = situation.now, left.nodes
        columns = zip(result.node.tolist(), result.start.tolist(), result.end.tolist(), strict=True)
        turns = [Turn(nodes[node], now + start, now + end) for node, start, end in columns]
        ended = sum(name not in situation.queue.row for name in left.names)  # they come first
        order = [task for task in result.order.tolist() if task >= ended]
        length = float(result.end.max())
        queue_plan = QueuePlan(
            turns={left.names[task]: turns[task] for task in order},
            nodes=tuple(rented_nodes(situation)),
            created_at=now,
            length=length,
            heft=min(result.heft, result.base),
            took=round(result.took, 3),
            followed=result.better,
            because=because,
        )
    except (SearchUnavailableError, UnplannableError) as problem:
        if plan is None or unfit:
            return PlanChoice(None, f"HEFT without a plan: {problem}")
        return PlanChoice(plan, f"{describe_plan(plan)}; can't be renewed ({because}): {problem}")
    return PlanChoice(queue_plan, describe_plan(queue_plan))


def describe_plan(plan: QueuePlan) -> str:
    """Return a text about a plan: its length against HEFT's, the seconds of its search, and the reason for it."""
    heft, took = f"HEFT ({duration(plan.heft)})", f"search {seconds(plan.took)}"
    if not plan.followed:
        return f"{heft}: no plan is more than {percent(WORTHWHILE, 0)} shorter; {took}"
    less = 1 - plan.length / plan.heft
    against = f"{percent(less, 0)} shorter than" if less > 0 else "as"  # never longer: the search begins with HEFT's
    return f"plan of {duration(plan.length)}, {against} {heft}, {took}; reason: {plan.because}"


# Compiled snapshot: nodes, run-time predictor, and the deciding policy.


@cache
def packaged_scheduler() -> Artifact:
    """Return the scheduler that comes with the package; it is loaded once."""
    return artifact(SHIPPED.read_bytes())


class Compiled:
    """A workload's snapshot, compiled for decisions.

    Attributes:
        snapshot, layout: the snapshot, and its spec as arrays.
        predictor: predictor of run times; None: estimates are used.
        strategy: name of the strategy that orders tasks without an agent.
        heuristic: name of strategy and backfilling used without an agent, or if it fails.
        shipped: the package's scheduler, if the spec asks for an agent from the start; else None.
        heft: chooser for workflows under an agent without a plan.
        agent: the promoted artifact, else the shipped one; None: the strategy decides.
        decided_by: kind and name of the policy that decides unless it fails.
    """

    def __init__(self, snapshot: Snapshot, search: PlanSearch) -> None:
        self.snapshot, self._search = snapshot, search
        self.layout: Layout = snapshot.layout
        self.predictor: Predictor | None = snapshot.model
        spec = self.layout.spec
        wanted = snapshot.rule or spec.strategy
        strategy = self.strategy = DEFAULT_STRATEGY if wanted == AGENT else wanted
        self.shipped = packaged_scheduler() if wanted == AGENT else None
        self.heuristic = f"{strategy}+{spec.backfilling}"
        self._own = by_strategy(strategy, spec.backfilling, spec.backfill_order)
        self.heft = by_strategy("heft", spec.backfilling, spec.backfill_order)
        self.agent = snapshot.artifact if snapshot.artifact is not None or snapshot.problem else self.shipped
        self.decided_by = deciding_policy(
            snapshot, None if self.agent is None else self.agent.policy.name, self.heuristic
        )

    def situation(self, state: object) -> QueueSituation:
        """Return the quantities that decisions need, derived from a run's ``state``."""
        return QueueSituation(self.layout, state, self.predictor)  # type: ignore[arg-type]

    def find_plan(self, situation: QueueSituation) -> PlanChoice | None:
        """Return the plan of a workflow, searched if need be; None without an agent, or if no task depends on
        another."""
        return make_plan(situation, self._search) if self.agent and situation.queue.linked else None

    def chooser(self, artifact: Artifact | None) -> Chooser:
        """Return the function that orders ready tasks by the policy of an artifact, or by the strategy if None."""
        if artifact is None and self.strategy == LOOKAHEAD:
            return lambda situation: look_ahead(situation, self._own(situation), self._search.ask)
        if artifact is None:
            return self._own
        spec, policy = self.layout.spec, artifact.policy

        def choose(situation: QueueSituation) -> Choice:
            return choose_by(policy, situation, spec)

        return choose


# Decisions by a plan: each node starts its next task once it is ready and fits.


PLAN = "plan"


def follow_plan(situation: QueueSituation, plan: QueuePlan) -> DispatchDecision:
    """Return the decision by ``plan``, which must contain all waiting tasks. Nodes are ordered for ready tasks whose
    planned start is not before a node ordered now would be up. Raises KeyError if a ready task is not in the plan."""
    starts, turns = _starts(situation, plan), list(plan.turns)
    place = {name: k for k, name in enumerate(turns)}
    scores = np.array([place[situation.queue.names[row]] for row in situation.ready], np.float64)
    order = situation.ready[np.argsort(scores)].tolist()
    state = situation.state._replace(head=(), plan=plan)
    # Nodes to order and release by the rental rule, except that nodes with a planned start soon are kept. No node is
    # ordered for tasks planned to start before it would be up. ``order``: rows of ready tasks.
    nodes, now, names = situation.layout.nodes, situation.now, situation.queue.names
    off = [j for j in range(len(nodes.startup)) if j not in situation.state.nodes]
    startup = float(nodes.startup[off].min()) if off else np.inf
    late = [row for row in order if plan.turns[names[row]].start - now >= startup]
    result = rent(situation, starts, [*late, *(row for row, _ in starts)])
    next_start = {turn.node: turn.start for turn in reversed(plan.turns.values())}
    soon = {
        j for j, start in next_start.items() if start - now <= max(float(nodes.billing[j]), float(nodes.startup[j]))
    }
    renting = Renting(result.start, [j for j in result.release if j not in soon])
    return DispatchDecision(Choice(PLAN, scores, NONE), order, DispatchResult(starts, [], OPEN), renting, state)


def _starts(situation: QueueSituation, plan: QueuePlan) -> list[tuple[int, int]]:
    """Return (row, node) of the tasks to start by the plan. A task that can't start blocks later ones on its node,
    except if only its user's limits forbid it."""
    queue, free, allowed = situation.queue, Free(situation), UserLimits(situation)
    ready = set(situation.ready.tolist())
    blocked, starts = set[int](), list[tuple[int, int]]()
    for name, turn in plan.turns.items():
        row, node = queue.row[name], turn.node
        if queue.node[row] >= 0 or node in blocked:
            continue
        need, memory = int(queue.processors[row]), float(queue.memory[row])
        if row not in ready or not free.fits(node, need, memory):
            blocked.add(node)
        elif row in allowed:
            free.hold(node, need, memory)
            allowed.take(row)
            starts.append((row, node))
    return starts


# From situations to decisions.


class Answer(NamedTuple):
    """A decision, and the plan that was considered for it (None: no plan was sought)."""

    decided: DispatchDecision
    planned: PlanChoice | None


class Case(NamedTuple):
    """A run after its report, warnings on the report, and a list of the plan found for it, empty before a search."""

    situation: QueueSituation
    warnings: Sequence[FieldIssue]
    plans: list[PlanChoice | None]


def choose(compiled: Compiled, case: Case, agent: Artifact | None) -> Answer:
    """Decide by a plan if an agent decides and tasks depend on each other, else by the order of agent or strategy. The
    plan is cached in ``case``, as it is the same for all agents.

    Raises:
        ValueError: a score of a ready task isn't finite.
    """
    if agent is not None and not case.plans:
        case.plans.append(compiled.find_plan(case.situation))
    planned = case.plans[0] if agent is not None else None
    if planned is None:
        return Answer(decide_by_policy(compiled, case.situation, agent), None)
    return Answer(by_plan(compiled, case.situation, planned), planned)


def by_plan(compiled: Compiled, situation: QueueSituation, planned: PlanChoice) -> DispatchDecision:
    """Return the decision by the plan if it is better than HEFT's, else by HEFT."""
    if planned.plan is not None and planned.plan.followed:
        return follow_plan(situation, planned.plan)
    decided = decide(situation, compiled.heft)
    return decided._replace(state=decided.state._replace(plan=planned.plan))


def decide_by_policy(compiled: Compiled, situation: QueueSituation, artifact: Artifact | None) -> DispatchDecision:
    """Return the decision by the artifact's policy, or by the strategy if None. Raises ValueError if a score of a ready
    task isn't finite."""
    decided = decide(situation, compiled.chooser(artifact))
    if not np.isfinite(decided.choice.scores).all():
        raise ValueError("scores that are no numbers")
    return decided

"""Schedulers of whole episodes: the kind's rules, mechanisms and strategies in the simulators."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling import planning
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY, MECHANISMS, NONE
from app.kinds.workflow.scheduling.placement import Plan, Rule, first_ready
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import LOOKAHEAD, PREDICTED, Limits
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.evaluation.episodes import Episode
from workers.kinds.workflow.simulator import annealing, dag
from workers.kinds.workflow.simulator.pool import initial_play, play_conservative, play_rules
from workers.kinds.workflow.simulator.simulate import Schedule, play_by_prediction

NO_LIMITS = Limits()
FULL = ("fcfs", "sjf", "f1", "f4")  # rules that are combined with every mechanism
ORDERS = ("fcfs", "sjf")
FILLING = ("rls", "easy")  # mechanisms with an order of overtaking


class EpisodeScheduler(Protocol):
    """A scheduler that plays an episode to its end, at any time with the information of a live scheduler alone."""

    @property
    def name(self) -> str:
        """The scheduler's name in reports."""
        ...

    def play(self, episode: Episode) -> Schedule:
        """Schedule an episode: start, end (seconds) and node of each task. Raises ValueError if that is impossible."""
        ...


@dataclass(frozen=True)
class RuleScheduler:
    """A scheduler of batch jobs on one pool, by names of a rule that orders the queue, a backfilling mechanism, and a
    rule ``fill`` that orders backfilling (conservative backfilling ignores it). ``limits`` are the limits of each user.
    """

    rule: str
    mechanism: str
    fill: str = "fcfs"
    limits: Limits = NO_LIMITS

    @property
    def name(self) -> str:
        """The name ``rule+mechanism-fill``; mechanism ``none`` and fill ``fcfs`` are left out."""
        name = self.rule if self.mechanism == "none" else f"{self.rule}+{self.mechanism}"
        return name if self.fill == "fcfs" else f"{name}-{self.fill}"

    def play(self, episode: Episode) -> Schedule:
        """Schedule an episode: start, end (seconds) and node of each task.

        Raises:
            ValueError: a job needs more processors than there are, or its run time is unknown.
        """
        trace, speed = episode.trace, float(episode.nodes.speed[0])
        if speed != 1:
            trace = trace.scaled(1 / speed)
        play = initial_play(trace, int(episode.nodes.processors[0]), self.limits)
        if self.mechanism == "conservative":
            play_conservative(play, RULES.index(self.rule), np.empty(trace.tasks))
        else:
            play_rules(play, MECHANISMS.index(self.mechanism), RULES.index(self.rule), RULES.index(self.fill))
        return Schedule(play.start, play.start + trace.runtime, np.zeros(trace.tasks, np.int64))


@dataclass(frozen=True)
class PredictedScheduler:
    """A scheduler of batch jobs on one pool by predicted run times, also in its order of backfilling.

    ``strategy`` is one of ``PREDICTED``; ``mechanism`` names the backfilling: none or easy for lookahead, any but
    conservative for the others; ``limits`` are the limits of each user, which lookahead can't have."""

    strategy: str
    mechanism: str
    limits: Limits = NO_LIMITS

    @property
    def name(self) -> str:
        """The name ``strategy+mechanism``; mechanism ``none`` is left out."""
        return self.strategy if self.mechanism == "none" else f"{self.strategy}+{self.mechanism}"

    def play(self, episode: Episode) -> Schedule:
        """Schedule an episode: start, end (seconds) and node of each task.

        Raises:
            ValueError: a job needs more processors than there are, or its run time is unknown.
        """
        trace, speed = episode.trace, float(episode.nodes.speed[0])
        if speed != 1:
            trace = trace.scaled(1 / speed)
        how = self.strategy, MECHANISMS.index(self.mechanism), self.limits
        begun = play_by_prediction(trace, int(episode.nodes.processors[0]), *how)
        return Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))


@dataclass(frozen=True)
class PlanScheduler:
    """A scheduler that plans a workflow by ``strategy`` with estimates; every node then keeps to its order of tasks."""

    strategy: str

    @property
    def name(self) -> str:
        """The name of the strategy."""
        return self.strategy

    def play(self, episode: Episode) -> Schedule:
        """Schedule an episode: start, end (seconds) and node of each task. Raises ValueError if a task fits no node."""
        return dag.plan_and_follow(episode.trace, episode.nodes, self.strategy)


@dataclass(frozen=True)
class DispatchScheduler:
    """A scheduler that assigns tasks to nodes by ``strategy`` (a name) at run time, when they are ready."""

    strategy: str

    @property
    def name(self) -> str:
        """The strategy's name, followed by “at run time”."""
        return f"{self.strategy} at run time"

    def play(self, episode: Episode) -> Schedule:
        """Schedule an episode: start, end (seconds) and node of each task. Raises ValueError if a task fits no node."""
        return dag.dispatch_by(episode.trace, episode.nodes, self.strategy)


@dataclass(frozen=True)
class ReplayedSchedule:
    """A scheduler that gives every task a fixed place in the order and a fixed node, whatever the run times.

    Attributes:
        order: indices of the N tasks in order, [N].
        node: node of each task, [N]; −1: any.
        start: earliest start of each task, seconds, [N]; None: none.
    """

    order: NDArray[np.integer]
    node: NDArray[np.integer]
    start: NDArray[np.float64] | None = None
    name: str = "remembered"

    def play(self, episode: Episode) -> Schedule:
        """Schedule an episode: start, end (seconds) and node of each task; further tasks come last, on any node.

        Raises:
            ValueError: a task fits no node, or dependencies form a cycle.
        """
        count, nodes = episode.trace.tasks, len(episode.nodes.kind)
        rank = np.arange(count) + len(self.order)
        known = self.order[self.order < count]
        rank[known] = np.arange(len(known))
        node = np.full(count, -1)
        node[: len(self.node)] = self.node[:count]
        node[node >= nodes] = -1
        if self.start is not None:
            both = min(count, len(self.start))
            submit = episode.trace.submit.copy()
            submit[:both] = np.maximum(submit[:both], self.start[:both])
            episode = episode._replace(trace=episode.trace._replace(submit=submit))
        return in_order(episode, np.argsort(rank), node)


def in_order(episode: Episode, order: NDArray[np.integer], node: NDArray[np.integer]) -> Schedule:
    """Schedule tasks in turn, each at the earliest time when its node has room, with true run times.

    Args:
        order: indices of the N tasks in order, [N]; parents precede their children in any case.
        node: node of each task, [N]; −1, or a node that it does not fit: the one where it ends first.

    Raises:
        ValueError: a task fits no node, or dependencies form a cycle.
    """
    problem = planning.problem_of(episode.trace, episode.nodes, episode.trace.runtime)
    priority = np.empty(episode.trace.tasks)
    priority[order] = -np.arange(len(order), dtype=np.float64)
    plan: Plan = annealing.plan(problem, _pinned_rule(problem, first_ready(problem.graph, priority), node))
    return Schedule(plan.start, plan.end, plan.node)


def _pinned_rule(problem: planning.Problem, order: NDArray[np.int64], node: NDArray[np.integer]) -> Rule:
    count = len(order)
    bias = np.zeros(problem.work.cost.shape)
    bound = np.flatnonzero(node >= 0)
    bound = bound[np.isfinite(problem.work.cost[bound, node[bound]])]
    bias[bound] = np.inf
    bias[bound, node[bound]] = 0.0
    return Rule(order, bias, np.full(count, np.inf), 1.0, 0.0)


def uses_one_pool(trace: Trace, nodes: int) -> bool:
    """Return whether ``trace`` is scheduled by rules on one pool: one node, and no dependencies."""
    return nodes == 1 and not len(trace.parents)


def rule_schedulers(
    limits: Limits, backfilling: str, fill: str = "fcfs", strategy: str = ""
) -> dict[str, EpisodeScheduler]:
    """Make schedulers of batch jobs by name: every rule with the workload's backfilling mechanism ``backfilling`` and
    its order ``fill`` of backfilling, four rules with all mechanisms, EASY that backfills by sjf, and smallest
    predicted area.

    Lookahead is among them only if it is the workload's ``strategy``, as it simulates ahead at each decision."""
    own = [RuleScheduler(rule, backfilling, fill if backfilling in FILLING else "fcfs", limits) for rule in RULES]
    full = [RuleScheduler(rule, mechanism, limits=limits) for rule in FULL for mechanism in MECHANISMS]
    mechanism = MECHANISMS.index(backfilling)
    simulated = strategy == LOOKAHEAD and mechanism in (NONE, EASY) and limits == NO_LIMITS
    names = [name for name in PREDICTED if mechanism != CONSERVATIVE and (simulated or name != LOOKAHEAD)]
    predicted = [PredictedScheduler(name, backfilling, limits) for name in names]
    schedulers: list[EpisodeScheduler] = [*own, *full, RuleScheduler("fcfs", "easy", "sjf", limits), *predicted]
    return {scheduler.name: scheduler for scheduler in schedulers}


def placement_schedulers(*, at_once: bool) -> dict[str, EpisodeScheduler]:
    """Make schedulers by name: every strategy at run time, and as a plan if all tasks are submitted ``at_once``."""
    schedulers: list[EpisodeScheduler] = [DispatchScheduler(name) for name in planning.STRATEGIES]
    if at_once:
        schedulers = [*(PlanScheduler(name) for name in planning.STRATEGIES), *schedulers]
    return {scheduler.name: scheduler for scheduler in schedulers}

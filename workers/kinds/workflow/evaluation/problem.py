"""The ``Problem`` that evaluations play for workloads of kind ``workflow``, and artifacts as schedulers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Policy, Situation
from app.kinds.workflow.policies import PriorityPolicy, Scheduler, StrategyPolicy, check
from app.kinds.workflow.policies import artifact as load
from app.kinds.workflow.queue import Layout
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, MECHANISMS
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import TERMS, Limits, Spec
from app.kinds.workflow.trace import Trace
from app.policies.base import IncompatibleArtifact
from workers.evaluation.arena import Bare, Player
from workers.evaluation.problem import Axis, Encoder, HeatMapAxes, LevelOptimum, Problem, Tunable
from workers.evaluation.statistics import Level
from workers.kinds.workflow.evaluation import episodes
from workers.kinds.workflow.evaluation.episodes import Episode, reference
from workers.kinds.workflow.evaluation.optimum import level_optimum
from workers.kinds.workflow.evaluation.pictures import OUTCOMES, picture, window
from workers.kinds.workflow.evaluation.schedulers import (
    ORDERS,
    EpisodeScheduler,
    RuleScheduler,
    placement_schedulers,
    rule_schedulers,
    uses_one_pool,
)
from workers.kinds.workflow.evaluation.world import Always, Hindsight, Memory, SchedulerPolicy, WorkflowWorld
from workers.kinds.workflow.simulator.simulate import Schedule, figures, play_agent

TASKS = 256
LOADS = tuple(np.linspace(-2, 0.5, 11).round(3).tolist())
SPREADS = tuple(np.linspace(0, 3, 11).round(3).tolist())
NOTHING_HELD_OUT = "no traces were held out: too few were given to keep any back"
ONE_EPISODE = "no one plan suits many episodes"
DESCRIPTIONS = {
    Level.TRAIN: "As L1, under seeds that no test uses.",
    Level.FIXED: "One sequence of tasks, the busiest of a few, the same for everybody and every time.",
    Level.SEEDS: "What a seed decides: which stretch of a log or which workflow, and the gaps between submissions.",
    Level.PARAMETERS: "How far estimates are off, weights and prices change too.",
    Level.COMPOSITION: "Tasks come from traces that were held out.",
    Level.ENVIRONMENT: "Load × 1.2, lost capacity, failures, slower nodes and stray run times come on top.",
}


class WorkflowProblem(Problem):
    """The ``Problem`` of a workflow workload: an action is the number of a scheduler for a whole episode.

    Args:
        spec: the workload's spec.
        traces: traces that agents may have been trained on.
        held_out: held-out traces.
        without: the reason why ``held_out`` is empty.
        tasks: most tasks of a piece of a batch log; a workflow is played as a whole.

    Raises:
        ValueError: no task has a known run time, or a task fits no node.
    """

    kind = "workflow"
    terms: Sequence[str] = TERMS

    def __init__(
        self,
        spec: Spec,
        traces: Trace | Sequence[Trace],
        held_out: Sequence[Trace] = (),
        without: str = NOTHING_HELD_OUT,
        tasks: int = TASKS,
    ) -> None:
        self.layout, self.name, self.without, self.tasks = Layout(spec), spec.name, without, tasks
        self.weights: Sequence[float] = tuple(map(float, self.layout.weights))
        self.outcomes: Sequence[Outcome] = OUTCOMES
        self.traces = tuple(self._playable([traces] if isinstance(traces, Trace) else traces))
        self.held_out = tuple(self._playable(held_out))
        if not self.traces:
            raise ValueError("there is no task with a run time to play")
        self.pool = all(uses_one_pool(trace, len(self.layout.nodes.kind)) for trace in (*self.traces, *self.held_out))
        self.schedulers = self._schedulers()
        names = list(self.schedulers)
        self.heuristics: Mapping[str, Policy] = {name: Always(number, name) for number, name in enumerate(names)}
        self.memory = Memory()
        self._known: dict[int, LevelOptimum] = {}

    def _playable(self, traces: Sequence[Trace]) -> list[Trace]:
        """Return the traces' tasks of known run time, if any. Raises ValueError if a task fits no node."""
        times = [episodes.with_known_run_times(trace) for trace in traces]
        times = [trace for trace in times if trace.tasks]
        for trace in times:
            reference(trace, self.layout.nodes)
        return times

    def _schedulers(self) -> dict[str, EpisodeScheduler]:
        if self.pool:
            spec = self.layout.spec
            return rule_schedulers(spec.limits_per_user, spec.backfilling, spec.backfill_order or "fcfs", spec.strategy)
        at_once = all(np.ptp(trace.submit) == 0 for trace in (*self.traces, *self.held_out))
        return placement_schedulers(at_once=at_once)

    @override
    def player(self, contender: bytes | Policy) -> Player:
        return Bare(self._policy(contender))

    def _policy(self, contender: bytes | Policy) -> Policy:
        if isinstance(contender, bytes):
            return SchedulerPolicy(scheduler_of(contender, self.layout, pool=self.pool))
        return contender

    @override
    def title(self, contender: bytes | Policy) -> str:
        return self._policy(contender).name

    @override
    def world(self, batch: int, seed: int) -> WorkflowWorld:
        schedulers = list(self.schedulers.values())
        return WorkflowWorld(self.layout, self.traces, self.held_out, schedulers, self.tasks, batch, seed, self.memory)

    @override
    def unavailable(self, level: Level) -> str | None:
        return self.without if level is Level.COMPOSITION and not self.held_out else None

    @override
    def description(self, level: Level) -> str:
        return DESCRIPTIONS[level]

    @override
    def optimum(self, level: Level, seed: int) -> LevelOptimum:
        if level is not Level.FIXED:
            return LevelOptimum(reason=ONE_EPISODE)
        if seed not in self._known:
            world = self.world(1, seed)
            world.reset()
            best = int(Hindsight().act(world.situation).action[0])
            limits = self.layout.spec.limits_per_user
            self._known[seed] = level_optimum(world.truth[0], limits, world.schedule(0, best), seed)
        return self._known[seed]

    def tunables(self) -> tuple[Tunable, ...]:
        """Return the settings as indices: rule, backfilling mechanism and order; for workflows the strategy."""
        if not self.pool:
            return (Tunable("strategy", 0, len(self.schedulers) - 1),)
        sizes = {"rule": RULES, "mechanism": MECHANISMS, "fill": ORDERS}
        return tuple(Tunable(name, 0, len(values) - 1) for name, values in sizes.items())

    @override
    def static(self, values: Mapping[str, int]) -> Policy:
        if not self.pool:
            return Always(values["strategy"], "static")
        rule, mechanism, fill = RULES[values["rule"]], MECHANISMS[values["mechanism"]], ORDERS[values["fill"]]
        return SchedulerPolicy(RuleScheduler(rule, mechanism, fill, self.layout.spec.limits_per_user))

    @cached_property
    @override
    def heat_map_axes(self) -> HeatMapAxes:
        x, y = Axis("log of work over room while it comes in", LOADS), Axis("spread of the log estimates", SPREADS)
        return HeatMapAxes(x, y, "rank correlation of wait and area (above 0: large tasks wait longer)")

    @override
    def heat_map_points(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        observation, world = situation.view.observation, situation.state
        bias = [_leaning(world.truth[b].trace, world.schedule(b, int(scheduler))) for b, scheduler in enumerate(action)]
        return observation[:, 0], observation[:, 1], np.array(bias)

    def encoder(self, contender: bytes | Policy) -> Encoder | None:
        """Return the contender's own encoder; None if it has none, as schedulers read the tasks themselves."""
        return getattr(contender, "encoder", None)

    @override
    def labels(self) -> tuple[str, Policy]:
        return "hindsight", Hindsight()

    @override
    def named_observation(self, situation: Situation, row: int) -> dict[str, float]:
        values = situation.view.observation[row]
        return {name: round(float(value), 4) for name, value in zip(episodes.ENTRIES, values, strict=True)}

    @override
    def action_name(self, action: int) -> str:
        return list(self.schedulers)[action]

    def pictures(self, shown: Mapping[str, bytes | Policy], seed: int) -> dict[str, Any]:
        """Chart one episode: ``schedules`` of the contenders; ``points``: cost and makespan (s) of all schedulers."""
        world = self.world(1, seed)
        world.reset()
        episode = world.truth[0]

        numbers = {}
        for name, contender in shown.items():
            policy: Any = self._policy(contender)
            Bare(policy).begin(world, seed)
            numbers[name] = int(policy.act(world.situation).action[0])
        played = {name: world.schedule(0, number) for name, number in numbers.items()}
        stretch = window(episode.trace, list(played.values())) if played else None

        schedules = [
            picture(name, episode.trace, episode.nodes, schedule, self.layout.names, stretch)
            for name, schedule in played.items()
        ]
        points = []
        for number, name in enumerate(self.schedulers):
            worthy = figures(episode.trace, episode.nodes, world.schedule(0, number))
            points.append({"name": name, "cost": worthy.cost, "makespan": worthy.makespan})
        return {"schedules": schedules, "points": points}


def _leaning(trace: Trace, schedule: Schedule) -> float:
    """Compute Spearman's correlation of tasks' waits and areas (processor-seconds), −1…1; 0 if either is constant."""
    waits, area = schedule.start - trace.submit, trace.runtime * trace.processors
    if np.ptp(waits) == 0 or np.ptp(area) == 0:
        return 0.0
    from scipy import stats

    return float(stats.spearmanr(waits, area).statistic)


@dataclass(frozen=True)
class AgentScheduler:
    """A scheduler of batch jobs on one pool, whose order an agent decides.

    Attributes:
        name: name in reports.
        policy: the agent.
        mechanism: name of the backfilling mechanism.
        fill: name of the rule by which jobs are backfilled.
        limits: limits of each user.
    """

    name: str
    policy: Scheduler
    mechanism: str
    fill: str
    limits: Limits

    def play(self, episode: Episode) -> Schedule:
        """Schedule an episode: start, end (seconds) and node of each task.

        Raises:
            ValueError: a job needs more processors than there are, or its run time is unknown.
        """
        trace, speed = episode.trace, float(episode.nodes.speed[0])
        if speed != 1:
            trace = trace.scaled(1 / speed)
        how = MECHANISMS.index(self.mechanism), RULES.index(self.fill)
        begun = play_agent(self.policy, trace, int(episode.nodes.processors[0]), *how, self.limits)
        return Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))


def scheduler_of(data: bytes, layout: Layout, *, pool: bool) -> EpisodeScheduler:
    """Make the scheduler of an artifact, with the workload's backfilling mechanism.

    Args:
        data: the artifact.
        layout: the workload's layout.
        pool: whether the workload's tasks are batch jobs on one pool of processors.

    Raises:
        IncompatibleArtifact: the artifact can't be read or was made for another kind, or the workload has no pool, or
            conservative or uncommitted backfilling.
    """
    artifact, spec = load(data), layout.spec
    check(artifact, layout)
    if not pool or spec.backfilling not in MECHANISMS[:CONSERVATIVE]:
        raise IncompatibleArtifact(
            "agents that order tasks are judged on batch jobs on one pool of processors, with none, rls or easy "
            f"backfilling; this workload has {spec.backfilling} backfilling"
            + ("" if pool else ", and several nodes or tasks with parents")
        )
    how = spec.backfilling, spec.backfill_order or "fcfs", spec.limits_per_user
    policy = artifact.policy
    if isinstance(policy, StrategyPolicy):
        return RuleScheduler(policy.name, *how)
    if not isinstance(policy, PriorityPolicy):
        raise IncompatibleArtifact(f"{policy.name} orders no tasks")
    return AgentScheduler(policy.name, policy, *how)

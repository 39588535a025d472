"""Artifacts as ways of scheduling."""

from dataclasses import dataclass

import numpy as np

from app.kinds.workflow.layout import Layout
from app.kinds.workflow.policies.artifact import Scheduler, check
from app.kinds.workflow.policies.artifact import artifact as load
from app.kinds.workflow.policies.schedulers import PriorityPolicy, StrategyPolicy
from app.kinds.workflow.scheduling.dispatch import MECHANISMS
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import Limits
from app.policies.base import IncompatibleArtifact
from workers.kinds.workflow.evaluation.episodes import Episode
from workers.kinds.workflow.evaluation.schedulers import EpisodeScheduler, Ruled
from workers.kinds.workflow.simulator.agents import play_agent
from workers.kinds.workflow.simulator.schedule import Schedule

CONSERVATIVE = "conservative"


@dataclass(frozen=True)
class AgentScheduler:
    """An agent that orders tasks on one pool.

    Attributes:
        name: what reports call it.
        policy: the agent.
    """

    name: str
    policy: Scheduler
    mechanism: str
    fill: str
    limits: Limits

    def play(self, episode: Episode) -> Schedule:
        """When and where each task of an episode runs."""
        trace, speed = episode.trace, float(episode.nodes.speed[0])
        if speed != 1:
            trace = trace.scaled(1 / speed)
        how = MECHANISMS.index(self.mechanism), RULES.index(self.fill)
        begun = play_agent(self.policy, trace, int(episode.nodes.processors[0]), *how, self.limits)
        return Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))


def scheduler_of(data: bytes, layout: Layout, *, pool: bool) -> EpisodeScheduler:
    """What an artifact does with a whole episode, beside the mechanism of the workload.

    Args:
        data: the artifact.
        layout: of the workload.
        pool: whether its tasks are batch jobs on one pool.

    Raises:
        IncompatibleArtifact: it was made for something else, or can't be played on this workload.
    """
    artifact, spec = load(data), layout.spec
    check(artifact, layout)
    if not pool or spec.backfilling == CONSERVATIVE or spec.backfill_order not in RULES:
        raise IncompatibleArtifact(
            "agents that order tasks are judged on batch jobs on one pool of processors, with none, rls or easy "
            f"backfilling in the order of a rule; this workload has {spec.backfilling} backfilling in the order of "
            f"{spec.backfill_order}" + ("" if pool else ", and several nodes or tasks with parents")
        )
    how = spec.backfilling, spec.backfill_order, spec.limits_per_user
    policy = artifact.policy
    if isinstance(policy, StrategyPolicy):
        return Ruled(policy.name, *how)
    if not isinstance(policy, PriorityPolicy):
        raise IncompatibleArtifact(f"{policy.name} orders no tasks")
    return AgentScheduler(policy.name, policy, *how)

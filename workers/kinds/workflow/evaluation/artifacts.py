"""Artifacts as ways of scheduling: the policies of ``app.kinds.workflow.policies``, compiled."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.layout import Layout
from app.kinds.workflow.policies.artifact import artifact as load
from app.kinds.workflow.policies.artifact import check
from app.kinds.workflow.policies.combined import InspectorPolicy, Member, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy
from app.kinds.workflow.scheduling.dispatch import MECHANISMS
from app.kinds.workflow.scheduling.observation import WIDTH
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import Limits
from app.policies.base import IncompatibleArtifact
from workers.kinds.workflow.evaluation.episodes import Episode
from workers.kinds.workflow.evaluation.schedulers import EpisodeScheduler, Ruled
from workers.kinds.workflow.simulator.agents import NETWORK, Agent, Networks, agent_of, play_agent
from workers.kinds.workflow.simulator.pool import opened
from workers.kinds.workflow.simulator.schedule import Schedule

NOBODY = -1
CONSERVATIVE = "conservative"


@dataclass(frozen=True)
class AgentScheduler:
    """An agent that picks tasks on one pool.

    Attributes:
        name: what reports call it.
        agent: compiled.
        members: names of those that its gate chooses from, [M].
    """

    name: str
    agent: Agent
    members: tuple[str, ...]
    mechanism: str
    fill: str
    limits: Limits

    def play(self, episode: Episode) -> Schedule:
        """See ``EpisodeScheduler``."""
        return self._played(episode)[0]

    def choices(self, episode: Episode, schedule: Schedule) -> list[tuple[float, str]]:
        """When the gate chose which member; nothing where there is one only. What ``play`` gave is played again."""
        if len(self.members) < 2:
            return []
        _, member = self._played(episode)
        there = np.flatnonzero(member != NOBODY)
        return [(float(schedule.start[task]), self.members[member[task]]) for task in there]

    def _played(self, episode: Episode) -> tuple[Schedule, NDArray[np.int64]]:
        trace, speed = episode.trace, float(episode.nodes.speed[0])
        if speed != 1:
            trace = trace._replace(runtime=trace.runtime / speed, estimate=trace.estimate / speed)
        processors = int(episode.nodes.processors[0])
        play, member = opened(trace, processors, self.limits), np.full(trace.tasks, NOBODY)
        how = MECHANISMS.index(self.mechanism), RULES.index(self.fill)
        play_agent(play, self.agent, *how, processors, np.iinfo(np.int64).max, member)
        return Schedule(play.begun, play.begun + trace.runtime, np.zeros(trace.tasks, np.int64)), member


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
            "agents that pick tasks are judged on batch jobs on one pool of processors, with none, rls or easy "
            f"backfilling in the order of a rule; this workload has {spec.backfilling} backfilling in the order of "
            f"{spec.backfill_order}" + ("" if pool else ", and several nodes or tasks with parents")
        )
    how = spec.backfilling, spec.backfill_order, spec.limits_per_user
    if isinstance(artifact.policy, StrategyPolicy):
        return Ruled(artifact.policy.name, *how)
    agent, members = compiled(artifact.policy)
    return AgentScheduler(artifact.policy.name, agent, members, *how)


def compiled(policy: Any) -> tuple[Agent, tuple[str, ...]]:
    """A policy for compiled simulators, and the names of its members.

    Raises:
        IncompatibleArtifact: it picks no tasks.
    """
    if isinstance(policy, PortfolioPolicy):
        rules, nets = _members(policy.members)
        return agent_of(rules, nets, policy.gate, policy.margin), tuple(member.name for member in policy.members)
    if isinstance(policy, InspectorPolicy):
        rules, nets = _members((policy.base,))
        return agent_of(rules, nets, inspector=_stacked([policy.network])), (policy.base.name,)
    if isinstance(policy, StrategyPolicy | ScorerPolicy):
        rules, nets = _members((policy,))
        return agent_of(rules, nets), (policy.name,)
    raise IncompatibleArtifact(f"{policy.name} picks no tasks")


def _members(members: tuple[Member, ...]) -> tuple[list[int], Networks]:
    rules = [RULES.index(one.name) if isinstance(one, StrategyPolicy) else NETWORK for one in members]
    return rules, _stacked([one if isinstance(one, ScorerPolicy) else None for one in members])


def _stacked(networks: list[ScorerPolicy | None]) -> Networks:
    """Networks beside each other, the smaller ones and those that are missing filled up with zeros."""
    there = [one.arrays for one in networks if one is not None]
    wide = max((len(one["each.0.bias"]) for one in there), default=1)
    joint = max((len(one["joint.0.bias"]) for one in there), default=1)
    count = len(networks)
    found = Networks(
        np.zeros((count, WIDTH, wide)),
        np.zeros((count, wide)),
        np.zeros((count, wide, joint)),
        np.zeros((count, joint)),
        np.zeros((count, joint)),
        np.zeros(count),
    )
    for m, network in enumerate(networks):
        if network is not None:
            arrays = network.arrays
            h, j = len(arrays["each.0.bias"]), len(arrays["joint.0.bias"])
            found.first[m, :, :h], found.first_bias[m, :h] = arrays["each.0.weight"].T, arrays["each.0.bias"]
            found.second[m, :h, :j], found.second_bias[m, :j] = arrays["joint.0.weight"].T, arrays["joint.0.bias"]
            found.last[m, :j], found.last_bias[m] = arrays["advantage.weight"][0], arrays["advantage.bias"][0]
    return found

"""Agents on a pool: the policies of ``app.kinds.workflow.policies``, compiled."""

import numpy as np

from app.kinds.workflow.policies.artifact import Scheduler
from app.kinds.workflow.policies.schedulers import PriorityPolicy
from app.kinds.workflow.scheduling.priority import PREDICTION
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import Limits
from app.kinds.workflow.trace import Seconds, Trace
from workers.kinds.workflow.simulator.pool import NO_LIMITS, opened, play_priority, play_rules


def play_agent(
    policy: Scheduler,
    trace: Trace,
    processors: int,
    mechanism: int,
    fill: int,
    limits: Limits = NO_LIMITS,
    planned: Seconds | None = None,
) -> Seconds:
    """When each task starts under a policy, seconds, [N].

    Args:
        policy: a rule, or priorities.
        trace: its parents are not looked at.
        processors: of the pool.
        mechanism: index into ``MECHANISMS``; not conservative.
        fill: rule by which tasks overtake, under a policy that has no order of its own for that.
        limits: of each user.
        planned: see ``pool.opened``.

    Raises:
        ValueError: a job needs more processors than there are, or its run time is unknown.
    """
    if not isinstance(policy, PriorityPolicy):
        play = opened(trace, processors, limits, planned)
        play_rules(play, mechanism, RULES.index(policy.name), fill)
        return play.begun
    weights = policy.under(mechanism)
    told = planned is None and bool(np.isfinite(trace.estimate).any())
    play = opened(trace, processors, limits, planned, predicts=told and weights[PREDICTION] != 0.0)
    play_priority(play, mechanism, weights, processors)
    return play.begun

"""Batches of simulated queues, generated logs and tuning."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from app.kinds.workflow.formats.reading import Reading, nodes_written
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.policies import PriorityPolicy, Scheduler
from app.kinds.workflow.queue import Nodes, nodes_of, pool
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY, MECHANISMS, RLS
from app.kinds.workflow.scheduling.planning import (
    PREDICTION,
)
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import Limits
from app.kinds.workflow.trace import Seconds, Trace, selected
from workers.kinds.workflow.simulator.pool import NO_LIMITS, opened, play_conservative, play_priority, play_rules
from workers.kinds.workflow.simulator.request import (
    AGENT,
    Schedule,
    SimulatedSequence,
    figures,
    sequences,
    strategies,
    watched,
)

# Agents on a pool: the policies of ``app.kinds.workflow.policies``, compiled.


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


# ``steward simulate`` on batch logs: rules and mechanisms on one pool of processors.


OWN = "strategy"


def read(arguments: Namespace) -> Reading:
    """The log; see ``read_swf`` for what it raises."""
    return read_swf(arguments.trace, clip=arguments.clip, sort=arguments.sort)


def machine(given: str | None, known: tuple[int, ...]) -> Nodes:
    """The one node that batch jobs run on.

    Raises:
        ValueError: nothing says how large it is, or there are several.
    """
    if given is None and not known:
        raise ValueError("--nodes: the log does not say how many processors there are; give their number, as in 256")
    if given is None or given.strip().isdecimal():
        return pool(int(given or known[0]))
    nodes = nodes_of(nodes_written(given))
    if len(nodes.processors) != 1:
        raise ValueError(f"--nodes: batch jobs are played on one machine, as in 256 or 1x256@1.0:0.48: {given}")
    return nodes


def played(arguments: Namespace, reading: Reading) -> list[SimulatedSequence]:
    """Every strategy on every sequence, strategy by strategy.

    Raises:
        ValueError: what is asked does not fit the log; the option is named.
    """
    names = strategies(arguments.strategy, "fcfs", (*RULES, AGENT))
    orders = (OWN, *RULES)
    if arguments.order is not None and arguments.order.lower() not in orders:
        raise ValueError(f"--order: {arguments.order!r} is none of {', '.join(orders)}")
    nodes, limits = (
        machine(arguments.nodes, reading.machines),
        Limits(running_tasks=arguments.user_tasks, processors=arguments.user_processors),
    )
    found = []
    parts = sequences(arguments.sequences, reading.trace.tasks)
    for name, (first, count) in watched([(name, part) for name in names for part in parts]):
        part = selected(reading.trace, slice(first, first + count))
        if name == AGENT:
            schedule = picked(part, nodes, arguments, limits)
        else:
            how = arguments.backfilling, arguments.order, limits
            schedule = scheduled(part, nodes, name, *how, exact=arguments.exact_runtimes)
        found.append(SimulatedSequence(name, first, part, nodes, schedule, figures(part, nodes, schedule)))
    return found


def picked(trace: Trace, nodes: Nodes, arguments: Namespace, limits: Limits) -> Schedule:
    """What becomes of batch jobs by the agent in a file; without one, by the agent that ships with the package.

    Raises:
        ValueError: the file is no such agent, or the mechanism or the order is not one that agents play with.
        OSError: the file can't be read.
    """
    from app.kinds.workflow.policies import SHIPPED, load

    mechanism = MECHANISMS.index(arguments.backfilling)
    if mechanism == CONSERVATIVE:
        raise ValueError("--backfilling: agents pick tasks with none, rls or easy")
    order = str(arguments.order or ("sjf" if mechanism == EASY else "fcfs")).lower()
    if order not in RULES:
        raise ValueError(f"--order: {arguments.order!r}: with an agent, others overtake in the order of a rule")
    agent = load((arguments.agent or SHIPPED).read_bytes())
    speed, processors = float(nodes.speed[0]), int(nodes.processors[0])
    trace = trace.scaled(1 / speed)
    planned = trace.runtime if arguments.exact_runtimes else None
    begun = play_agent(agent, trace, processors, mechanism, RULES.index(order), limits, planned)
    return Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))


def scheduled(
    trace: Trace,
    nodes: Nodes,
    strategy: str,
    backfilling: str,
    order: str | None = None,
    limits: Limits | None = None,
    *,
    exact: bool = False,
) -> Schedule:
    """What becomes of batch jobs on one machine by one of ``RULES`` and one of ``MECHANISMS``.

    Args:
        trace: jobs.
        nodes: one node.
        strategy: orders the queue; with conservative backfilling the order in which jobs move forward is ``order``.
        backfilling: mechanism.
        order: rule by which others overtake, or ``strategy``; none: fcfs with ``rls``, else the strategy's own.
        limits: of each user.
        exact: whether jobs are planned with their run times.
    """
    mechanism, rule = MECHANISMS.index(backfilling), RULES.index(strategy)
    own = order is None or order.lower() == OWN
    fill = (
        RULES.index("fcfs") if order is None and mechanism == RLS else rule if own else RULES.index(str(order).lower())
    )
    speed = float(nodes.speed[0])
    trace = trace.scaled(1 / speed)
    play = opened(trace, int(nodes.processors[0]), limits or Limits(), trace.runtime if exact else None)
    if mechanism == CONSERVATIVE:
        play_conservative(play, fill, np.empty(trace.tasks))
    else:
        play_rules(play, mechanism, rule, fill)
    return Schedule(play.begun, play.begun + trace.runtime, np.zeros(trace.tasks, np.int64))

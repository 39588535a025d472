"""Batches of simulated queues, generated logs and tuning."""

from __future__ import annotations

from argparse import Namespace
from itertools import pairwise

import numpy as np

from app.kinds.workflow.formats.reading import Reading, nodes_written
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.policies import PriorityPolicy, Scheduler
from app.kinds.workflow.queue import Nodes, nodes_of, pool
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY, MECHANISMS, RLS
from app.kinds.workflow.scheduling.placement import Fleet, Floats, Indices, Work, graph
from app.kinds.workflow.scheduling.planning import (
    MADE,
    PREDICTION,
    LearnedRule,
    Problem,
    learned,
    length,
    problem,
    rule_inputs,
    rules,
)
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import Limits
from app.kinds.workflow.trace import Seconds, Trace, selected
from workers.kinds.workflow.simulator.annealing import plan
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


# Generated workflows: layers of tasks of a few sorts, as those of real workflows are, on nodes of several speeds.


SPEEDS = ((1.0,), (0.5, 1.0, 1.0, 2.0), (1.0, 1.0, 2.0), (0.5, 2.0), (1.0, 4.0))
RATIOS = (0.02, 5.0)  # of the time of data to the time of work, drawn on a logarithmic scale
PATTERNS = ("each", "all", "some", "fan")


def _layers(random: np.random.Generator, tasks: int) -> list[Indices]:
    depth = int(random.integers(2, 13))
    widths = np.maximum(1, np.round(random.lognormal(0, 1.2, depth)))
    widths = np.maximum(1, np.round(widths * tasks / widths.sum())).astype(np.int64)
    ends = np.cumsum(widths)
    return [np.arange(end - width, end) for end, width in zip(ends, widths, strict=True)]


def _parents(random: np.random.Generator, above: Indices, here: Indices) -> list[Indices]:
    """Of each task of a layer, among those of the layer above."""
    pattern = random.choice(PATTERNS)
    if pattern == "each":
        return [above[[i % len(above)]] for i in range(len(here))]
    if pattern == "all":
        return [above for _ in here]
    if pattern == "fan":
        bounds = np.arange(len(here) + 1) * len(above) // len(here)
        return [above[low : max(low + 1, high)] for low, high in pairwise(bounds)]
    most = min(4, len(above))
    return [np.sort(random.choice(above, int(random.integers(1, most + 1)), replace=False)) for _ in here]


def _edges(random: np.random.Generator, layers: list[Indices]) -> list[Indices]:
    parents: list[Indices] = [np.zeros(0, np.int64) for _ in layers[0]]
    for depth in range(1, len(layers)):
        above = layers[depth - 1] if random.uniform() < 0.8 else layers[int(random.integers(0, depth))]
        parents += _parents(random, above if len(above) <= 60 else above[:60], layers[depth])
    return [own if len(own) else np.zeros(0, np.int64) for own in parents]


def _seconds(random: np.random.Generator, layers: list[Indices]) -> Floats:
    """Run times: tasks of a layer are of one sort, and differ less than the sorts do."""
    sorts = random.lognormal(3, 1.3, len(layers))
    spread = random.uniform(0.05, 0.8)
    own = [sort * random.lognormal(0, spread, len(layer)) for sort, layer in zip(sorts, layers, strict=True)]
    return np.concatenate(own)


def generated(random: np.random.Generator, tasks: int) -> Problem:
    """About so many ``tasks``, on 2 to 16 nodes that are all there and cost nothing."""
    layers = _layers(random, tasks)
    parents = _edges(random, layers)
    seconds = _seconds(random, layers)
    start = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(own) for own in parents])))
    data = random.lognormal(0, 1, int(start[-1]))
    nodes = int(random.integers(2, 17))
    speed = np.resize(np.array(SPEEDS[int(random.integers(len(SPEEDS)))]), nodes)
    ratio = np.exp(random.uniform(*np.log(RATIOS)))
    pace = np.full(nodes, ratio * seconds.mean() / speed.mean() / max(data.mean() if len(data) else 1.0, 1e-12))
    none = np.zeros(nodes)
    fleet = Fleet(np.ones(nodes, np.int64), none + np.inf, pace, none, none, none + 1, none)
    count = len(seconds)
    work = Work(seconds[:, None] / speed, np.zeros(count), np.ones(count, np.int64), np.zeros(count), data)
    return problem(graph(start, np.concatenate(parents)), work, fleet)


# Learned rules of placement: drawn at random, played on generated workflows, and chosen to complement each other.


def drawn(random: np.random.Generator) -> LearnedRule:
    """Any taste; a half of each number's draws leave it at what HEFT has."""

    def maybe(usual: float, low: float, high: float) -> float:
        return usual if random.uniform() < 0.5 else round(float(random.uniform(low, high)), 2)

    return LearnedRule(
        transfer=maybe(1.0, 0.0, 3.0),
        fastest=maybe(0.0, 0.0, 1.0),
        optimism=maybe(0.0, 0.0, 1.0),
        depth=maybe(0.0, -0.5, 1.0),
        foresight=maybe(0.0, 0.0, 1.5),
        waste=maybe(0.0, 0.0, 1.0),
        share=maybe(1.0, 0.0, 1.0),
    )


def ratios(given: Problem, learned_rules: list[LearnedRule]) -> tuple[float, Floats]:
    """Of one workflow: the best published rule's plan, and those of ``tastes`` [K], each over HEFT's."""
    published = [length(plan(given, rule)) for rule in rules(given, ())]
    seen = rule_inputs(given)
    own = np.array([length(plan(given, learned(given, seen, learned_rule))) for learned_rule in learned_rules])
    heft = published[MADE.index("heft")]
    return min(published) / heft, own / heft


def chosen(best: Floats, played: Floats, count: int) -> list[int]:
    """``count`` of K rules, one after the other: always that which lowers the geometric mean of the best the most.

    ``best`` is what there is without them, over HEFT's, on each of W workflows [W]; ``played`` is each rule's, [W, K].
    """
    picked: list[int] = []
    for _ in range(count):
        together = np.log(np.minimum(best[:, None], played)).mean(axis=0)
        picked.append(int(np.argmin(together)))
        best = np.minimum(best, played[:, picked[-1]])
    return picked


def tuned(
    random: np.random.Generator, workflows: int, candidates: int, count: int
) -> tuple[tuple[LearnedRule, ...], Floats]:
    """``count`` learned rules of so many ``candidates``, and what 0, 1, 2, … of them reach over HEFT, [count + 1]."""
    learned_rules = [drawn(random) for _ in range(candidates)]
    made = [ratios(generated(random, int(np.exp(random.uniform(2.5, 5.5)))), learned_rules) for _ in range(workflows)]
    best, played = np.array([first for first, _ in made]), np.stack([own for _, own in made])
    picked = chosen(best, played, count)
    reached = [float(np.exp(np.log(best).mean()))]
    for one in picked:
        best = np.minimum(best, played[:, one])
        reached.append(float(np.exp(np.log(best).mean())))
    return tuple(learned_rules[one] for one in picked), np.array(reached)

"""The simulator of workflows (DAGs of tasks) on several nodes: following a plan, or dispatching at run time.

Tasks and nodes are indices, all times are seconds; ``events`` is a heap that the functions push to.
"""

from __future__ import annotations

from argparse import Namespace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.formats.reading import Reading, nodes_written
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.queue import Nodes, nodes_of
from app.kinds.workflow.scheduling import placement
from app.kinds.workflow.scheduling.placement import (
    Fleet,
    Floats,
    Graph,
    Plan,
    Rule,
    Work,
    arrival,
    earliest,
    grown,
    occupy,
    offer,
    opened,
)
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem, problem_of
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.simulator.annealing import SHORT, SearchObjective, agent, candidates, plan
from workers.kinds.workflow.simulator.simulate import (
    Rentals,
    Schedule,
    SimulatedSequence,
    figures,
    strategies,
    with_progress,
)
from workers.kinds.workflow.simulator.world import (
    BREAK,  # fmt: skip
    DONE,  # fmt: skip
    END,  # fmt: skip
    NONE,  # fmt: skip
    OFF,  # fmt: skip
    ON,  # fmt: skip
    ORDER,  # fmt: skip
    READY,  # fmt: skip
    RELEASE,  # fmt: skip
    RUNNING,  # fmt: skip
    UP,  # fmt: skip
    WAITING,  # fmt: skip
    WAKE,  # fmt: skip
    Breakdowns,  # fmt: skip
    Event,  # fmt: skip
    Queues,  # fmt: skip
    Rental,  # fmt: skip
    World,  # fmt: skip
    compilable,
    fail_node,  # fmt: skip
    idle,  # fmt: skip
    initial_world,  # fmt: skip
    kernel,
    launch,  # fmt: skip
    leave,  # fmt: skip
    order,  # fmt: skip
    release,  # fmt: skip
)

OVERRUN = 0.1  # an overdue task is expected to go on for this share of its run so far


def clear_dependency(
    world: World, graph: Graph, work: Work, fleet: Fleet, queues: Queues, events: list[Event], task: int, now: float
) -> None:
    """Count down the submission and parents that ``task`` waits for. At 0 it is ready; with a plan, a wake-up event
    follows if its data come after ``now`` (seconds) or it takes no time."""
    world.missing[task] -= 1
    if world.missing[task] == 0:
        world.status[task] = READY
        if len(queues.task) > 0:
            at = arrival(graph, work, fleet, Plan(world.start, world.end, world.node), task, queues.node[task])
            if at > now or work.cost[task, queues.node[task]] == 0:
                heappush(events, (max(at, now), WAKE, task, 0))


def wake_task(
    world: World, graph: Graph, work: Work, fleet: Fleet, queues: Queues, events: list[Event], task: int, number: int,
    now: float,
) -> None:  # fmt: skip
    """Handle the submission of ``task`` (``number`` 1), or the arrival of its data.

    A planned task without run time needs no processors and starts at once.
    """
    if number == 1:
        clear_dependency(world, graph, work, fleet, queues, events, task, now)
        return
    j = queues.node[task]
    if world.status[task] == READY and world.power[j] == ON and work.cost[task, j] == 0:
        launch(world, work, events, task, j, now, 0.0)


def follow(
    world: World, graph: Graph, work: Work, fleet: Fleet, queues: Queues, events: list[Event], now: float
) -> None:
    """Start each node's next planned tasks at ``now`` (seconds) while they are ready, have their data and fit."""
    so_far = Plan(world.start, world.end, world.node)
    for j in range(len(world.power)):
        while world.power[j] == ON and world.next[j] < queues.start[j + 1]:
            task = queues.task[world.next[j]]
            if world.status[task] == READY:
                fits = world.processors[j] >= work.processors[task] and world.memory[j] >= work.memory[task]
                if not fits or arrival(graph, work, fleet, so_far, task, j) > now:
                    break
                launch(world, work, events, task, j, now, 0.0)
            elif world.status[task] == WAITING:
                break
            world.next[j] += 1


def travel(world: World, graph: Graph, work: Work, fleet: Fleet, task: int, j: int) -> float:
    """Return the seconds of the longest transfer of data from a parent of ``task`` to node ``j``; 0 without any."""
    longest = 0.0
    for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
        there = world.node[graph.parents[e]]
        if there != j:
            longest = max(longest, work.data[e] * max(fleet.pace[there], fleet.pace[j]))
    return longest


def foreseen(world: World, work: Work, fleet: Fleet, now: float) -> placement.Calendar:
    """Make a calendar of free processors and memory from ``now`` (seconds) on, if running tasks end as expected."""
    nodes = len(world.power)
    calendar = opened(fleet, placement.SPARE)
    for j in range(nodes):
        calendar.time[j, 0] = now
        if world.power[j] == OFF:
            calendar.time[j, 0] = now + fleet.startup[j]
        elif world.power[j] != ON:
            calendar.time[j, 0] = max(now, world.ready[j])
    for task in range(len(world.status)):
        if world.status[task] == RUNNING:
            j = world.node[task]
            if calendar.spans[j] + 2 > calendar.time.shape[1]:
                calendar = grown(calendar)
            end = max(world.until[task], now + OVERRUN * (now - world.start[task]) + 1e-6)
            occupy(calendar, j, now, end, work.processors[task], work.memory[task])
    return calendar


def prefer_node(
    world: World, graph: Graph, work: Work, fleet: Fleet, rule: Rule, calendar: placement.Calendar,
    spans: tuple[Floats, Floats], task: int, now: float,
) -> tuple[int, float, float]:  # fmt: skip
    """Return (node that ``rule`` chooses for ``task``, −1: none; start; duration), in seconds by the expected ``work``.

    ``spans``: first and last use of each of M nodes so far, seconds, [M] each."""
    chosen, start, length, best = -1, np.inf, 0.0, (True, np.inf)
    for j in range(len(world.power)):
        duration = work.cost[task, j] + travel(world, graph, work, fleet, task, j)
        if np.isfinite(duration + rule.bias[task, j]):
            at = earliest(calendar, j, now, duration, work.processors[task], work.memory[task])
            offered = offer(fleet, rule, task, j, at, at + duration, spans[0], spans[1])
            if offered < best:
                chosen, start, length, best = j, at, duration, offered
    return chosen, start, length


def rented_so_far(world: World, fleet: Fleet, now: float) -> tuple[tuple[Floats, Floats], int]:
    """Return each of M nodes' first and last use in seconds if nothing follows after ``now`` (seconds), [M] each,
    infinite and −infinite if off; and the number of free processors."""
    nodes, free = len(world.power), 0
    spans = (np.full(nodes, np.inf), np.full(nodes, -np.inf))
    for j in range(nodes):
        if world.power[j] == ON:
            free += world.processors[j]
            spans[0][j], spans[1][j] = world.ordered[j] + fleet.startup[j], now
        elif world.power[j] == OFF:
            free += fleet.processors[j]
    return spans, free


def dispatch(
    world: World, graph: Graph, work: Work, expected: Work, fleet: Fleet, rule: Rule, events: list[Event], now: float
) -> None:
    """Assign nodes to ready tasks in the rule's order by ``expected`` work, and start those that have room at ``now``
    (seconds): ``world`` is changed; task ends by actual ``work``, and ends of node startups, are pushed to ``events``.

    A task whose node has room later waits; later tasks start only where they don't delay it. Data are transferred when
    a task starts, while it holds its processors."""
    ready = rule.order[world.status[rule.order] == READY]
    if len(ready) == 0:
        return
    calendar = foreseen(world, work, fleet, now)
    spans, free = rented_so_far(world, fleet, now)
    for task in ready:
        if free <= 0:
            break
        j, start, length = prefer_node(world, graph, expected, fleet, rule, calendar, spans, task, now)
        if j < 0:
            continue
        if calendar.spans[j] + 2 > calendar.time.shape[1]:
            calendar = grown(calendar)
        occupy(calendar, j, start, start + length, work.processors[task], work.memory[task])
        spans[0][j], spans[1][j] = min(spans[0][j], start), max(spans[1][j], start + length)
        if world.power[j] == ON and start <= now:
            world.until[task] = now + length
            launch(world, work, events, task, j, now, travel(world, graph, work, fleet, task, j))
            free -= work.processors[task]
        elif world.power[j] == OFF:
            order(world, fleet, events, now, j)
            free -= fleet.processors[j]


def expect(
    world: World, work: Work, fleet: Fleet, mask: NDArray[np.bool_], queues: Queues, breakdowns: Breakdowns,
    events: list[Event],
) -> None:  # fmt: skip
    """Push the events known at the start: submissions, failures, plan's orders of nodes (``mask``: always on)."""
    for task in range(len(world.status)):
        heappush(events, (work.submit[task], WAKE, task, 1))
    for k in range(len(breakdowns.at)):
        heappush(events, (breakdowns.at[k], BREAK, k, 0))
    for j in range(len(mask)):
        world.next[j] = queues.start[j]
        if not mask[j] and queues.start[j] < queues.start[j + 1]:
            at = queues.planned[queues.task[queues.start[j]]] - fleet.startup[j]
            heappush(events, (max(0.0, at), ORDER, j, 0))


def end_task(
    world: World, graph: Graph, work: Work, fleet: Fleet, mask: NDArray[np.bool_], queues: Queues, events: list[Event],
    task: int, now: float,
) -> None:  # fmt: skip
    """Mark ``task`` as done at ``now`` (seconds), free its node (``mask`` [M]: always on), and notify its children."""
    world.status[task], world.end[task] = DONE, now
    leave(world, work, task)
    for c in range(graph.child_start[task], graph.child_start[task + 1]):
        clear_dependency(world, graph, work, fleet, queues, events, graph.children[c], now)
    idle(world, fleet, mask, events, now, world.node[task])


def simulate_to_end(
    world: World, graph: Graph, work: Work, expected: Work, fleet: Fleet, mask: NDArray[np.bool_], rule: Rule,
    queues: Queues, breakdowns: Breakdowns,
) -> list[Rental]:  # fmt: skip
    """Simulate to the end: follow ``queues``, or dispatch by ``rule`` if they are empty.

    Args:
        work, expected: the tasks with true and with expected run times.
        mask: mask of the nodes that are always on, [M].

    Returns:
        Rentals that ended before the last task; ``world`` then holds the state at that task's end.
    """
    events = [(0.0, 0, 0, 0)]
    events.pop()
    rentals = [(0, 0.0, 0.0)]
    rentals.pop()
    expect(world, work, fleet, mask, queues, breakdowns, events)
    left = len(world.status)
    while len(events) > 0 and left > 0:
        now, kind, which, number = heappop(events)
        if kind == RELEASE:
            release(world, fleet, queues, rentals, events, which, now)
            continue
        if kind == END and world.status[which] == RUNNING and world.attempt[which] == number:
            end_task(world, graph, work, fleet, mask, queues, events, which, now)
            left -= 1
        elif kind == UP and world.power[which] != ON and now >= world.ready[which]:
            world.power[which] = ON
            idle(world, fleet, mask, events, now, which)
        elif kind == ORDER:
            order(world, fleet, events, now, which)
        elif kind == WAKE:
            wake_task(world, graph, work, fleet, queues, events, which, number, now)
        elif kind == BREAK:
            fail_node(world, work, queues, breakdowns.node[which], breakdowns.until[which], events)
        if len(events) > 0 and events[0][0] <= now and events[0][1] != RELEASE:
            continue
        if len(queues.task) > 0:
            follow(world, graph, work, fleet, queues, events, now)
        else:
            dispatch(world, graph, work, expected, fleet, rule, events, now)
    return rentals


compilable(
    clear_dependency, wake_task, follow, travel, foreseen, prefer_node, rented_so_far, dispatch, expect, end_task
)
_played = kernel(simulate_to_end)


def queues_of(plan: Plan, nodes: int, graph: Graph) -> Queues:
    """Order a plan's tasks by node and start, simultaneous ones after their parents.

    Raises:
        ValueError: a task has no place in the plan.
    """
    if (plan.node < 0).any():
        raise ValueError(f"task {int(np.argmin(plan.node))} has no place in the plan")
    task = graph.sequence[np.lexsort([each[graph.sequence] for each in (plan.end, plan.start, plan.node)])]
    start = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(plan.node, minlength=nodes))))
    return Queues(start, task, plan.start, plan.node)


def empty_queues(nodes: int) -> Queues:
    """Make empty queues for ``nodes`` nodes, by which tasks are dispatched at run time."""
    nothing = np.zeros(0, np.int64)
    return Queues(np.zeros(nodes + 1, np.int64), nothing, np.zeros(0), nothing)


def _schedule(
    problem: Problem, trace: Trace, nodes: Nodes, rule: Rule, queues: Queues, breakdowns: Breakdowns
) -> Schedule:
    true = problem_of(trace, nodes, trace.runtime)
    world = initial_world(problem.graph, true.work, problem.fleet, nodes.permanent)
    keep = nodes.permanent.copy()
    ended = _played(world, problem.graph, true.work, problem.work, problem.fleet, keep, rule, queues, breakdowns)
    last = world.end.max()
    live = [(j, world.ordered[j], max(last, world.ordered[j])) for j in np.flatnonzero((world.power != OFF) & ~keep)]
    rented = np.array(ended + live, np.float64).reshape(-1, 3)
    rentals = Rentals(rented[:, 0].astype(np.int64), rented[:, 1], rented[:, 2])
    return Schedule(world.start, world.end, world.node, rentals)


def follow_plan(trace: Trace, nodes: Nodes, plan: Plan, breakdowns: Breakdowns = NONE) -> Schedule:
    """Follow ``plan`` with the true run times; every node keeps to its order of tasks.

    Raises:
        ValueError: a task fits no node or has no place in the plan, or dependencies form a cycle.
    """
    problem = problem_of(trace, nodes)
    return _schedule(
        problem, trace, nodes, STRATEGIES["heft"](problem), queues_of(plan, len(nodes.kind), problem.graph), breakdowns
    )


def dispatch_by(trace: Trace, nodes: Nodes, strategy: str, breakdowns: Breakdowns = NONE) -> Schedule:
    """Dispatch tasks by ``strategy``, one of ``STRATEGIES``, when they are ready, with estimated run times.

    Raises:
        ValueError: a task fits no node, or dependencies form a cycle.
        KeyError: the strategy is unknown.
    """
    problem = problem_of(trace, nodes)
    return _schedule(problem, trace, nodes, STRATEGIES[strategy](problem), empty_queues(len(nodes.kind)), breakdowns)


def plan_and_follow(trace: Trace, nodes: Nodes, strategy: str, breakdowns: Breakdowns = NONE) -> Schedule:
    """Plan by ``strategy``, one of ``STRATEGIES``, with estimates; then follow the plan with true run times.

    Raises:
        ValueError: a task fits no node, or dependencies form a cycle.
        KeyError: the strategy is unknown.
    """
    problem = problem_of(trace, nodes)
    rule = STRATEGIES[strategy](problem)
    queues = queues_of(plan(problem, rule), len(nodes.kind), problem.graph)
    return _schedule(problem, trace, nodes, rule, queues, breakdowns)


AGENT = "agent"
NAMES = (*STRATEGIES, AGENT)


def agent_plan(
    trace: Trace, nodes: Nodes, objective: SearchObjective = SHORT, attempts: int | None = None, seed: int = 0
) -> Plan:
    """Search for the agent's plan for ``objective``, by estimated run times.

    If cost counts, plans are compared by simulation, since only that shows the cost of idle nodes. ``attempts``: number
    of search attempts, None: about a tenth of a second's worth.

    Raises:
        ValueError: a task fits no node, or dependencies form a cycle.
    """
    problem = problem_of(trace, nodes)
    searched = agent(problem, np.random.default_rng(seed), objective, attempts)
    if objective.cost_weight == 0:
        return searched
    expected = trace._replace(runtime=trace.expected)

    def plan_cost(plan: Plan) -> float:
        figure = figures(expected, nodes, follow_plan(expected, nodes, plan))
        return max(objective.time_weight * figure.makespan, objective.cost_weight * figure.cost)

    return min([searched, *(plan(problem, rule) for rule in candidates(problem, objective))], key=plan_cost)


def schedule_trace(
    trace: Trace,
    nodes: Nodes,
    strategy: str,
    *,
    online: bool = False,
    breakdowns: Breakdowns = NONE,
    objective: SearchObjective = SHORT,
    attempts: int | None = None,
    seed: int = 0,
) -> Schedule:
    """Simulate ``trace`` by ``strategy``, one of ``NAMES``.

    Args:
        online: dispatch at run time instead of planning.
        breakdowns: failures of nodes.
        objective, attempts, seed: of the agent's search: what it minimises, its number of attempts, and its seed.

    Raises:
        ValueError: the strategy is unknown or is the agent online, a task fits no node, or dependencies form a cycle.
    """
    if strategy not in NAMES:
        raise ValueError(f"strategy must be one of {', '.join(NAMES)}: {strategy!r}")
    if online and strategy == AGENT:
        raise ValueError("the agent plans whole workflows: leave online out, or name another strategy")
    if online:
        return dispatch_by(trace, nodes, strategy, breakdowns)
    if strategy == AGENT:
        return follow_plan(trace, nodes, agent_plan(trace, nodes, objective, attempts, seed), breakdowns)
    return plan_and_follow(trace, nodes, strategy, breakdowns)


def read(arguments: Namespace) -> Reading:
    """Read the workflow file ``arguments.trace`` (WfFormat JSON, plain or gzip) into a trace.

    Raises:
        OSError: the file can't be read.
        InvalidInput: the file is no valid workflow; the issues have JSON pointers.
    """
    return read_wfformat(arguments.trace)


def played_graphs(arguments: Namespace, reading: Reading) -> list[SimulatedSequence]:
    """Simulate every requested strategy on the whole workflow.

    Raises:
        ValueError: an option does not apply to workflows, and is named; or the workflow can't be played.
    """
    for option in ("sequences", "order", "agent"):
        if getattr(arguments, option) is not None:
            raise ValueError(f"--{option} is for batch logs; this is a workflow")
    if arguments.backfilling != "none":
        raise ValueError("--backfilling is for batch logs; this is a workflow")
    if arguments.nodes is None:
        raise ValueError("--nodes: say what the workflow runs on, as in 4x16@1.0")
    types = nodes_written(arguments.nodes, arguments.bandwidth, arguments.startup, arguments.billing, arguments.rented)
    nodes, trace, played_graphs = nodes_of(types), reading.trace, []
    if arguments.exact_runtimes:
        trace = trace._replace(estimate=trace.runtime)
    for name in with_progress(strategies(arguments.strategy, "heft", NAMES)):
        schedule = schedule_trace(trace, nodes, name, online=arguments.online, seed=arguments.seed)
        played_graphs.append(SimulatedSequence(name, 0, trace, nodes, schedule, figures(trace, nodes, schedule)))
    return played_graphs

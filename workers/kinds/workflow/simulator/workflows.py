"""A workflow by any strategy, published or the agent: planned with estimates, then played with the true run times."""

import numpy as np

from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.scheduling.placement import Plan
from app.kinds.workflow.scheduling.planning import STRATEGIES, problem_of
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.simulator.annealing import SearchObjective
from workers.kinds.workflow.simulator.dag import dispatched, followed, simulated
from workers.kinds.workflow.simulator.planner import plan
from workers.kinds.workflow.simulator.schedule import Schedule, figures
from workers.kinds.workflow.simulator.search import SHORT, agent, candidates
from workers.kinds.workflow.simulator.world import NONE, Breakdowns

AGENT = "agent"
NAMES = (*STRATEGIES, AGENT)


def agent_plan(
    trace: Trace, nodes: Nodes, objective: SearchObjective = SHORT, attempts: int | None = None, seed: int = 0
) -> Plan:
    """The agent's plan for ``objective``, made with estimates.

    Where money counts, every rule's plan is played beside the searched one before one is taken, since what idle nodes
    cost shows in the simulator alone.
    """
    given = problem_of(trace, nodes)
    found = agent(given, np.random.default_rng(seed), objective, attempts)
    if objective.cost_weight == 0:
        return found
    expected = trace._replace(runtime=trace.expected)

    def plan_cost(made: Plan) -> float:
        figure = figures(expected, nodes, followed(expected, nodes, made))
        return max(objective.time_weight * figure.makespan, objective.cost_weight * figure.cost)

    return min([found, *(plan(given, rule) for rule in candidates(given, objective))], key=plan_cost)


def scheduled(
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
    """What becomes of ``trace`` by ``strategy``, one of ``NAMES``; ``online``, tasks get nodes when they are ready.

    ``objective``, ``attempts`` and ``seed`` are the agent's, which always plans.

    Raises:
        ValueError: an unknown strategy, the agent online, a task that fits no node, or tasks in a circle.
    """
    if strategy not in NAMES:
        raise ValueError(f"strategy must be one of {', '.join(NAMES)}: {strategy!r}")
    if online and strategy == AGENT:
        raise ValueError("the agent plans whole workflows: leave online out, or name another strategy")
    if online:
        return dispatched(trace, nodes, strategy, breakdowns)
    if strategy == AGENT:
        return followed(trace, nodes, agent_plan(trace, nodes, objective, attempts, seed), breakdowns)
    return simulated(trace, nodes, strategy, breakdowns)

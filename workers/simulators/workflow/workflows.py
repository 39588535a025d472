"""A workflow by any strategy, published or the agent: planned with estimates, then played with the true run times."""

import numpy as np

from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.planning import STRATEGIES, problem_of
from app.kinds.workflow.trace import Trace
from workers.simulators.workflow.dag import dispatched, followed, simulated
from workers.simulators.workflow.schedule import Schedule
from workers.simulators.workflow.search import SHORT, Aim, agent
from workers.simulators.workflow.world import NONE, Breakdowns

AGENT = "agent"
NAMES = (*STRATEGIES, AGENT)


def scheduled(
    trace: Trace,
    nodes: Nodes,
    strategy: str,
    *,
    online: bool = False,
    breakdowns: Breakdowns = NONE,
    aim: Aim = SHORT,
    attempts: int | None = None,
    seed: int = 0,
) -> Schedule:
    """What becomes of ``trace`` by ``strategy``, one of ``NAMES``; ``online``, tasks get nodes when they are ready.

    ``aim``, ``attempts`` and ``seed`` are the agent's, which always plans.

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
        made = agent(problem_of(trace, nodes), np.random.default_rng(seed), aim, attempts)
        return followed(trace, nodes, made, breakdowns)
    return simulated(trace, nodes, strategy, breakdowns)

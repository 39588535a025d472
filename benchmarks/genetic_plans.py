"""A genetic algorithm for plans, the peer of the agent's search: the same solutions, evaluator, beginnings and time.

Steady state, after Wang, Siegel, Roychowdhury and Maciejewski 1997: two parents by tournaments; the child's first turns
are one parent's, the others come in the second parent's order, each task on the node that it has there; then mutations
of node and turn; the child takes the place of the worst, if it is better.
"""

from time import process_time

import numpy as np

from app.kinds.workflow.scheduling.placement import Fleet, Floats, Graph, Indices, Work
from app.kinds.workflow.scheduling.planning import Problem, length
from workers.kinds.workflow.simulator import annealing
from workers.kinds.workflow.simulator.annealing import (
    SHORT,
    candidates,
    compute_times,
    course,
    move_position,
    order_of,
    plan,
    turns_open,
)
from workers.kinds.workflow.simulator.world import compilable, kernel

POPULATION, MUTATIONS = 20, 1  # the best of (20, 1), (20, 2), (20, 4) and (40, 1) on the workflows for tuning
CHUNK = 50
DRAWS = 5  # of a child; and three more for each mutation


def bred(
    orders: Indices, nodes: Indices, ends: Floats, graph: Graph, work: Work, fleet: Fleet, draws: Floats, mutations: int
) -> None:
    """As many children as ``draws``; orders and nodes of the population [P, N] and their ends [P] change in place."""
    count, tasks = orders.shape
    none = np.zeros(tasks)
    taken = np.zeros(tasks, np.bool_)
    for k in range(len(draws)):
        draw = draws[k]
        rivals = (draw[:4] * count).astype(np.int64)
        one = rivals[0] if ends[rivals[0]] <= ends[rivals[1]] else rivals[1]
        two = rivals[2] if ends[rivals[2]] <= ends[rivals[3]] else rivals[3]
        order, node, cut = orders[one].copy(), nodes[two].copy(), int(draw[4] * (tasks + 1))
        taken[:] = False
        for at in range(cut):
            taken[order[at]] = True
            node[order[at]] = nodes[one, order[at]]
        at = cut
        for task in orders[two]:
            if not taken[task]:
                order[at] = task
                at += 1
        child = course(order, node, fleet.processors)
        for m in range(mutations):
            first, second, third = draw[5 + 3 * m], draw[6 + 3 * m], draw[7 + 3 * m]
            task, j = int(first * tasks), int(second * len(fleet.pace))
            if third < 0.5 and np.isfinite(work.cost[task, j]):
                child.node[task] = j
            elif third >= 0.5:
                low, high = turns_open(child, graph, task)
                move_position(child, child.turn[task], low + int(second * (high - low + 1)))
        worst = int(np.argmax(ends))
        end = compute_times(child, graph, work, fleet, none, 0, ends[worst])[0]
        if end < ends[worst]:
            orders[worst], nodes[worst], ends[worst] = child.order, child.node, end


compilable(annealing.course)
_bred = kernel(bred)


def genetic(
    problem: Problem,
    random: np.random.Generator,
    seconds: float,
    population: int = POPULATION,
    mutations: int = MUTATIONS,
) -> float:
    """The shortest plan found in so many ``seconds`` of processor time, seconds; from the agent's own rules' plans."""
    begun = process_time()
    plans = sorted((plan(problem, rule) for rule in candidates(problem, SHORT)), key=length)
    orders = np.array([order_of(problem, plans[k % len(plans)]) for k in range(population)])
    nodes = np.array([plans[k % len(plans)].node for k in range(population)])
    ends = np.array([length(plans[k % len(plans)]) for k in range(population)])
    while process_time() - begun < seconds:
        draws = random.uniform(size=(CHUNK, DRAWS + 3 * mutations))
        _bred(orders, nodes, ends, problem.graph, problem.work, problem.fleet, draws, mutations)
    return float(ends.min())

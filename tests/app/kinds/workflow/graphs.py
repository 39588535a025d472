"""Workflows with known schedules, and random ones."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from app.kinds.workflow.scheduling.placement import Fleet, Floats, Graph, Indices, Work, graph
from app.kinds.workflow.scheduling.planning import Problem, problem

Edges = dict[tuple[int, int], float]


class Published(NamedTuple):
    """A graph that was published with its schedules."""

    graph: Graph
    cost: Floats
    data: Floats


def edges_of(count: int, edges: Edges) -> tuple[Indices, Indices, Floats]:
    """``parent_start`` [count + 1], ``parents`` [E], bytes [E]."""
    ordered = sorted(edges, key=lambda edge: (edge[1], edge[0]))
    number = np.bincount(np.array([child for _, child in ordered], np.int64), minlength=count)
    start = np.concatenate((np.zeros(1, np.int64), np.cumsum(number)))
    data = np.array([edges[edge] for edge in ordered], np.float64)
    return start, np.array([parent for parent, _ in ordered], np.int64), data


def published(cost: list[list[float]], edges: Edges) -> Published:
    """From run times and edges whose tasks are numbered from 1."""
    start, parents, data = edges_of(len(cost), {(a - 1, b - 1): size for (a, b), size in edges.items()})
    return Published(graph(start, parents), np.array(cost, np.float64), data)


TOPCUOGLU = published(  # Topcuoglu, Hariri and Wu 2002, figure 2 and table 2
    [
        [14, 16, 9], [13, 19, 18], [11, 13, 19], [13, 8, 17], [12, 13, 10],
        [13, 16, 9], [7, 15, 11], [5, 11, 14], [18, 12, 20], [21, 7, 16],
    ],
    {
        (1, 2): 18, (1, 3): 12, (1, 4): 9, (1, 5): 11, (1, 6): 14, (2, 8): 19, (2, 9): 16, (3, 7): 23, (4, 8): 27,
        (4, 9): 23, (5, 9): 13, (6, 8): 15, (7, 10): 17, (8, 10): 11, (9, 10): 13,
    },
)  # fmt: skip
ARABNEJAD = published(  # Arabnejad and Barbosa 2014, figure 1
    [
        [22, 21, 36], [22, 18, 18], [32, 27, 43], [7, 10, 4], [29, 27, 35],
        [26, 17, 24], [14, 25, 30], [29, 23, 36], [15, 21, 8], [13, 16, 33],
    ],
    {
        (1, 2): 17, (1, 3): 31, (1, 4): 29, (1, 5): 13, (1, 6): 7, (2, 8): 3, (2, 9): 30, (3, 7): 16, (4, 8): 11,
        (4, 9): 7, (5, 9): 57, (6, 8): 5, (7, 10): 9, (8, 10): 42, (9, 10): 7,
    },
)  # fmt: skip


def work_of(cost: Floats, data: Floats, processors: Indices | None = None, memory: Floats | None = None) -> Work:
    """Tasks that could start at once, of one processor if nothing else is said."""
    count = len(cost)
    wide = np.ones(count, np.int64) if processors is None else processors
    return Work(cost, np.zeros(count), wide, np.zeros(count) if memory is None else memory, data)


def fleet_of(count: int, pace: float = 1.0, processors: int = 1) -> Fleet:
    """Nodes that run all the time and cost nothing."""
    nothing = np.zeros(count)
    return Fleet(
        np.full(count, processors), np.full(count, np.inf), np.full(count, pace), nothing, nothing, nothing + 1, nothing
    )


def problem_of(known: Published) -> Problem:
    """A published graph on as many nodes as it has columns."""
    return problem(known.graph, work_of(known.cost, known.data), fleet_of(known.cost.shape[1]))


@st.composite
def layered(draw: st.DrawFn, most: int = 12) -> tuple[int, Edges]:
    """Tasks and edges between them, with one task before all others and one after."""
    count = draw(st.integers(3, most))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.floats(0.05, 0.6))
    edges = {
        (a, b): float(random.uniform(0.1, 20))
        for b in range(1, count - 1)
        for a in range(1, b)
        if random.uniform() < share
    }
    begun, ended = {b for _, b in edges}, {a for a, _ in edges}
    edges |= {(0, b): float(random.uniform(0.1, 20)) for b in range(1, count) if b not in begun and b < count - 1}
    edges |= {(a, count - 1): float(random.uniform(0.1, 20)) for a in range(count - 1) if a not in ended and a > 0}
    return count, edges

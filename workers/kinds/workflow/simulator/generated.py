"""Generated workflows: layers of tasks of a few sorts, as those of real workflows are, on nodes of several speeds."""

from itertools import pairwise

import numpy as np

from app.kinds.workflow.scheduling.placement import Fleet, Work
from app.kinds.workflow.scheduling.planning import Problem, problem
from app.kinds.workflow.scheduling.ranks import Floats, Indices, graph

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

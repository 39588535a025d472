"""Generated workflows, layers of tasks of a few sorts on nodes of several speeds, and rules that are tuned on them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from app.kinds.workflow.scheduling.placement import Fleet, Floats, Indices, Work, graph
from app.kinds.workflow.scheduling.planning import (
    MADE,
    LearnedRule,
    Problem,
    learned,
    length,
    problem,
    rule_inputs,
    rules,
)
from workers.kinds.workflow.simulator.annealing import plan

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


def ratios(problem: Problem, learned_rules: list[LearnedRule]) -> tuple[float, Floats]:
    """Of one workflow: the best published rule's plan, and those of ``tastes`` [K], each over HEFT's."""
    published = [length(plan(problem, rule)) for rule in rules(problem, ())]
    observation = rule_inputs(problem)
    own = np.array(
        [length(plan(problem, learned(problem, observation, learned_rule))) for learned_rule in learned_rules]
    )
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
    result = [ratios(generated(random, int(np.exp(random.uniform(2.5, 5.5)))), learned_rules) for _ in range(workflows)]
    best, played = np.array([first for first, _ in result]), np.stack([own for _, own in result])
    picked = chosen(best, played, count)
    reached = [float(np.exp(np.log(best).mean()))]
    for one in picked:
        best = np.minimum(best, played[:, one])
        reached.append(float(np.exp(np.log(best).mean())))
    return tuple(learned_rules[one] for one in picked), np.array(reached)

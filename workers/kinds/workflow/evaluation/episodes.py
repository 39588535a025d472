"""Episodes of kind ``workflow``, and the objective's terms of their schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.queue import HOUR, Nodes
from app.kinds.workflow.trace import Trace, select_tasks
from workers.kinds.workflow.simulator.simulate import Schedule, figures

Floats = NDArray[np.float64]


class Reference(NamedTuple):
    """Lower bounds of makespan and cost, by which the objective's terms are divided.

    Attributes:
        makespan: lower bound of any schedule's makespan, seconds.
        cost: money that the tasks cost if each runs on its cheapest node; 0 if such nodes are free.
    """

    makespan: float
    cost: float


def durations(trace: Trace, nodes: Nodes) -> Floats:
    """Return the seconds [N, M] that each of N tasks takes on each of M nodes; infinite where it does not fit."""
    memory = np.where(np.isnan(trace.memory), 0.0, trace.memory)[:, None]
    fits = (trace.processors[:, None] <= nodes.processors) & (memory <= nodes.memory)
    return np.where(fits, trace.runtime[:, None] / nodes.speed, np.inf)


def reference(trace: Trace, nodes: Nodes) -> Reference:
    """Compute bounds that hold for any schedule of ``trace`` on ``nodes``. Raises ValueError if a task fits no node."""
    seconds = durations(trace, nodes)
    shortest = seconds.min(axis=1)
    if not np.isfinite(shortest).all():
        task = int(np.flatnonzero(~np.isfinite(shortest))[0])
        raise ValueError(f"task {trace.names[task]} fits none of the nodes")
    spread = (trace.runtime * trace.processors).sum() / (nodes.processors * nodes.speed).sum()
    longest = _earliest_ends(trace, shortest).max() - trace.submit.min()
    rate = nodes.price / nodes.processors
    money = np.multiply(seconds, rate, out=np.full_like(seconds, np.inf), where=np.isfinite(seconds))
    cost = float((money.min(axis=1) * trace.processors).sum())
    return Reference(max(float(longest), float(spread), 1e-9), cost)


def _earliest_ends(trace: Trace, shortest: Floats) -> Floats:
    """Return each of N tasks' earliest end on unlimited nodes, seconds [N], if it runs for ``shortest`` seconds [N]."""
    ends = trace.submit + shortest
    if not len(trace.parents):
        return ends
    children = np.repeat(np.arange(trace.tasks), np.diff(trace.parent_start))
    for _ in range(trace.tasks):  # at most the length of the longest chain
        before = trace.submit.copy()
        np.maximum.at(before, children, ends[trace.parents])
        following = before + shortest
        if (following <= ends).all():
            break
        ends = following
    return ends


def terms(trace: Trace, nodes: Nodes, schedule: Schedule, measure: Reference) -> Floats:
    """Compute the objective's six terms in the order of ``spec.TERMS``, each at least 0 and better if smaller, [6].

    They are slowdown − 1, hours of wait, relative excess of the makespan, share of missed deadlines, share of idle
    rented time, and cost relative to ``measure.cost``.

    Raises:
        ValueError: there is no task, or a task has no end.
    """
    result = figures(trace, nodes, schedule)
    return np.array(
        [
            result.slowdown - 1.0,
            result.wait / HOUR,
            result.makespan / measure.makespan - 1.0,
            result.misses,
            1.0 - result.utilisation,
            result.cost / measure.cost if measure.cost > 0 else 0.0,
        ]
    )


def objective_return(weights: Floats, paid: Floats) -> float:
    """Return the negative sum of the terms ``paid`` [6] times ``weights`` [6]."""
    return -float(weights @ paid)


# Episodes: pieces of batch logs, or whole workflows, and their disturbances.


Random = np.random.Generator
ENTRIES = ("load", "spread", "width", "bursts")


class Episode(NamedTuple):
    """Tasks, nodes and objective of one simulated episode.

    Attributes:
        trace: tasks with their true run times; schedulers read its estimates and predictions instead.
        nodes: the available nodes.
        weights: weights of the terms, [6].
        measure: bounds that normalise the terms.
    """

    trace: Trace
    nodes: Nodes
    weights: Floats
    measure: Reference


class TaskDisturbance(NamedTuple):
    """Effects of the disturbances on one episode.

    Attributes:
        factor: factor of each task's run time, [N].
        capacity: share of the nodes that remains, 0…1.
    """

    factor: Floats
    capacity: float


def flow(trace: Trace) -> bool:
    """Return whether tasks depend on each other; such a workflow is always an episode as a whole."""
    return len(trace.parents) > 0


def largest_episode(traces: Sequence[Trace], most: int) -> int:
    """Return the largest number of tasks in an episode, if pieces of batch logs have at most ``most`` jobs."""
    return max(trace.tasks if flow(trace) else min(trace.tasks, most) for trace in traces)


def with_known_run_times(trace: Trace) -> Trace:
    """Return the trace of the tasks with known run times; a workflow with an unknown one loses all its tasks."""
    there = trace.runtime >= 0
    if there.all():
        return trace
    if flow(trace):
        there[:] = False
    return select_tasks(trace, there)


def stretch(trace: Trace, first: int, count: int) -> Trace:
    """Cut out ``count`` batch jobs from index ``first`` on, the first of them submitted at second 0."""
    begun = trace.submit[first]
    part = select_tasks(trace, slice(first, first + count))
    return _fill_estimates(part)._replace(submit=part.submit - begun, deadline=part.deadline - begun)


def _fill_estimates(trace: Trace) -> Trace:
    """Replace missing estimates by the requested seconds, unless the trace has predictions."""
    return trace._replace(estimate=trace.requested) if trace.predicted is None else trace


def draw_episode(trace: Trace, most: int, random: Random) -> Trace:
    """Draw an episode: a random piece of at most ``most`` jobs, or the whole workflow; it begins at second 0."""
    if flow(trace):
        first = trace.submit.min()
        return _fill_estimates(trace)._replace(submit=trace.submit - first, deadline=trace.deadline - first)
    count = min(most, trace.tasks)
    return stretch(trace, int(random.integers(trace.tasks - count + 1)), count)


def jitter_gaps(trace: Trace, scale: float, random: Random) -> Trace:
    """Multiply gaps between submissions, or run times if a workflow has no gaps, by exp(``scale`` · normal)."""
    factor = np.exp(scale * random.standard_normal(trace.tasks))
    if flow(trace) and np.ptp(trace.submit) == 0:
        return trace._replace(runtime=trace.runtime * factor)
    return arriving(trace, factor)


def arriving(trace: Trace, factor: Floats) -> Trace:
    """Multiply the gap before each submission by ``factor`` [N]; deadlines shift along."""
    gaps = np.diff(trace.submit, prepend=trace.submit[:1])
    submit = np.cumsum(gaps * factor)
    return trace._replace(submit=submit, deadline=trace.deadline + submit - trace.submit)


def scale_load(trace: Trace, factor: float) -> Trace:
    """Multiply the work submitted per second by ``factor``: shorter gaps, or longer tasks if there are no gaps."""
    if np.ptp(trace.submit) == 0:
        return trace.scaled(factor)
    return arriving(trace, np.full(trace.tasks, 1 / factor))


def distort_estimates(trace: Trace, power: float) -> Trace:
    """Raise the ratio of estimates and predictions to run times to ``power``: 0 makes them exact, 1 changes nothing."""

    def off(seconds: Floats) -> Floats:
        known = (trace.runtime > 0) & (seconds > 0)
        ratio = np.divide(seconds, trace.runtime, out=np.ones(trace.tasks), where=known)
        return np.where(known, trace.runtime * ratio**power, seconds)

    predicted = None if trace.predicted is None else off(trace.predicted)
    return trace._replace(estimate=off(trace.estimate), predicted=predicted)


def disturbed_episode(episode: Episode, disturbance: TaskDisturbance) -> Episode:
    """Apply a disturbance; one without any effect returns the same object. Raises ValueError if a task fits no node."""
    if disturbance.capacity >= 1 and (disturbance.factor == 1).all():
        return episode
    trace, nodes = episode.trace, episode.nodes
    if disturbance.capacity < 1:
        trace, nodes = _reduce_nodes(trace, nodes, disturbance.capacity)
    trace = trace._replace(runtime=trace.runtime * disturbance.factor)
    return Episode(trace, nodes, episode.weights, reference(trace, nodes))


def _reduce_nodes(trace: Trace, nodes: Nodes, share: float) -> tuple[Trace, Nodes]:
    """Reduce the nodes to a ``share`` (0…1) if all tasks still fit; a single node loses processors instead, and tasks
    that need more get fewer processors for longer."""
    count = len(nodes.kind)
    if count > 1:
        left = np.unique(np.rint(np.linspace(0, count - 1, max(1, int(share * count)))).astype(np.intp))
        fewer = nodes._replace(**{name: getattr(nodes, name)[left] for name in Nodes._fields})
        return (trace, fewer) if _all_fit(trace, fewer) else (trace, nodes)
    processors = max(1, int(share * nodes.processors[0]))
    need = np.minimum(trace.processors, processors)
    longer = trace.processors / need
    return trace.scaled(longer)._replace(processors=need), nodes._replace(processors=np.array([processors]))


def _all_fit(trace: Trace, nodes: Nodes) -> bool:
    memory = np.where(np.isnan(trace.memory), 0.0, trace.memory)[:, None]
    fits = (trace.processors[:, None] <= nodes.processors) & (memory <= nodes.memory)
    return bool(fits.any(axis=1).all())


def describe_episode(trace: Trace, nodes: Nodes) -> Floats:
    """Describe an episode before it runs by the four numbers of ``ENTRIES``, [4]; logs are natural.

    ``load``: log of the expected work over the nodes' capacity during the submissions; ``spread``: standard deviation
    of the log requested seconds; ``width``: mean processors of a task over those of the largest node; ``bursts``: log
    of 1 + coefficient of variation of the gaps between submissions.
    """
    expected = np.maximum(trace.requested, 1.0)
    room = float((nodes.processors * nodes.speed).sum())
    span = float(np.ptp(trace.submit)) + float(expected.max())
    gaps = np.diff(trace.submit)
    mean = float(gaps.mean()) if len(gaps) else 0.0
    return np.array(
        [
            np.log(max(float((expected * trace.processors).sum()) / (room * span), 1e-6)),
            np.log(expected).std(),
            trace.processors.mean() / nodes.processors.max(),
            np.log1p(gaps.std() / mean) if mean > 0 else 0.0,
        ]
    )

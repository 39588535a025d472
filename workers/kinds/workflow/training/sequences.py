"""Sequences of jobs to learn from and to be judged on, and their loss under a policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.workflow.policies import Scheduler
from app.kinds.workflow.queue import Layout, Nodes, nodes_of
from app.kinds.workflow.spec import NodeType, Objective, Spec
from app.kinds.workflow.trace import Seconds, Trace, independent_jobs
from workers.kinds.workflow.evaluation.episodes import reference, terms
from workers.kinds.workflow.simulator.simulate import SHORTEST, Schedule, play_agent


class ObjectiveWeights(NamedTuple):
    """Weights of the objective's six terms in the order of ``spec.TERMS``, and the only node, a single machine."""

    weights: Seconds
    nodes: Nodes


def largest(spec: Spec) -> NodeType:
    """Return the node type with the most processors, on which jobs run."""
    return max(spec.nodes, key=lambda node: node.processors)


def machine_of(spec: Spec) -> Nodes:
    """Return the largest node, always on, at speed 1, since trainings play recorded run times."""
    nodes = nodes_of((largest(spec).model_copy(update={"minimum": 1, "maximum": 1}),))
    return nodes._replace(speed=np.ones(1))


def objective_weights(spec: Spec) -> ObjectiveWeights | None:
    """Return the weights of a workload's objective; None: it is the default, mean bounded slowdown alone."""
    return None if spec.weights == Objective() else ObjectiveWeights(Layout(spec).weights, machine_of(spec))


def weighted_loss(objective: ObjectiveWeights, trace: Trace, begun: Seconds) -> float:
    """Compute the weighted sum of 1 + term over the six terms, for N jobs that begin at ``begun`` seconds [N].

    The result is positive, so that schedules can be compared by ratios.
    """
    schedule = Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))
    return float(objective.weights @ (1.0 + terms(trace, objective.nodes, schedule, reference(trace, objective.nodes))))


GAPS = (60, 200)  # length of blocks of submissions when arrivals are resampled
JITTER = 0.15  # standard deviation of log run times, so that no task occurs twice
LOADS = (0.65, 1.05)  # factors of the time between submissions
FILLING = 0.25  # share of a sequence that fills machine and queue, left out of the loss
MOST, FEWEST = 96, 8  # most pieces for judging, and fewest pieces of a trace


class Sequence(NamedTuple):
    """Jobs on a pool of ``processors``, with an objective (None: mean bounded slowdown).

    ``mechanism`` is an index into ``MECHANISMS``; ``fill`` one into ``RULES``, for the order of backfilling."""

    trace: Trace
    processors: int
    mechanism: int
    fill: int = 0
    objective: ObjectiveWeights | None = None


class Source(NamedTuple):
    """A trace, its pool's number of processors, and whether sequences are ``whole`` pieces of it, or resampled jobs."""

    trace: Trace
    processors: int
    whole: bool


def piece(trace: Trace, start: int, count: int) -> Trace:
    """Cut out ``count`` jobs from index ``start`` on, the first of them submitted at second 0."""
    at = slice(start, start + count)
    part = independent_jobs(
        trace.submit[at] - trace.submit[start],
        trace.runtime[at],
        trace.estimate[at],
        trace.processors[at],
        trace.user[at],
    )
    return part._replace(predicted=None if trace.predicted is None else trace.predicted[at])


def draw_sequence(source: Source, count: int, rng: np.random.Generator) -> Trace:
    """Draw a new sequence of ``count`` jobs from a source of at least two.

    If the source is ``whole``, it is a piece of the trace, with gaps times a random factor in ``LOADS``. Otherwise gaps
    are drawn in blocks and jobs one by one, with perturbed run times.
    """
    trace, load = source.trace, rng.uniform(*LOADS)
    if source.whole:
        result = piece(trace, int(rng.integers(0, max(trace.tasks - count, 1))), count)
        return result._replace(submit=np.floor(result.submit * load))
    gaps = np.diff(trace.submit)
    blocks: list[Seconds] = []
    while sum(map(len, blocks)) < count:
        size = int(rng.integers(*GAPS))
        start = int(rng.integers(0, max(len(gaps) - size, 1)))
        blocks.append(gaps[start : start + size])
    submit = np.floor(np.cumsum(np.concatenate(blocks)[:count]) * load)
    which = rng.integers(0, trace.tasks, count)
    factor = np.exp(rng.normal(0.0, JITTER, count))
    runtime = np.maximum(1.0, np.round(trace.runtime[which] * factor))
    estimate = np.round(trace.estimate[which] * factor)
    if trace.predicted is None:
        estimate = np.maximum(runtime, estimate)
    jobs = independent_jobs(submit - submit[0], runtime, estimate, trace.processors[which], np.full(count, -1))
    return jobs._replace(predicted=None if trace.predicted is None else trace.predicted[which] * factor)


def pieces(source: Source, length: int) -> list[Trace]:
    """Cut a trace into at most 96 disjoint pieces of at most ``length`` jobs and at most an eighth of the trace."""
    count = source.trace.tasks
    length = max(min(length, count // FEWEST), 1)
    starts = np.linspace(0, count - length, min(MOST, count // length)).astype(int)
    return [piece(source.trace, int(start), length) for start in starts]


def play_sequence(sequence: Sequence, policy: Scheduler) -> Seconds:
    """Play a sequence of N jobs by a policy; return the second at which each job starts, [N].

    Raises:
        ValueError: a job needs more processors than there are, or its run time is unknown.
    """
    return play_agent(policy, sequence.trace, sequence.processors, sequence.mechanism, sequence.fill)


def loss(sequence: Sequence, policy: Scheduler) -> float:
    """Play a sequence by a policy; return its loss: mean bounded slowdown, or the objective's weighted sum of terms."""
    return charged_for(sequence, play_sequence(sequence, policy))


def charged_for(sequence: Sequence, begun: Seconds) -> float:
    """Compute the loss of a sequence whose N jobs begin at ``begun`` seconds, [N]: mean bounded slowdown after the
    first quarter of the jobs, or, with an objective, the weighted sum of 1 + term over its six terms."""
    trace = sequence.trace
    if sequence.objective is not None:
        return weighted_loss(sequence.objective, trace, begun)
    spent = begun - trace.submit + trace.runtime
    slowdown = np.maximum(1.0, spent / np.maximum(trace.runtime, SHORTEST))
    return float(slowdown[int(FILLING * len(slowdown)) :].mean())


def least_loss(sequence: Sequence) -> float:
    """Return a lower bound of the loss of any schedule: no bounded slowdown is below 1, and no term below 0."""
    return 1.0 if sequence.objective is None else float(sequence.objective.weights.sum())


def measure_losses(policy: Scheduler, sequences: list[Sequence]) -> Seconds:
    """Return the loss of a policy on each of N sequences, [N]."""
    return np.array([loss(sequence, policy) for sequence in sequences])

"""What a workload pays for beyond slowdown: its whole objective, on the machine that jobs run on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.workflow.policies import Scheduler
from app.kinds.workflow.queue import Layout, Nodes, nodes_of
from app.kinds.workflow.spec import NodeType, Objective, Spec
from app.kinds.workflow.trace import Seconds, Trace, independent
from workers.kinds.workflow.evaluation.episodes import reference, terms
from workers.kinds.workflow.simulator.simulate import SHORTEST, Schedule, play_agent


class ObjectiveWeights(NamedTuple):
    """Weights of the objective's terms, in the order of ``spec.TERMS`` [6], and the machine as the only node."""

    weights: Seconds
    nodes: Nodes


def largest(spec: Spec) -> NodeType:
    """The type of node that jobs run on."""
    return max(spec.nodes, key=lambda node: node.processors)


def machine_of(spec: Spec) -> Nodes:
    """The largest node, which always runs; trainings and verdicts take run times as they were recorded."""
    nodes = nodes_of((largest(spec).model_copy(update={"minimum": 1, "maximum": 1}),))
    return nodes._replace(speed=np.ones(1))


def objective_weights(spec: Spec) -> ObjectiveWeights | None:
    """A workload's weights; None where it is mean bounded slowdown alone, the default."""
    return None if spec.weights == Objective() else ObjectiveWeights(Layout(spec).weights, machine_of(spec))


def charged(objective: ObjectiveWeights, trace: Trace, begun: Seconds) -> float:
    """The weighted terms of jobs that began at these seconds [N]; as good as can be is the sum of the weights.

    So it is above 0, and two schedules may be compared by their ratio.
    """
    schedule = Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))
    return float(objective.weights @ (1.0 + terms(trace, objective.nodes, schedule, reference(trace, objective.nodes))))


# Sequences to learn from and to be judged on: pieces of traces, and traces that are made from them.


GAPS = (60, 200)  # submissions that stay together when arrivals are drawn again
JITTER = 0.15  # of the log run time, so that no task is met twice
LOADS = (0.65, 1.05)  # factors on the time between submissions
FILLING = 0.25  # share of a sequence that fills machine and queue, and is not counted
MOST, FEWEST = 96, 8  # pieces that are judged on, and that a trace is cut into at least


class Sequence(NamedTuple):
    """Jobs on a pool under a mechanism, and what they are worth: none where mean bounded slowdown alone counts.

    ``fill`` is the rule by which others overtake, under a policy that has no order of its own for that.
    """

    trace: Trace
    processors: int
    mechanism: int
    fill: int = 0
    objective: ObjectiveWeights | None = None


class Source(NamedTuple):
    """A trace to draw sequences from, its machine, and whether tasks keep their place (else they are drawn anew)."""

    trace: Trace
    processors: int
    whole: bool


def piece(trace: Trace, start: int, count: int) -> Trace:
    """``count`` jobs from ``start`` on, the first submitted at second 0."""
    at = slice(start, start + count)
    part = independent(
        trace.submit[at] - trace.submit[start],
        trace.runtime[at],
        trace.estimate[at],
        trace.processors[at],
        trace.user[at],
    )
    return part._replace(predicted=None if trace.predicted is None else trace.predicted[at])


def drawn(source: Source, count: int, rng: np.random.Generator) -> Trace:
    """A new sequence of ``count`` jobs.

    From logs with users, a piece as it was, under another load. Else arrivals are drawn in blocks and jobs one by one,
    with other run times: no sequence of the trace itself comes back.
    """
    trace, load = source.trace, rng.uniform(*LOADS)
    if source.whole:
        found = piece(trace, int(rng.integers(0, max(trace.tasks - count, 1))), count)
        return found._replace(submit=np.floor(found.submit * load))
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
    made = independent(submit - submit[0], runtime, estimate, trace.processors[which], np.full(count, -1))
    return made._replace(predicted=None if trace.predicted is None else trace.predicted[which] * factor)


def pieces(source: Source, length: int) -> list[Trace]:
    """Pieces of a trace as they were, none of which overlap, as far from one another as can be."""
    count = source.trace.tasks
    length = max(min(length, count // FEWEST), 1)
    starts = np.linspace(0, count - length, min(MOST, count // length)).astype(int)
    return [piece(source.trace, int(start), length) for start in starts]


def played(sequence: Sequence, policy: Scheduler) -> Seconds:
    """When each job of a sequence begins under a policy, [N]."""
    return play_agent(policy, sequence.trace, sequence.processors, sequence.mechanism, sequence.fill)


def loss(sequence: Sequence, policy: Scheduler) -> float:
    """Mean bounded slowdown of a filled sequence under a policy, or what its workload's objective charges."""
    return charged_for(sequence, played(sequence, policy))


def charged_for(sequence: Sequence, begun: Seconds) -> float:
    """The same of jobs that begin at these seconds, [N]."""
    trace = sequence.trace
    if sequence.objective is not None:
        return charged(sequence.objective, trace, begun)
    spent = begun - trace.submit + trace.runtime
    slowdown = np.maximum(1.0, spent / np.maximum(trace.runtime, SHORTEST))
    return float(slowdown[int(FILLING * len(slowdown)) :].mean())


def measured(policy: Scheduler, sequences: list[Sequence]) -> Seconds:
    """The loss on each sequence, [N]."""
    return np.array([loss(sequence, policy) for sequence in sequences])

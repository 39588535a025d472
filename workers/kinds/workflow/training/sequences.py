"""Sequences to learn from and to be judged on: pieces of traces, and traces that are made from them."""

from typing import NamedTuple

import numpy as np

from app.kinds.workflow.scheduling.dispatch import EASY, NONE, RLS
from app.kinds.workflow.scheduling.rules import FCFS, SJF
from app.kinds.workflow.trace import Seconds, Trace, independent
from workers.kinds.workflow.simulator.agents import Agent, play_agent
from workers.kinds.workflow.simulator.pool import opened
from workers.kinds.workflow.simulator.schedule import SHORTEST
from workers.kinds.workflow.training.objective import ObjectiveWeights, charged

GAPS = (60, 200)  # submissions that stay together when arrivals are drawn again
JITTER = 0.15  # of the log run time, so that no task is met twice
LOADS = (0.65, 1.05)  # factors on the time between submissions
FILLS = {NONE: FCFS, RLS: FCFS, EASY: SJF}
WHOLE = 1 << 60


class Sequence(NamedTuple):
    """Jobs on a pool under a mechanism, and what they are worth: none where mean bounded slowdown alone counts."""

    trace: Trace
    processors: int
    mechanism: int
    objective: ObjectiveWeights | None = None

    @property
    def fill(self) -> int:
        """The rule by which others overtake."""
        return FILLS[self.mechanism]


class Source(NamedTuple):
    """A trace to draw sequences from, its machine, and whether tasks keep their place (else they are drawn anew)."""

    trace: Trace
    processors: int
    whole: bool


def piece(trace: Trace, start: int, count: int) -> Trace:
    """``count`` jobs from ``start`` on, the first submitted at second 0."""
    at = slice(start, start + count)
    return independent(
        trace.submit[at] - trace.submit[start],
        trace.runtime[at],
        trace.estimate[at],
        trace.processors[at],
        trace.user[at],
    )


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
    estimate = np.maximum(runtime, np.round(trace.estimate[which] * factor))
    return independent(submit - submit[0], runtime, estimate, trace.processors[which], np.full(count, -1))


def played(sequence: Sequence, agent: Agent) -> Seconds:
    """When each job of a sequence begins under an agent, [N]."""
    play = opened(sequence.trace, sequence.processors)
    member = np.full(sequence.trace.tasks, -1, np.int64)
    play_agent(play, agent, sequence.mechanism, sequence.fill, sequence.processors, WHOLE, member)
    return play.begun


def loss(sequence: Sequence, agent: Agent) -> float:
    """Mean bounded slowdown of a sequence under an agent, or what its workload's objective charges."""
    return charged_for(sequence, played(sequence, agent))


def charged_for(sequence: Sequence, begun: Seconds) -> float:
    """The same of jobs that begin at these seconds, [N]."""
    trace = sequence.trace
    if sequence.objective is not None:
        return charged(sequence.objective, trace, begun)
    spent = begun - trace.submit + trace.runtime
    return float(np.maximum(1.0, spent / np.maximum(trace.runtime, SHORTEST)).mean())

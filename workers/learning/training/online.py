"""A training that goes on: one learner, which after each window of time learns from what was met in it, and is judged.

A window is a ``TrainingProblem`` of its own: what is learned in and what is judged on are parts of it that have nothing
in common. Parameters and the optimiser's state go on from window to window; remembered transitions do not. Beside the
learner that goes on another one begins in each window, which imitates the heuristic that would answer: a window has too
few of the decisions that come seldom to find by trial what they are worth, and a policy may have come to where it sees
nothing but long queues. What goes on is what was best on what was learned from, each before it or after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from workers.learning.agent import CARRY, Agent
from workers.learning.bracket import Bracket, Entry
from workers.learning.execution import checkpoint as blob
from workers.learning.training.problem import Planned, TrainingProblem
from workers.learning.training.request import ONLINE, Request
from workers.learning.training.trial import Trial

AVERAGE = "averaging"  # whether the average of parameters, which is exported, is kept by now
NO_PLAN = Planned(why_not="nothing is planned for a window")


@dataclass(frozen=True)
class Learned:
    """What came of a window.

    Attributes:
        algorithm: by which.
        artifact: what was learned so far.
        learner: what goes on with the next window.
        report: of the learning.
    """

    algorithm: str
    artifact: bytes
    learner: bytes
    report: dict[str, Any]


def learned(
    problem: TrainingProblem, request: Request, number: int, learner: bytes, told: Callable[[Trial], None]
) -> Learned:
    """Learn from a window.

    Args:
        problem: the window.
        request: the budget is of one window; it begins with ``start``, or anew.
        number: of the window, from 0: each draws anew.
        learner: of the window before; empty: there was none.
        told: called after each chunk.

    Raises:
        Untrainable: the agent that it is to begin with can't be gone on from.
    """
    algorithm = ONLINE if request.start is None else request.start.algorithm
    seed = int(np.random.SeedSequence([request.seed, number]).generate_state(1)[0])
    wanted = [(replace(request, algorithm=algorithm, imitate=None), learner)]
    if algorithm == ONLINE:
        wanted.append((replace(wanted[0][0], start=None, imitate=next(iter(problem.experts()))), b""))
    found = list[Learned]()
    for asked, begun in wanted:
        trial = Trial(problem, asked, Entry(algorithm, seed), Bracket(1))
        try:
            found.append(_learned(trial, begun, told))
        finally:
            trial.close()
    return max(found, key=lambda one: max(one.report["validation"].values()))


def _learned(trial: Trial, learner: bytes, told: Callable[[Trial], None]) -> Learned:
    if learner:
        trial.runner.agent.restore(*blob.unpack(learner))
    else:
        trial.prepare(None)
    before = _Reached.by(trial)
    while not trial.runner.done:
        trial.advance()
        told(trial)
    after = _Reached.by(trial)
    best, scores = max(before, after, key=lambda one: one.score), {"before": before.score, "after": after.score}
    return Learned(trial.entry.algorithm, best.artifact, best.learner, {**trial.report, "validation": scores})


class _Reached(NamedTuple):
    """Where a learner stands: what it would be published as, what goes on from there, and its return."""

    artifact: bytes
    learner: bytes
    score: float

    @classmethod
    def by(cls, trial: Trial) -> _Reached:
        found = trial.compared()
        return cls(found.artifact, _kept(trial.runner.agent), found.validation)


def _kept(agent: Agent) -> bytes:
    """What goes on from the average that was exported, and begins another one."""
    arrays, values = agent.state(memory=False)
    if values.get(AVERAGE):
        arrays, values = {**arrays, "online": arrays["average"]}, {**values, AVERAGE: False}
    return blob.pack({name: value for name, value in arrays.items() if name != CARRY}, values)

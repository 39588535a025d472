"""A training that goes on: one learner, which after each window of time learns from what was met in it, and is judged.

A window is a ``TrainingProblem`` of its own: what is learned in and what is judged on are parts of it that have nothing
in common. Parameters and the optimiser's state go on from window to window; remembered transitions do not, nor does the
average of parameters that is exported, which is of one window's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workers.learning.agent import CARRY, Agent
from workers.learning.bracket import Bracket, Entry
from workers.learning.execution import checkpoint as blob
from workers.learning.training.problem import Planned, TrainingProblem
from workers.learning.training.request import ONLINE, Request
from workers.learning.training.trial import Trial

ANEW = {"averaging": False}
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
    request = replace(request, algorithm=algorithm)
    trial = Trial(problem, request, Entry(algorithm, seed), Bracket(1))
    try:
        if learner:
            _restore(trial.runner.agent, learner)
        else:
            trial.prepare(None)
        while not trial.runner.done:
            trial.advance()
            told(trial)
        return Learned(algorithm, trial.artifact, _kept(trial.runner.agent), trial.report)
    finally:
        trial.close()


def _kept(agent: Agent) -> bytes:
    arrays, values = agent.state(memory=False)
    return blob.pack({name: value for name, value in arrays.items() if name != CARRY}, values)


def _restore(agent: Agent, learner: bytes) -> None:
    arrays, values = blob.unpack(learner)
    agent.restore(arrays, {**values, **ANEW})

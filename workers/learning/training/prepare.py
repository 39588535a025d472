"""What an agent knows before it learns by itself: the parameters of an earlier one, or the play of an expert."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from app.policies.artifact import SHARED
from app.policies.base import IncompatibleArtifact
from workers.learning.algorithms.base import Agent, Experience, LearnStats
from workers.learning.imitation import Situated, demonstrate
from workers.learning.training.problem import Planned, TrainingProblem
from workers.learning.training.request import PLANNER, Request, Untrainable

DEMONSTRATIONS = 16_384  # steps of the expert
FEWEST = 16  # runs that it plays
LOOK_AHEAD = 8  # slabs more than an episode has decisions, so that learners that look ahead see its end
LEARNED = (SHARED["network"], SHARED["table"])

Arrays = Mapping[str, NDArray[Any]]


@runtime_checkable
class Continuing(Protocol):
    """An agent that can go on from what an earlier one exported."""

    def start_from(self, arrays: Arrays, config: Mapping[str, Any] | None = None) -> None:
        """Take over a published policy's arrays; raises ValueError where it is another kind of network."""


@runtime_checkable
class Imitating(Protocol):
    """An agent that can learn from watching."""

    def imitate(self, slabs: Iterable[Experience], rng: np.random.Generator) -> LearnStats:
        """Learn from what an expert did."""


def take_over(agent: Agent, problem: TrainingProblem, request: Request) -> None:
    """Give an agent the parameters of the one that the request goes on from.

    Raises:
        Untrainable: they don't fit, or this kind of agent can't go on.
    """
    start = request.start
    if start is None:
        return
    if not isinstance(agent, Continuing):
        raise Untrainable(f"{start.algorithm} can't go on from an agent; train anew, without start_from")
    try:
        policy = problem.load(start.artifact)
        learned = isinstance(policy, LEARNED)
        if learned:
            agent.start_from(policy.arrays, policy.config)
    except (ValueError, IncompatibleArtifact) as error:
        raise Untrainable(f"can't go on from agent {start.version}: {error}") from error
    if not learned:
        raise Untrainable(f"agent {start.version} is a {policy.name}: nothing was learned to go on from")


def imitate(
    agent: Agent, problem: TrainingProblem, request: Request, seed: int, planned: Planned | None
) -> dict[str, Any] | None:
    """Have an agent watch and copy the expert that the request names; what is to be reported of it.

    Raises:
        Untrainable: there is no such expert, or this kind of agent can't imitate.
    """
    if request.imitate is None:
        return None
    model = expert(request.imitate, problem, planned)
    if not isinstance(agent, Imitating):
        raise Untrainable(f"{request.algorithm} can't imitate an expert")
    batch = max(FEWEST, DEMONSTRATIONS // problem.length)
    worlds, draws = np.random.SeedSequence([seed, 1]).generate_state(2)
    simulator = cast("Situated", problem.simulator(batch, int(worlds)).make())
    slabs = demonstrate(simulator, model, problem.length + LOOK_AHEAD)
    try:
        stats = agent.imitate(slabs, np.random.default_rng(draws))
    except ValueError as error:
        raise Untrainable(f"can't imitate {request.imitate}: {error}") from error
    return {"expert": request.imitate, "updates": stats.updates, "loss": stats.loss}


def expert(name: str, problem: TrainingProblem, planned: Planned | None) -> Policy:
    """The expert of that name.

    Raises:
        Untrainable: there is none.
    """
    if name == PLANNER:
        if planned is None or not planned.artifact:
            reason = "" if planned is None else f": {planned.why_not}"
            raise Untrainable(f"the planner can't be imitated, as it can't plan this workload{reason}")
        policy: Policy = problem.load(planned.artifact)
        return policy
    known = problem.experts()
    if name not in known:
        raise Untrainable(f"unknown expert {name!r}; known are {', '.join([*known, PLANNER])}")
    return known[name]

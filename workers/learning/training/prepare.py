"""What an agent knows before it learns by itself: the parameters of an earlier one, or the play of an expert."""

from typing import Any, cast

import numpy as np

from app.kinds.contract.policy import Policy
from app.policies.artifact import SHARED
from app.policies.base import IncompatibleArtifact
from workers.learning.agent import Agent
from workers.learning.imitation import Situated, demonstrate
from workers.learning.training.problem import Planned, TrainingProblem
from workers.learning.training.request import PLANNER, Request, Untrainable

DEMONSTRATIONS = 16_384  # steps of the expert
FEWEST = 16  # runs that it plays
LOOK_AHEAD = 8  # slabs more than an episode has decisions, so that learners that look ahead see its end
LEARNED = (SHARED["network"], SHARED["table"])


def take_over(agent: Agent, problem: TrainingProblem, request: Request) -> None:
    """Give an agent the parameters of the one that the request goes on from.

    Raises:
        Untrainable: they don't fit, or this kind of agent can't go on.
    """
    start = request.start
    if start is None:
        return
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

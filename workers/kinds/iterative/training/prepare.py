"""What an agent knows before it learns by itself: the parameters of an earlier one, or the play of an expert."""

from typing import Any

import numpy as np

from app.kinds.contract.base import Policy
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies.network import NetworkPolicy
from app.kinds.iterative.policies.table import TablePolicy
from app.kinds.iterative.spec import Spec
from app.policies.artifact import load
from app.policies.base import IncompatibleArtifact
from workers.kinds.iterative.expected import ExpectedSimulator
from workers.kinds.iterative.simulator import TRAINING
from workers.kinds.iterative.training.planned import Planned
from workers.kinds.iterative.training.request import PLANNER, Request, Untrainable
from workers.learning.agent import Agent
from workers.learning.imitation import demonstrate

DEMONSTRATIONS = 16_384  # steps of the expert
FEWEST = 16  # runs that it plays
LOOK_AHEAD = 8  # slabs more than a run has iterations, so that learners that look ahead see its end


def take_over(agent: Agent, layout: Layout, request: Request) -> None:
    """Give an agent the parameters of the one that the request goes on from.

    Raises:
        Untrainable: they don't fit, or this kind of agent can't go on.
    """
    if request.start is None:
        return
    made = load(request.start.artifact)
    if not isinstance(made.policy, NetworkPolicy | TablePolicy):
        raise Untrainable(f"agent {request.start.version} is a {made.policy.name}: nothing was learned to go on from")
    try:
        made.check(layout)
        agent.start_from(made.policy.arrays, made.policy.config)
    except (ValueError, IncompatibleArtifact) as error:
        raise Untrainable(f"can't go on from agent {request.start.version}: {error}") from error


def imitate(
    agent: Agent, spec: Spec, table: ModelTable, request: Request, seed: int, planned: Planned | None
) -> dict[str, Any] | None:
    """Have an agent watch and copy the expert that the request names; what is to be reported of it.

    Raises:
        Untrainable: there is no such expert, or this kind of agent can't imitate.
    """
    if request.imitate is None:
        return None
    model = expert(request.imitate, planned)
    layout = Layout(spec)
    batch = max(FEWEST, DEMONSTRATIONS // layout.iterations)
    worlds, draws = np.random.SeedSequence([seed, 1]).generate_state(2)
    simulator = ExpectedSimulator(layout, table, batch, int(worlds), TRAINING)
    slabs = demonstrate(simulator, model, layout.iterations + LOOK_AHEAD)
    try:
        stats = agent.imitate(slabs, np.random.default_rng(draws))
    except ValueError as error:
        raise Untrainable(f"can't imitate {request.imitate}: {error}") from error
    return {"expert": request.imitate, "updates": stats.updates, "loss": stats.loss}


def expert(name: str, planned: Planned | None) -> Policy:
    """The expert of that name.

    Raises:
        Untrainable: there is none.
    """
    if name == PLANNER:
        if planned is None or planned.optimum is None:
            reason = "" if planned is None else f": {planned.why_not}"
            raise Untrainable(f"the planner can't be imitated, as it can't plan this workload{reason}")
        return planned.optimum.policy
    if name not in HEURISTICS:
        raise Untrainable(f"unknown expert {name!r}; known are {', '.join([*HEURISTICS, PLANNER])}")
    return HEURISTICS[name]

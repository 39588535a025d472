"""What others are paid where learners learn: experts and the plan, in the learners' own terms and simulator.

Returns of a verdict can't stand beside a learner's while it learns: those are shaped, scaled and of other episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import process_time
from typing import Any, cast

import numpy as np

from app.kinds.contract.policy import Policy
from workers.learning.imitation import Situated
from workers.learning.joint_simulator import JointSimulator
from workers.learning.training.problem import Planned, TrainingProblem
from workers.learning.training.request import STEPS, Request

EPISODES = 32
SECONDS = 3.0
"""Of a processor, after which no further one is begun: they are looked at, and decide nothing."""
WORTH_STEPS = 50_000
"""A shorter training is over before anyone has looked."""


def worthwhile(request: Request) -> bool:
    """Whether a training lasts so long that somebody will look at it."""
    return (request.budget or STEPS) >= WORTH_STEPS


def yardsticks(
    problem: TrainingProblem,
    request: Request,
    planned: Planned | None,
    clock: Callable[[], float] = process_time,
) -> dict[str, float]:
    """Mean returns by name; those that can't play in the simulator, or came too late, are left out."""
    if not worthwhile(request):
        return {}
    simulator: Any = problem.simulator(EPISODES, request.seed).make_any()
    if isinstance(simulator, JointSimulator) or not hasattr(type(simulator), "situation"):
        return {}
    ends, found = clock() + SECONDS, dict[str, float]()
    for name, policy in _others(problem, planned).items():
        if clock() > ends:
            break
        paid = _paid(cast("Situated", simulator), policy, 2 * problem.length)
        if paid is not None:
            found[name] = paid
    return found


def _others(problem: TrainingProblem, planned: Planned | None) -> Mapping[str, Policy]:
    """Of several names of one policy, the first."""
    several = {id(policy): (name, policy) for name, policy in reversed(list(problem.experts().items()))}
    found = dict(reversed(list(several.values())))
    if planned is None or not planned.artifact:
        return found
    # No optimum here: it is that of the domain model, and learners' simulators disturb runs and shape what they pay.
    return {"plan": problem.load(planned.artifact), **found}


def _paid(simulator: Situated, policy: Policy, most: int) -> float | None:
    """Mean return of the first episode of each environment; None: an action of it is not legal, or none ends."""
    _, mask = simulator.reset()
    returns, over = np.zeros(simulator.batch), np.zeros(simulator.batch, np.bool_)
    for _ in range(most):
        action = np.asarray(policy.act(simulator.situation).action, np.int64)
        if not mask[np.arange(len(action)), action].all():
            return None
        step = simulator.step(action)
        returns += np.where(over, 0.0, step.reward)
        over |= step.done
        mask = step.mask
        if over.all():
            break
    return float(returns[over].mean()) if over.any() else None

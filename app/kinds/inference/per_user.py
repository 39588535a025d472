"""What one user's agent sees and may do where every user has its own: the one encoder of it.

It sees its own requests, rate and quality, the servers, and the mean of all users' qualities, which the service tells
everybody; nothing else of other users. It does what a policy could in a workload with no other user in it, but that
each start is an *offer*, of which the best of all users' is taken. See ``awarding``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.policy import View
from app.kinds.inference.layout import Layout
from app.kinds.inference.observation import mask, observe
from app.kinds.inference.spec import InferenceSpec
from app.kinds.inference.state import State


class Client:
    """The representation of one user's agent: of its spaces, and of what it sees of a state of all users.

    Actions are those of ``alone``: 0 waits, the V·K after it offer (variant, batch size), the last fastest; the 2·C
    after them turn servers on or off.

    Attributes:
        user: its position.
        alone: of a workload that no other user is in.
    """

    def __init__(self, spec: InferenceSpec, user: int) -> None:
        self.user = user
        self.alone = Layout(spec.model_copy(update={"users": (spec.users[user],)}))
        self.entries = [*self.alone.entries, "mean_quality"]
        self.actions = self.alone.actions

    def seen(self, state: State) -> View:
        """Observation [B, D] and mask [B, N] of B decisions of all users' workload."""
        own = self.of(state)
        shared = state.quality.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
        return View(np.concatenate([observe(self.alone, own), shared], axis=1), mask(self.alone, own))

    def of(self, state: State) -> State:
        """B decisions as far as they are the user's: its requests, and all servers."""
        own = slice(self.user, self.user + 1)
        return state._replace(
            waiting=state.waiting[:, own],
            oldest=state.oldest[:, own],
            newest=state.newest[:, own],
            rate=state.rate[:, own],
            quality=state.quality[:, own],
        )


def roles(spec: InferenceSpec) -> tuple[str, ...]:
    """The users' names, or the default role where one policy answers for all."""
    return (DEFAULT_ROLE,) if spec.policies == "one" else tuple(user.name for user in spec.users)


def clients(layout: Layout) -> Mapping[str, Client]:
    """The representation of each user's agent."""
    return {name: Client(layout.spec, user) for user, name in enumerate(layout.users)}


def layouts(layout: Layout) -> Mapping[str, Layout | Client]:
    """What each role's policy reads and does."""
    return {DEFAULT_ROLE: layout} if layout.spec.policies == "one" else clients(layout)

"""Who chooses at a decision: one policy for all users, or the policies of several, each for its own requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy, Situation
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.observation import seen
from app.kinds.inference.per_user import of_user
from app.kinds.inference.projector import Projector
from app.kinds.inference.recent import Recent
from app.kinds.inference.state import CONTROL, State


class IllegalAction(ValueError):
    """A policy chose what it may not."""


class Chooser(Protocol):
    """Whoever chooses."""

    @property
    def name(self) -> str:
        """What decisions call it."""
        ...

    @property
    def adapts(self) -> bool:
        """Whether it wants the runs' last transitions."""
        ...

    def choose(self, state: State, recent: Recent | None = None) -> list[int]:
        """Actions of the workload's layout, for a state of B decisions, and the last transitions where it ``adapts``.

        Raises:
            IllegalAction: a policy chose one that is not legal.
        """
        ...


class Opinion(NamedTuple):
    """What a policy would do, and how much more return it expects of that than of waiting; None when it can't say."""

    action: int
    gain: float | None


class OneForAll:
    """A policy that sees everything."""

    def __init__(self, projector: Projector, policy: Policy) -> None:
        self._projector, self._policy = projector, policy
        self.name, self.adapts = policy.name, bool(getattr(policy, "adapts", False))

    def choose(self, state: State, recent: Recent | None = None) -> list[int]:
        """See ``Chooser``."""
        return self._chosen(state, recent)[0]

    def opinion(self, state: State) -> Opinion:
        """Its choice in a state of one decision; raises what ``choose`` does."""
        [action], values = self._chosen(state)
        return Opinion(action, None if values is None else float(values[0, action] - values[0, WAIT]))

    def _chosen(self, state: State, recent: Recent | None = None) -> tuple[list[int], NDArray[np.floating] | None]:
        view = seen(self._projector.layout, state)
        projector = self._projector if recent is None else self._projector._replace(recent=recent)
        choice = self._policy.act(Situation(projector, state, view))
        actions: list[int] = choice.action.tolist()
        for row, action in enumerate(actions):
            if not (0 <= action < view.mask.shape[1] and view.mask[row, action]):
                raise IllegalAction(f"{self._policy.name} chose action {action}, which is not legal here")
        return actions, choice.values


class PerUser:
    """A policy of each user, which sees a workload with no other user in it.

    A server takes the batch of the user whose policy expects most of starting its own there, over waiting, times the
    user's weight; where a policy does not say what it expects, and at equal gains, that of the user who has waited
    longest. Servers are turned on or off as most policies want; where as many want to wait, they wait.

    Args:
        layout: of the workload with all users.
        members: of each user, over a layout of its own, see ``per_user``.
    """

    adapts = False

    def __init__(self, layout: Layout, members: Sequence[OneForAll]) -> None:
        self._layout, self._members = layout, members
        self.name = "per_user: " + ", ".join(dict.fromkeys(member.name for member in members))

    def choose(self, state: State, recent: Recent | None = None) -> list[int]:  # noqa: ARG002 - see ``adapts``
        """See ``Chooser``."""
        rows: Sequence[Sequence[Any]] = [[part[row : row + 1] for part in state] for row in range(len(state.asked))]
        return [self._one(State(*row)) for row in rows]

    def _one(self, state: State) -> int:
        control = state.asked[0] == CONTROL
        users = [user for user in range(len(self._members)) if control or state.waiting[0, user]]
        opinions = {user: self._members[user].opinion(of_user(state, user)) for user in users}
        return self._turn(list(opinions.values())) if control else self._dispatch(state, opinions)

    def _turn(self, opinions: list[Opinion]) -> int:
        votes = [opinion.action for opinion in opinions]
        most = max(votes, key=lambda action: (votes.count(action), action == WAIT))
        per_class = self._layout.shape[1] * self._layout.shape[2]  # dispatches of one user
        return most if most == WAIT else most + self._layout.dispatches - per_class

    def _dispatch(self, state: State, opinions: dict[int, Opinion]) -> int:
        wanted = {user: opinion for user, opinion in opinions.items() if opinion.action != WAIT}
        if not wanted:
            return WAIT
        silent = any(opinion.gain is None for opinion in wanted.values())
        weight = self._layout.quality.weight

        def rank(user: int) -> tuple[float, float]:
            gain = wanted[user].gain
            return 0.0 if silent or gain is None else gain * float(weight[user]), float(state.oldest[0, user])

        user = max(wanted, key=rank)
        _, variants, batches = self._layout.shape
        return wanted[user].action + user * variants * batches


def chooser(layout: Layout, projectors: Sequence[Projector], policies: Sequence[Policy]) -> OneForAll | PerUser:
    """One policy for all, or one of each user."""
    members = [OneForAll(projector, policy) for projector, policy in zip(projectors, policies, strict=True)]
    return members[0] if layout.spec.policies == "one" else PerUser(layout, members)

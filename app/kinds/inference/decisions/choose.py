"""Who chooses at a decision."""

from __future__ import annotations

from app.kinds.contract.policy import Policy, Situation
from app.kinds.inference.acting import asked
from app.kinds.inference.observation import seen
from app.kinds.inference.projector import Projector
from app.kinds.inference.state import State


class Chooser:
    """A policy of a workload, and what it is shown of it."""

    def __init__(self, projector: Projector, policy: Policy) -> None:
        self._projector, self._policy = projector, policy
        self.name = policy.name

    def choose(self, state: State) -> list[int]:
        """Actions of the workload's layout, for a state of B decisions.

        Raises:
            IllegalAction: the policy chose one that is not legal.
        """
        view = seen(self._projector.layout, state)
        return asked(self._policy, Situation(self._projector, state, view))

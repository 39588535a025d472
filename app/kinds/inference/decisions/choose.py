"""Who chooses at a decision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy, Situation
from app.kinds.inference.acting import asked
from app.kinds.inference.observation import seen
from app.kinds.inference.projector import Projector
from app.kinds.inference.state import State
from app.kinds.inference.transitions import Transitions


class Chooser:
    """A policy of a workload, and what it is shown of it.

    Attributes:
        adapts: whether the policy wants the runs' last transitions.
    """

    def __init__(self, projector: Projector, policy: Policy) -> None:
        self._projector, self._policy = projector, policy
        self.name, self.adapts = policy.name, bool(getattr(policy, "adapts", False))

    def choose(self, state: State, known: NDArray[np.float64], recent: Transitions | None = None) -> list[int]:
        """Actions of the workload's layout, for a state of B decisions, and the last transitions where it ``adapts``.

        ``known`` is the state's numbers, as ``observe`` takes them.

        Raises:
            IllegalAction: the policy chose one that is not legal.
        """
        projector = self._projector if recent is None else self._projector._replace(recent=recent)
        return asked(self._policy, Situation(projector, state, seen(projector.layout, state, known)))

"""A policy that adapts a model of what is to come to a run's last transitions, and plans with it (GrBAL).

After Nagabandi et al. (2019), "Learning to adapt in dynamic, real-world environments through meta-reinforcement
learning": the dynamics model is learned so that one step of its gradient on the last transitions makes it tell the next
ones best, and decisions are planned with the adapted model over a receding horizon. What batches take and how many
requests come is adapted; what that means for queues is known, and planned with: ``Lookahead`` for what starts,
``ExpectedReturn`` for how many servers are on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from app.kinds.contract.policy import Choice, Situation
from app.kinds.inference.dynamics import Dynamics
from app.kinds.inference.forecast import going_on
from app.kinds.inference.heuristics import Composed
from app.kinds.inference.lookahead import Lookahead
from app.kinds.inference.scaling import ExpectedReturn
from app.policies.base import Arrays

ALGORITHM = "grbal"


class AdaptivePlanner:
    """See the module. ``config``: ``algorithm``; ``steps`` of the gradient; ``spread``, the standard deviation of the
    log of the load over what is foreseen, for which servers are kept on.

    Attributes:
        adapts: it wants the runs' last transitions.
    """

    adapts = True

    def __init__(self, config: Mapping[str, Any], dynamics: Dynamics) -> None:
        self.config, self.dynamics = dict(config), dynamics
        self._planner = Composed(Lookahead(), ExpectedReturn())
        self._variation = float(np.expm1(float(config["spread"]) ** 2))

    @property
    def name(self) -> str:
        """The algorithm that trained it."""
        return str(self.config["algorithm"])

    @property
    def arrays(self) -> Arrays:
        """Those of the dynamics model."""
        return dict(self.dynamics.arrays)

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """See ``Published``."""
        return cls(config, Dynamics.build(arrays, int(config["steps"])))

    def act(self, situation: Situation) -> Choice:
        """Adapt, foresee, plan."""
        projector, state, view, _ = situation
        if projector.seconds is None:
            raise ValueError("without a domain model there is nothing to adapt")
        layout, batch = projector.layout, len(state.asked)
        foreseen = self.dynamics.predict(layout, projector.seconds, projector.recent, batch)
        users = np.zeros(len(layout.users))
        ahead = going_on(users + self._variation)
        known = projector._replace(seconds=foreseen.seconds, usual=users, ahead=ahead, usually=None)
        return self._planner.act(Situation(known, state._replace(rate=foreseen.rate), view))

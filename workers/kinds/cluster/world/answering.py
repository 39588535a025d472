"""Who answers in played clusters for all jobs at once: rules, to hold agents against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.kinds.contract.policy import Choice, Situation

if TYPE_CHECKING:
    from workers.kinds.cluster.world.world import ClusterWorld


class Ruled:
    """One of the rules of the layout; as an expert to imitate, it weighs jobs as ``soonest`` does: not at all."""

    def __init__(self, name: str) -> None:
        self.name = name

    def watch(self, world: ClusterWorld) -> None:
        """Answer in ``world``."""
        world.answer(self.name)

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``: the job that is asked for weighs as much as its queue says."""
        return Choice(np.zeros(len(situation.view.mask), np.int64))

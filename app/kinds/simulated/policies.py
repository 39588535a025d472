"""Baselines that any kind of numbered actions has."""

import numpy as np

from app.kinds.contract.policy import Choice, Situation


class Constant:
    """The same action, whatever happens; -1 stands for the last of all."""

    def __init__(self, name: str, action: int) -> None:
        self.name, self._action = name, action

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        batch, actions = situation.view.mask.shape
        return Choice(np.full(batch, self._action % actions))

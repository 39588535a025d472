"""A world of numbered actions, for kinds whose layout is a ``NumberedLayout`` and whose domain model is a tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.kinds.contract.policy import View
from app.kinds.simulated import NumberedLayout
from workers.evaluation.problem import SimulatedWorld
from workers.inputs import Conditions


class NumberedWorld(SimulatedWorld):
    """B episodes of a workload; a kind writes ``begin`` and ``advance``, and sets ``terms_of``. See ``SimulatedWorld``.

    Args:
        layout: of the workload.
        models: domain models, named tuples of numbers: its own, and those of held-out executions.
        weights: what each of the reward's terms is worth, [T].
        conditions: how many episodes, and their seed.
    """

    def __init__(
        self, layout: NumberedLayout, models: Sequence[Any], weights: Sequence[float], conditions: Conditions
    ) -> None:
        super().__init__(
            layout,
            len(layout.entries),
            layout.actions,
            weights,
            steps=layout.iterations,
            batch=conditions.batch,
            seed=conditions.seed,
            held_out=len(models) - 1,
        )
        self._models, self._model = np.array(models, np.float64), type(models[0])

    def followed(self) -> Any:
        """The domain model that each episode follows: its numbers, [B] each."""
        which = np.zeros(self.batch, np.int64) if self.model is None else 1 + self.model
        return self._model(*self._models[which].T)

    def seen(self, state: Any) -> View:
        """Observation and mask, as the layout makes them of a state."""
        view: View = self.layout.seen(state)
        return view

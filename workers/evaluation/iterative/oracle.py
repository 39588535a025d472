"""Model-predictive control that is told the truth: what reading the run perfectly would be worth."""

from dataclasses import dataclass, field

import numpy as np

from app.kinds.base import Choice, Situation
from app.kinds.iterative.observation import view
from app.kinds.iterative.state import State
from workers.evaluation.iterative.world import IterativeWorld


@dataclass
class Oracle:
    """Knows each run's effect and model, but not the noise to come. ``watch`` comes before it acts."""

    name: str = "oracle"
    world: IterativeWorld | None = field(default=None, repr=False)

    def watch(self, world: IterativeWorld) -> None:
        """Look behind the scenes of ``world``."""
        self.world = world

    def act(self, situation: Situation) -> Choice:
        """The action with the best outlook under the truth."""
        if self.world is None:
            raise RuntimeError("watch() comes before act()")
        truth, state = self.world.truth, situation.state
        told = state._replace(effect=truth.effect, variance=np.zeros_like(state.variance))
        expected = np.empty(situation.view.outlook.shape, np.float64)
        for index, projector in enumerate(truth.projectors):
            rows = np.flatnonzero(truth.model == index)
            expected[rows] = view(projector, State(*(values[rows] for values in told))).outlook
        return Choice(expected.argmax(axis=1), expected)

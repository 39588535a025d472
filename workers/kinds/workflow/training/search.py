"""A search for priorities on the exact objective: the cross-entropy method (Rubinstein 1999).

Candidates are drawn around the best of those before, and played on the same sequences; each counts by the mean
logarithm of its losses over those of where the search began, which heavy sequences do not drown.
"""

from collections.abc import Callable

import numpy as np

from app.kinds.workflow.policies.schedulers import PriorityPolicy
from app.kinds.workflow.scheduling.priority import AGEING, PREDICTION, WEIGHTS
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.training.sequences import Sequence, measured

POPULATION, ELITE, SEQUENCES = 16, 5, 12
SPREAD = (0.25, 0.25, 0.15, 1.5, 0.3, 0.4, 0.3)  # of the first candidates, in the order of ``priority.NAMES``
NARROWEST = 0.1  # share of it that is always left
INERTIA = 0.3


class Search:
    """A search from ``weights`` [``WEIGHTS``] for those of one mechanism.

    Attributes:
        middle: of the next candidates.
        spread: of the next candidates.
        best: the middle of the last elite; where the search began, before there is any.
        curve: candidates played, and the mean ratio of the elite's losses to those of where the search began.
    """

    def __init__(
        self, weights: Seconds, draw: Callable[[int], list[Sequence]], mechanism: int, rng: np.random.Generator
    ) -> None:
        self.start, self.draw, self.mechanism, self.rng = weights.copy(), draw, mechanism, rng
        self.middle, self.spread = weights.copy(), np.array(SPREAD)
        self.steps, self.curve = 0, [(0, 1.0)]

    def policy(self, weights: Seconds) -> PriorityPolicy:
        """The policy of these weights, whatever the mechanism."""
        return PriorityPolicy(np.tile(weights, (3, 1)))

    def advance(self) -> None:
        """One generation."""
        played = self.draw(SEQUENCES)
        reference = measured(self.policy(self.start), played)
        drawn = allowed(self.middle + self.spread * self.rng.normal(size=(POPULATION, WEIGHTS)))
        drawn[0] = self.middle
        ratios = [float(np.log(measured(self.policy(one), played) / reference).mean()) for one in drawn]
        elite = drawn[np.argsort(ratios)[:ELITE]]
        self.middle = INERTIA * self.middle + (1.0 - INERTIA) * elite.mean(axis=0)
        shrunk = INERTIA * self.spread + (1.0 - INERTIA) * elite.std(axis=0)
        self.spread = np.maximum(shrunk, NARROWEST * np.array(SPREAD))
        self.steps += 1
        self.curve.append((self.steps * POPULATION, float(np.exp(np.mean(sorted(ratios)[:ELITE])))))


def allowed(weights: Seconds) -> Seconds:
    """Within bounds: no ageing backwards, and no share of a share."""
    weights[:, AGEING] = np.maximum(weights[:, AGEING], 0.0)
    weights[:, PREDICTION] = np.clip(weights[:, PREDICTION], 0.0, 1.2)
    return weights

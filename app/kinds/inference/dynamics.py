"""What policies that adapt expect of the near future: how long batches take, and how many requests come.

*Pace* is a network that reads (class, variant, size) and tells the log of seconds over those that the domain model
expects; it adapts to a run's last batches by one step of its gradient (see ``app.policies.adaptation``). *Load* is a
linear forecast of a user's requests in a part of a control interval, of those in the last parts: as square roots over
those of the usual number, which makes a Poisson variable's noise the same at every level (Anscombe, 1948), less 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.transitions import BATCHES, NONE, PARTS, PARTS_OF_INTERVAL, Transitions
from app.policies.adaptation import NAMES, Examples, Parameters, adapted, predicted
from app.policies.base import IncompatibleArtifact

Floats = NDArray[np.float64]
LARGEST = 3.0  # of a batch's log of seconds over those expected
ANSCOMBE = 0.375


class Prediction(NamedTuple):
    """Of B runs.

    Attributes:
        seconds: mean of a batch, [B, C, V, K].
        rate: requests per second in the next control interval, [B, U].
    """

    seconds: Floats
    rate: Floats


@dataclass(frozen=True, eq=False)
class Dynamics:
    """What was learned of pace and load.

    Attributes:
        start: parameters of *pace* before it adapts.
        rates: learning rates of each of them.
        pace_spread, load_spread: standard deviations of what neither explains.
        weights: of the levels of the last parts, and a constant, [PARTS + 1].
        usual: requests of each user in a part of a control interval, [U].
        steps: of the gradient; 0: nothing adapts.
    """

    start: Parameters
    rates: Parameters
    pace_spread: float
    load_spread: float
    weights: Floats
    usual: Floats
    steps: int = 1

    def predict(self, layout: Layout, seconds: Floats, recent: Transitions | None, batch: int) -> Prediction:
        """What B runs are to expect.

        Args:
            layout: of the workload.
            seconds: that the domain model expects, [C, V, K].
            recent: the runs' last transitions; None: none are known.
            batch: B.
        """
        if recent is None:
            recent = nothing(layout, batch)
        return Prediction(self.paces(layout, recent) * seconds, self.counts(recent.arrived) / width(layout))

    def paces(self, layout: Layout, recent: Transitions) -> Floats:
        """Mean seconds of a batch over those that the domain model expects, [B, C, V, K]."""
        kinds, batch = kinds_of_batches(layout), len(recent.batch)
        pace = adapted(self.start, self.rates, examples(layout, recent), self.steps)
        log = predicted(pace, np.broadcast_to(kinds, (batch, *kinds.shape)))
        factor: Floats = np.exp(np.clip(log, -LARGEST, LARGEST) + self.pace_spread**2 / 2)
        return factor.reshape(batch, len(layout.servers), *layout.shape[1:])

    def counts(self, arrived: NDArray[np.int64]) -> Floats:
        """Requests in each of the next parts of a control interval, after those of the last, [B, U, PARTS] → [B, U]."""
        root = np.maximum(1 + levels(self.usual, arrived) @ self.weights[:-1] + self.weights[-1], 0.0)
        mean: Floats = (root**2 + self.load_spread**2) * (self.usual + ANSCOMBE) - ANSCOMBE
        return np.maximum(mean, 0.0)

    @property
    def arrays(self) -> dict[str, Floats]:
        """All numbers by name."""
        start, rates = (
            {f"{group}.{name}": part[name] for name in NAMES}
            for group, part in (("start", self.start), ("rates", self.rates))
        )
        spreads = np.array([self.pace_spread, self.load_spread])
        return {**start, **rates, "spreads": spreads, "weights": self.weights, "usual": self.usual}

    @classmethod
    def build(cls, arrays: Mapping[str, Any], steps: int = 1) -> Dynamics:
        """Of ``arrays``.

        Raises:
            IncompatibleArtifact: an array is missing.
        """
        numbers = {name: np.asarray(array, np.float64) for name, array in arrays.items()}
        try:
            start, rates = ({name: numbers[f"{group}.{name}"] for name in NAMES} for group in ("start", "rates"))
            pace_spread, load_spread = numbers["spreads"].tolist()
            return cls(start, rates, pace_spread, load_spread, numbers["weights"], numbers["usual"], steps)
        except KeyError as error:
            raise IncompatibleArtifact(f"the dynamics model lacks {error}") from error


def width(layout: Layout) -> float:
    """Seconds of a part of a control interval."""
    return float(layout.spec.control_seconds) / PARTS_OF_INTERVAL


def nothing(layout: Layout, batch: int) -> Transitions:
    """Of B runs of which nothing is known."""
    arrived = np.full((batch, len(layout.users), PARTS), NONE)
    return Transitions(np.full((batch, BATCHES), NONE), np.ones((batch, BATCHES)), arrived)


def kinds_of_batches(layout: Layout) -> Floats:
    """What *pace* reads of each class, variant and size, [C·V·K, D]."""
    classes, (_, variants, sizes) = len(layout.servers), layout.shape
    which = np.indices((classes, variants, sizes)).reshape(3, -1)
    size = np.log2(layout.batches)[which[2]] / max(float(np.log2(layout.batches[-1])), 1.0)
    return np.concatenate([np.eye(classes)[which[0]], np.eye(variants)[which[1]], size[:, None]], axis=1)


def examples(layout: Layout, recent: Transitions) -> Examples:
    """What *pace* adapts to: a row of each run."""
    known = recent.batch != NONE
    inputs = kinds_of_batches(layout)[np.where(known, recent.batch, 0)]
    pace = np.log(np.clip(recent.pace, np.exp(-LARGEST), np.exp(LARGEST)))
    return Examples(inputs, np.where(known, pace, 0.0), known.astype(np.float64))


def levels(usual: Floats, arrived: NDArray[np.integer] | Floats) -> Floats:
    """Numbers of requests [B, U, J] as *load* has them; 0, the usual, where they aren't known."""
    root = np.sqrt(np.maximum(arrived, 0) + ANSCOMBE) / np.sqrt(usual + ANSCOMBE)[:, None]
    return np.where(arrived == NONE, 0.0, root - 1.0)

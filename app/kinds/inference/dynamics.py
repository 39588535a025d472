"""What policies that adapt expect of the near future: how long batches take, and how many requests come.

Two networks, each adapted to a run's last transitions by one step of its gradient (see ``app.policies.adaptation``):
*pace* reads (class, variant, size) and tells the log of seconds over those that the domain model expects; *load* reads
how many requests of a user came in the last part of a control interval and on average in those before, and tells how
many come in the next: as square roots over those of the usual number, which makes a Poisson variable's noise the same
at every level (Anscombe, 1948), less 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.recent import BATCHES, NONE, PARTS, PARTS_OF_INTERVAL, Recent
from app.policies.adaptation import NAMES, Examples, Parameters, adapted, predicted
from app.policies.base import IncompatibleArtifact

Floats = NDArray[np.float64]
NETWORKS = ("pace", "load")
KEPT = {"pace": BATCHES, "load": PARTS - 1}
"""Examples that each adapts to."""
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
    """The two networks as they are before they adapt.

    Attributes:
        start: parameters by network.
        rates: learning rates of each of them.
        age: weight of each example in the loss, by network, the newest last, [KEPT].
        spread: standard deviation of what remains unexplained, by network.
        usual: requests of each user in a part of a control interval, [U].
        steps: of the gradient; 0: nothing adapts.
    """

    start: Mapping[str, Parameters]
    rates: Mapping[str, Parameters]
    age: Mapping[str, Floats]
    spread: Mapping[str, float]
    usual: Floats
    steps: int = 1

    def predict(self, layout: Layout, seconds: Floats, recent: Recent | None, batch: int) -> Prediction:
        """What B runs are to expect.

        Args:
            layout: of the workload.
            seconds: that the domain model expects, [C, V, K].
            recent: the runs' last transitions; None: none are known.
            batch: B.
        """
        if recent is None:
            recent = nothing(layout, batch)
        grid = kinds_of_batches(layout)
        pace = predicted(self._adapted("pace", paces(layout, recent)), np.broadcast_to(grid, (batch, *grid.shape)))
        factor = np.exp(np.clip(pace, -LARGEST, LARGEST) + self.spread["pace"] ** 2 / 2)
        known = loads(self.usual, recent.arrived)
        level = predicted(self._adapted("load", known), latest(self.usual, recent.arrived))
        count = self.counts(level.reshape(batch, -1))
        width = layout.spec.control_seconds / PARTS_OF_INTERVAL
        return Prediction(factor.reshape(batch, *seconds.shape) * seconds, count / width)

    def counts(self, level: Floats) -> Floats:
        """Requests in a part of a control interval, of what the network *load* tells, [B, U]."""
        root = np.maximum(1.0 + level, 0.0) * np.sqrt(self.usual + ANSCOMBE)
        mean: Floats = root**2 + (self.spread["load"] ** 2) * (self.usual + ANSCOMBE) - ANSCOMBE
        return np.maximum(mean, 0.0)

    def _adapted(self, name: str, examples: Examples) -> Parameters:
        weighted = examples._replace(weight=examples.weight * self.age[name])
        return adapted(self.start[name], self.rates[name], weighted, self.steps)

    @property
    def arrays(self) -> dict[str, Floats]:
        """All numbers by name."""
        found = {"usual": self.usual}
        for name in NETWORKS:
            found |= {f"{name}.start.{part}": self.start[name][part] for part in NAMES}
            found |= {f"{name}.rates.{part}": self.rates[name][part] for part in NAMES}
            found |= {f"{name}.age": self.age[name], f"{name}.spread": np.array([self.spread[name]])}
        return found

    @classmethod
    def build(cls, arrays: Mapping[str, Any], steps: int = 1) -> Dynamics:
        """Of ``arrays``.

        Raises:
            IncompatibleArtifact: an array is missing.
        """
        numbers = {name: np.asarray(array, np.float64) for name, array in arrays.items()}

        def of(name: str, group: str) -> Parameters:
            return {part: numbers[f"{name}.{group}.{part}"] for part in NAMES}

        try:
            start, rates = ({name: of(name, group) for name in NETWORKS} for group in ("start", "rates"))
            age = {name: numbers[f"{name}.age"] for name in NETWORKS}
            spread = {name: float(numbers[f"{name}.spread"][0]) for name in NETWORKS}
            return cls(start, rates, age, spread, numbers["usual"], steps)
        except KeyError as error:
            raise IncompatibleArtifact(f"the dynamics model lacks {error}") from error


def nothing(layout: Layout, batch: int) -> Recent:
    """Of B runs of which nothing is known."""
    shape = (batch, BATCHES)
    arrived = np.full((batch, len(layout.users), PARTS), NONE)
    return Recent(np.full(shape, NONE), np.ones(shape), arrived)


def kinds_of_batches(layout: Layout) -> Floats:
    """What *pace* reads of each class, variant and size, [C·V·K, D]."""
    classes, (_, variants, sizes) = len(layout.servers), layout.shape
    which = np.indices((classes, variants, sizes)).reshape(3, -1)
    size = np.log2(layout.batches)[which[2]] / max(float(np.log2(layout.batches[-1])), 1.0)
    return np.concatenate([np.eye(classes)[which[0]], np.eye(variants)[which[1]], size[:, None]], axis=1)


def paces(layout: Layout, recent: Recent) -> Examples:
    """What *pace* adapts to: R = B."""
    known = recent.batch != NONE
    inputs = kinds_of_batches(layout)[np.where(known, recent.batch, 0)]
    pace = np.log(np.clip(recent.pace, np.exp(-LARGEST), np.exp(LARGEST)))
    return Examples(inputs, np.where(known, pace, 0.0), known.astype(np.float64))


def levels(usual: Floats, arrived: NDArray[np.int64]) -> Floats:
    """Numbers of requests [B, U, J] as *load* has them; 0, the usual, where they aren't known."""
    root = np.sqrt(np.maximum(arrived, 0) + ANSCOMBE) / np.sqrt(usual + ANSCOMBE)[:, None]
    return np.where(arrived == NONE, 0.0, root - 1.0)


def _read(usual: Floats, arrived: NDArray[np.int64]) -> Floats:
    """What *load* reads after each part, [B·U, J, 2 + U]: the level in it, the mean of all so far, and the user."""
    level, known = levels(usual, arrived), arrived != NONE
    mean = np.cumsum(level, axis=2) / np.maximum(np.cumsum(known, axis=2), 1)
    batch, users, count = level.shape
    user = np.broadcast_to(np.eye(users)[:, None], (batch, users, count, users))
    parts = np.concatenate([level[..., None], mean[..., None], user], axis=3)
    return parts.reshape(batch * users, count, 2 + users)


def loads(usual: Floats, arrived: NDArray[np.int64]) -> Examples:
    """What *load* adapts to: each part of [B, U, J] after those before it; R = B·U, K = J − 1."""
    rows, count = arrived.shape[0] * arrived.shape[1], arrived.shape[2] - 1
    inputs, known = _read(usual, arrived)[:, :-1], arrived != NONE
    both = known[:, :, 1:] & known[:, :, :-1]
    target = levels(usual, arrived)[:, :, 1:]
    return Examples(inputs, target.reshape(rows, count), both.reshape(rows, count).astype(np.float64))


def latest(usual: Floats, arrived: NDArray[np.int64]) -> Floats:
    """What *load* reads now, [B·U, 1, D]."""
    return _read(usual, arrived)[:, -1:]

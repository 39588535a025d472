"""A world to be held out: what it shows of itself beforehand, and the episodes on which decisions are judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import Spec
from workers.kinds.iterative.grid import Executions, Flat

Floats = NDArray[np.float64]
Law = Callable[[int, Floats, Floats], Floats]
"""Metrics [E, M] of one iteration at allocations [E, R] in units under features [E, F], but for luck and changes."""


class Episodes(NamedTuple):
    """E runs as chance has them. I iterations, M metrics, F features.

    Attributes:
        factors: by which the law's metrics are multiplied: the run's effect, residuals and drift, [E, I, M].
        features: [E, I, F].
    """

    factors: Floats
    features: Floats


@dataclass(frozen=True, eq=False)
class Profile:
    """All that whoever decides may know of a world: its spec, and the executions that were measured beforehand."""

    spec: Spec
    executions: Executions

    @property
    def flat(self) -> Flat:
        """The rows of all executions under each other."""
        return self.executions.flat(Layout(self.spec))

    @property
    def allocations(self) -> Floats:
        """The distinct allocations that were measured, [A, R], ascending."""
        return np.unique(self.flat.allocations, axis=0)


@dataclass(frozen=True, eq=False)
class World:
    """Where decisions are judged.

    Attributes:
        profile: what is shown; nothing of what is judged on is among it.
        law: see ``Law``.
        draw: so many episodes by a generator.
        announced: whether a launcher knows the features of all iterations to come, and says so.
    """

    name: str
    profile: Profile
    law: Law
    draw: Callable[[int, np.random.Generator], Episodes]
    announced: bool = False

    @property
    def spec(self) -> Spec:
        """The workload."""
        return self.profile.spec

    def episodes(self, count: int, seed: int) -> Episodes:
        """The same for everyone who is judged by the same seed."""
        return self.draw(count, np.random.default_rng(seed))

    def reference(self, episodes: Episodes) -> float:
        """Money for a run of the law at the largest allocation: what costs are relative to; 1 where nothing costs."""
        spec, layout = self.spec, Layout(self.spec)
        largest = np.array([[r.maximum for r in spec.resources]])
        course = episodes.features.mean(axis=0)
        seconds = sum(self.law(i, largest, course[i : i + 1])[0, layout.seconds] for i in range(spec.iterations))
        return math.fsum(largest[0] * layout.prices) * seconds / 3600 or 1.0

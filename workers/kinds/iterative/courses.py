"""The features that simulated runs go through."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.foreseen import course_places
from app.kinds.iterative.model import ModelTable

Array = NDArray[Any]


class Courses:
    """Courses of features as past executions had them; a feature that none of them changed stays as it is.

    Attributes:
        count: number of different ones; 0 where no feature ever changes.
    """

    def __init__(self, table: ModelTable) -> None:
        self.count = 0 if table.courses is None else len(table.courses)
        self._courses = table.courses
        resolution = 1 if table.courses is None else table.courses.shape[1]
        self._place = course_places(len(table.iteration_bin), resolution)

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.intp]:
        """Which course each of ``count`` runs goes through, [count]."""
        if self._courses is None:
            return np.zeros(count, np.intp)
        return random.integers(0, self.count, count)

    def at(self, course: NDArray[np.intp], iteration: NDArray[np.integer], features: Array) -> Array:
        """Features of ``iteration`` [B] of runs on ``course`` [B], [B, F]; ``features`` [B, F] are any of theirs."""
        if self._courses is None:
            return features
        there = self._courses[course, self._place[np.minimum(iteration, len(self._place) - 1)]]
        return np.where(np.isnan(there), features, there).astype(features.dtype, copy=False)

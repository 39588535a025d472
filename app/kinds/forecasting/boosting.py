"""Gradient-boosted trees, one set for each horizon, on the last values, the same time before, and the calendar."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct

from app.kinds.forecasting.series import DAY, WEEK, Floats, Integers, Series, about, lately, scaled

LAGS, SPANS = 12, (3, 6, 12, 24, 72)
LEAF = -1


class Trees(NamedTuple):
    """T trees of at most N nodes: the sum of what their leaves say.

    Attributes:
        start: what is said before any tree.
        left, right: the node that comes next, ``LEAF`` where there is none, [T, N].
        feature: whose value decides, [T, N].
        threshold: up to which it goes left, [T, N].
        value: of leaves, [T, N].
    """

    start: Floats
    left: Integers
    right: Integers
    feature: Integers
    threshold: Floats
    value: Floats

    def predict(self, features: Floats) -> Floats:
        """[m, F] → [m]."""
        rows, trees = np.arange(len(features))[:, None], np.arange(len(self.left))
        node = np.zeros((len(features), len(self.left)), np.int64)
        while (inner := self.left[trees, node] != LEAF).any():
            low = features[rows, self.feature[trees, node]] <= self.threshold[trees, node]
            node = np.where(inner, np.where(low, self.left[trees, node], self.right[trees, node]), node)
        return np.asarray(self.start + self.value[trees, node].sum(axis=1))


class Boosting(Struct, frozen=True, eq=False, tag=True):
    """Fitted trees by horizon."""

    horizons: tuple[int, ...]
    seasons: tuple[int, ...]
    trees: tuple[Trees, ...]

    def medians(self, series: Series, origins: Integers) -> Floats:
        """See ``Forecasting``."""
        told = [
            trees.predict(features(series, origins, ahead, self.seasons))
            for ahead, trees in zip(self.horizons, self.trees, strict=True)
        ]
        return np.stack(told, axis=1)


def features(series: Series, origins: Integers, ahead: int, seasons: tuple[int, ...]) -> Floats:
    """What trees read, [m, F]; in single precision, as scikit-learn's do."""
    values = scaled(series.counts)
    then = series.start + series.seconds * (origins + ahead)
    dated = np.stack([then % DAY / DAY, then % WEEK // DAY], axis=1)
    columns = [lately(values, origins, LAGS, SPANS), about(values, origins, ahead, seasons), dated]
    return np.concatenate(columns, axis=1).astype(np.float32).astype(np.float64)

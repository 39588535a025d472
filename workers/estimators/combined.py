"""Families made of families: one that keeps its form beyond what was seen, and the blend of several."""

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from workers.estimators.base import LARGEST_LOG, NORMAL_90, Estimator, Floats, Inputs, Integers, Prediction, from_logs
from workers.estimators.ernest import Ernest

Make = Callable[[Inputs], Estimator]


class Guided:
    """A flexible family within the bounds of what was seen; beyond them its value at the bound, moved as Ernest moves.

    log f(x) = log f(clip(x)) + log g(x) − log g(clip(x)), g being Ernest with a serial part, fitted to the same rows.
    """

    def __init__(self, inputs: Inputs, flexible: Estimator) -> None:
        self.inputs, self.flexible = inputs, flexible
        self.name = flexible.name

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        """See ``base``."""
        self.low_, self.high_ = X.min(axis=0), X.max(axis=0)
        self.flexible.fit(X, y, groups)
        self.guide_ = Ernest(self.inputs, serial=True).fit(X, y, groups)
        return self

    def predict(self, X: Floats) -> Prediction:
        """See ``base``; the interval widens with how far the guide had to move the prediction."""
        inside = np.clip(X, self.low_, self.high_)
        within = self.flexible.predict(inside)
        moved = self._moved(X, inside)
        sd = np.log(within.high / within.mean) / NORMAL_90 + 0.25 * np.abs(moved)
        return from_logs(np.log(within.mean) + moved, sd)

    def median(self, X: Floats) -> Floats:
        """See ``base``."""
        inside = np.clip(X, self.low_, self.high_)
        logs = np.log(self.flexible.median(inside)) + self._moved(X, inside)
        return np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG))

    def _moved(self, X: Floats, inside: Floats) -> Floats:
        return np.log(self.guide_.median(X)) - np.log(self.guide_.median(inside))

    def frozen(self) -> "Guided":
        """See ``base``."""
        return Guided(self.inputs, self.flexible.frozen())


class Blend:
    """Geometric mean of several families: their independent errors cancel."""

    def __init__(self, inputs: Inputs, members: Sequence[Estimator]) -> None:
        self.inputs, self.members = inputs, tuple(members)
        self.name = "blend"

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        """See ``base``."""
        for member in self.members:
            member.fit(X, y, groups)
        return self

    def predict(self, X: Floats) -> Prediction:
        """See ``base``."""
        parts = [member.predict(X) for member in self.members]
        sd = np.mean([np.log(part.high / part.mean) for part in parts], axis=0) / NORMAL_90
        return from_logs(np.mean([np.log(part.mean) for part in parts], axis=0), sd)

    def median(self, X: Floats) -> Floats:
        """See ``base``."""
        return np.exp(np.mean([np.log(member.median(X)) for member in self.members], axis=0))

    def frozen(self) -> "Blend":
        """See ``base``."""
        return Blend(self.inputs, [member.frozen() for member in self.members])

"""What a competent engineer fits in an hour: non-negative least squares of each stage on [1, 1/allocation]."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from app.kinds.iterative.layout import Layout
from benchmarks.held_out.world import Floats, Profile

ENOUGH = 5  # executions for a regression of each stage by itself


class StageRegression:
    """Metrics by stage and allocation, of a profile alone.

    Where executions are fewer than ``ENOUGH``, or features vary, one regression, on the features too, stands for all
    stages. What a target wants at least (a throughput) is regressed by its reciprocal. Changes' pauses, as the spec
    gives them, are taken off the seconds beforehand.
    """

    def __init__(self, profile: Profile) -> None:
        layout, self._flat = Layout(profile.spec), profile.flat
        self.iterations, self.scoped = layout.iterations, np.array([m.scope == "run" for m in profile.spec.metrics])
        self.inverse = np.array([m.goal == "at_least" for m in profile.spec.metrics])
        self.measured = self._flat.metrics.copy()
        self.measured[:, layout.seconds] -= self._flat.changed @ [r.change_seconds for r in profile.spec.resources]
        self._theta = self._fitted(apart=not layout.features)

    def _fitted(self, *, apart: bool) -> Floats:
        """θ by stage and metric, [I, M, K]."""
        X, flat = _design(self._flat.allocations, self._flat.features), self._flat
        values = np.where(self.inverse, 1 / self.measured, self.measured)
        stages = [flat.iterations == i for i in range(self.iterations)]
        if not apart or min(rows.sum() for rows in stages) < ENOUGH:
            stages = [np.ones(len(X), bool)]
        result = np.array([[nnls(X[rows], column)[0] for column in values[rows].T] for rows in stages])
        return np.broadcast_to(result, (self.iterations, *result.shape[1:]))

    def predict(self, units: Floats, features: Floats, iteration: int) -> Floats:
        """Metrics [n, M] at allocations [n, R] under features [n, F]."""
        values = np.maximum(_design(units, features) @ self._theta[iteration].T, 1e-12)
        return np.where(self.inverse, 1 / values, values)

    def course(self, units: Floats) -> Floats:
        """Metrics of every iteration at allocations [A, R], [I, A, M], under the profile's mean features there."""
        flat, ones = self._flat, np.ones((len(units), 1))
        means = [flat.features[flat.iterations == i].mean(axis=0) for i in range(self.iterations)]
        return np.stack([self.predict(units, ones * mean, i) for i, mean in enumerate(means)])

    def spreads(self, head_start: Floats) -> Floats:
        """Relative standard deviation in the profile of what is projected, by reports so far, [I + 1, M].

        The projection is the regression's times the pace so far; for a run's metric it is the sum of what is still to
        come, else the next iteration. ``head_start`` [M] is what a run is taken to have done on time beforehand.
        """
        off = [self._off(run, head_start) for run in np.unique(self._flat.groups)]
        return np.vstack([np.std(off, axis=0), 0 * head_start])

    def _off(self, run: int, head_start: Floats) -> Floats:
        """Measured over projected in one execution, [I, M]."""
        rows = np.flatnonzero(self._flat.groups == run)
        flat, measured = self._flat.take(rows), self.measured[rows]
        singles = zip(flat.allocations[:, None], flat.features[:, None], flat.iterations.tolist(), strict=True)
        expected = np.concatenate([self.predict(*single) for single in singles])
        done, due = np.cumsum(measured, axis=0) - measured, np.cumsum(expected, axis=0) - expected
        pace = (done + head_start) / (due + head_start)
        rest, to_come = measured.sum(axis=0) - done, expected.sum(axis=0) - due
        return np.where(self.scoped, rest / to_come, measured / expected) / pace


def _design(units: Floats, features: Floats) -> Floats:
    """[1, 1/x …] and their products with each feature, [n, K]."""
    bases = np.hstack([np.ones((len(units), 1)), 1 / np.maximum(units, 1e-9)])
    return np.hstack([bases, *(bases * features[:, [f]] for f in range(features.shape[1]))])

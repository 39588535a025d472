"""What decisions are held against: the plain rule of a competent engineer, and every allocation that never changes."""

from __future__ import annotations

import numpy as np

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import Metric
from benchmarks.held_out.play import Advice, Learner, Policy, Report
from benchmarks.held_out.regression import StageRegression
from benchmarks.held_out.world import Floats, Profile


class Static:
    """One allocation [R] for the whole run."""

    def __init__(self, allocation: Floats) -> None:
        self.name = "static " + " × ".join(f"{value:g}" for value in allocation)
        self._allocation = allocation

    def begin(self, features: Floats, upcoming: Floats) -> Advice:  # noqa: ARG002 - it does not look
        """The allocation."""
        return Advice(np.tile(self._allocation, (len(features), 1)))

    def next(self, report: Report) -> Advice:
        """The same again."""
        return Advice(report.allocation)


def statics(profile: Profile) -> list[Learner]:
    """Every allocation that was sampled in the profile, never changed."""

    def learner(allocation: Floats) -> Learner:
        return lambda _: Static(allocation)

    return [learner(allocation) for allocation in profile.allocations]


def plain_rule(margin: float) -> Learner:
    """The rule with so many standard deviations of margin."""

    def learner(profile: Profile) -> Policy:
        return PlainRule(profile, margin)

    return learner


class PlainRule:
    """Regressions of the stages, the run's pace so far, and the cheapest allocation with a margin.

    Of the allocations within the range that was sampled and within reach: the cheapest whose projection meets every
    target with ``margin`` standard deviations to spare, else the one that misses least. The projection is the
    regression's times the run's pace, measured over predicted so far, in which one average iteration counts as having
    been on time. What a standard deviation is, is asked of the profile: how far the same projection, after as many
    reports, was off in its executions. A change's pause is paid for. Features to come are those that were announced,
    else the profile's mean course.
    """

    def __init__(self, profile: Profile, margin: float) -> None:
        self.name = f"plain rule, +{margin:g} sd" if margin else "plain rule, no margin"
        self.spec, self.layout = profile.spec, Layout(profile.spec)
        sampled, grid = profile.allocations, self.layout.allocations
        self._grid = grid[((grid >= sampled.min(axis=0)) & (grid <= sampled.max(axis=0))).all(axis=1)]
        self._regression = StageRegression(profile)
        course = self._regression.course(self._grid)  # [I, A, M]
        self._one = self._regression.measured.mean(axis=0)
        self._next = np.concatenate([course, course[-1:]])
        self._rest = np.concatenate([np.cumsum(course[::-1], axis=0)[::-1], 0 * course[-1:]])
        self._margins = margin * self._regression.spreads(self._one)
        self._pauses = np.array([r.change_seconds for r in self.spec.resources])
        self._reach = np.array([r.step * r.max_steps for r in self.spec.resources]) + 1e-9

    def begin(self, features: Floats, upcoming: Floats) -> Advice:
        """The cheapest, wherever it is."""
        self._done, self._due = np.zeros((2, len(features), len(self.spec.metrics)))
        known = np.concatenate([features[:, None], upcoming], axis=1) if upcoming.size else upcoming
        score = self._score(0, np.zeros((len(features), len(self._grid))), known)
        return Advice(self._grid[score.argmin(axis=1)])

    def next(self, report: Report) -> Advice:
        """The cheapest within reach."""
        self._done = self._done + report.metrics
        self._due = self._due + self._regression.predict(report.allocation, report.features, report.iteration)
        apart = np.abs(self._grid - report.allocation[:, None])  # [E, A, R]
        score = self._score(report.iteration + 1, (apart > 0) @ self._pauses, report.upcoming)
        return Advice(self._grid[np.where((apart > self._reach).any(axis=2), np.inf, score).argmin(axis=1)])

    def _score(self, reports: int, pause: Floats, upcoming: Floats) -> Floats:
        """Money for the rest of the run at each allocation, [E, A]; where a target is missed, more than any money."""
        pace = ((self._done + self._one) / (self._due + self._one))[:, None]  # [E, 1, M]
        rest, following = self._rest[reports][None], self._next[reports][None]
        if upcoming.size:
            means = upcoming.mean(axis=1)
            rest = np.stack([upcoming.shape[1] * self._at(one, reports) for one in means])
            following = np.stack([self._at(one, reports) for one in upcoming[:, 0]])
        rest, following = pace * rest, pace * following
        rest[:, :, self.layout.seconds] += pause
        excess = np.zeros(pause.shape)
        for m, metric in enumerate(self.spec.metrics):
            value = rest[:, :, m] if metric.scope == "run" else following[:, :, m]
            so_far = self._done[:, None, m] if metric.scope == "run" else 0.0
            excess = np.maximum(excess, _excess(metric, value + so_far, value * self._margins[reports, m]))
        money = (self._grid @ self.layout.prices) * rest[:, :, self.layout.seconds]
        return np.where(excess > 0, 1e12 * (1 + excess), money)

    def _at(self, features: Floats, iteration: int) -> Floats:
        """Metrics at each allocation under features [F], [A, M]; they are linear in the features."""
        return self._regression.predict(self._grid, np.tile(features, (len(self._grid), 1)), iteration)


def _excess(metric: Metric, value: Floats, swing: Floats) -> Floats:
    """Relative miss of a target by what is projected and its margin; negative with room to spare."""
    if metric.target is None:
        return np.zeros_like(value)
    if metric.goal == "track":
        return np.abs(value / metric.target - 1)
    return 1 - (value - swing) / metric.target if metric.goal == "at_least" else (value + swing) / metric.target - 1

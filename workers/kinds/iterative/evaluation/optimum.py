"""The exact optimum of an ``iterative`` workload under its domain model, by dynamic programming.

The run effect and the noise are log-normal, so the posterior of the log run effect after k iterations is normal with a
variance that depends on k alone: its mean is a sufficient statistic. Value iteration over iteration × allocation × time
left × posterior mean, with Gauss–Hermite noise, is then the Bayes optimum up to the grid.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.feature_grid import Point
from app.kinds.iterative.heuristics import first_allocation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies.planner import PlannerPolicy, stencil
from app.kinds.iterative.preferences import reference_cost
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reward import miss
from app.kinds.iterative.spec import Disturbances
from app.kinds.iterative.state import begin

Array = NDArray[np.float64]
LARGEST_GRID = 50_000_000  # state-actions
LARGEST_PLAN = 150_000_000  # the same for a coarser plan, which is a policy like any other but no yardstick
TAILS = 3.5  # standard deviations that the grids reach


class Grid(NamedTuple):
    """How fine: values of the time left, of the run effect, and quadrature nodes of the noise."""

    left: int = 101
    effect: int = 13
    noise: int = 15


COARSER = (Grid(81, 11, 7), Grid(41, 9, 7), Grid(31, 7, 5), Grid(21, 5, 5))


class NoOptimum(ValueError):
    """The exact optimum can't be had; the message says why."""


@dataclass(frozen=True)
class Optimum:
    """The solved problem.

    Attributes:
        policy: acts optimally, up to the grid.
        expected: return of a run that begins at the service's first allocation, by the programme.
        error: how far ``expected`` moves when every grid is halved.
        grid: how fine it was solved.
    """

    policy: PlannerPolicy
    expected: float
    error: float
    grid: Grid

    @property
    def exact(self) -> bool:
        """Whether the grid is fine enough to be a yardstick."""
        return self.grid not in COARSER


def why_not(layout: Layout, table: ModelTable, grid: Grid = Grid(), largest: int = LARGEST_GRID) -> str | None:
    """Why the optimum of this workload can't be had on ``grid``, or None when it can."""
    others = [m.name for i, m in enumerate(layout.spec.metrics) if m.target is not None and i != layout.seconds]
    if layout.spec.disturbances != Disturbances():
        return "lost capacity and shifts of the pace add to the state"
    if others:
        return f"targets on {', '.join(others)} add run effects to the state"
    if table.members is not None:
        return f"the model is a belief in {len(table.members)} models, whose weights add to the state"
    if table.cells > 1:
        return "features that vary between runs add to the state"
    timed = layout.spec.metrics[layout.seconds]
    left = grid.left if timed.target is not None and timed.scope == "run" else 1
    size = layout.iterations * len(layout.allocations) * len(layout.deltas) * left * grid.effect
    if size > largest:
        return f"the grid has {size:.1e} state-actions, more than {largest:.0e}"
    return None


def solve(layout: Layout, table: ModelTable, grid: Grid = Grid(), *, with_error: bool = True) -> Optimum:
    """Solve the workload.

    Raises:
        NoOptimum: it has state that the programme does not carry, or too much of it.
    """
    reason = why_not(layout, table, grid)
    if reason:
        raise NoOptimum(reason)
    return _solved(layout, table, grid, with_error=with_error)


def plan(layout: Layout, table: ModelTable) -> Optimum:
    """The best plan that can be had: the exact optimum, or one on the finest grid that is small enough.

    Of a belief it is the plan for its middle, which is none of it, and of runs that may be disturbed the one for those
    that aren't: a policy like any other.

    Raises:
        NoOptimum: as ``solve``, or no grid is small enough.
    """
    if why_not(layout, table) is None:
        return _solved(layout, table, Grid(), with_error=True)
    table = replace(table, members=None)
    layout = Layout(layout.spec.model_copy(update={"disturbances": Disturbances()}))
    reasons = [why_not(layout, table, grid, LARGEST_PLAN) for grid in COARSER]
    if None not in reasons:
        raise NoOptimum(str(reasons[-1]))
    return _solved(layout, table, COARSER[reasons.index(None)], with_error=False)


def _solved(layout: Layout, table: ModelTable, grid: Grid, *, with_error: bool) -> Optimum:
    programme = _Programme(layout, table, grid)
    worth, start = programme.solve()
    fresh = begin(programme.projector, layout.start_levels[None])
    first = int(layout.index(first_allocation(programme.projector, fresh))[0])
    error = 0.0
    if with_error:
        coarse = Grid((grid.left + 1) // 2, (grid.effect + 1) // 2, (grid.noise + 1) // 2)
        error = abs(float(start[first] - _Programme(layout, table, coarse).solve()[1][first]))
    return Optimum(programme.policy(worth), float(start[first]), error, grid)


class _Programme:
    """Arrays of the backward recursion. A allocations, X values of the time left, E of the effect, H of the noise."""

    def __init__(self, layout: Layout, table: ModelTable, grid: Grid) -> None:
        self.layout, self.grid, self.projector = layout, grid, Projector(layout, table)
        projector, seconds = self.projector, layout.seconds
        state = begin(projector, layout.start_levels[None])
        self.metric = layout.spec.metrics[seconds]
        self.sla, self.cost, self.change = layout.weights
        rates = projector.grid_levels * projector.steps + projector.minima
        self.rate = rates @ layout.prices / 3600 / float(reference_cost(projector, state)[0])  # [A] per second
        self.run_scope = self.metric.target is not None and self.metric.scope == "run"
        pauses = (layout.deltas != 0) @ projector.change_seconds
        self.pauses = np.zeros(1) if self.run_scope else np.unique(pauses)
        self.pause = pauses
        every = np.arange(len(layout.allocations))
        anywhere = Point(np.zeros((1, len(every)), np.intp))
        self.median = np.exp(
            [projector.log_mean(every, anywhere, np.full(len(every), k))[:, seconds] for k in range(layout.iterations)]
        )  # [K, A]
        self.noise = projector.noise(np.arange(layout.iterations))[:, seconds] * np.ones(layout.iterations)  # [K]
        self.drift = float(projector.drift_variance[seconds])
        self.tau = float(projector.effect_variance[seconds])
        self._ranges()

    def _ranges(self) -> None:
        """Per iteration: posterior variance and gain, half-width of the effect's grid, and range of the time left."""
        iterations = self.layout.iterations
        self.variance, self.gain, self.spread = (np.zeros(iterations + 1) for _ in range(3))
        self.variance[0] = self.tau
        for k in range(iterations):
            prior = self.variance[k] + self.drift
            self.gain[k] = prior / (prior + self.noise[k])
            self.variance[k + 1] = prior - self.gain[k] * prior
        marginal = self.tau + self.drift * np.arange(iterations + 1) - self.variance
        self.half = np.maximum(TAILS * np.sqrt(np.maximum(marginal, 0)), 1e-3)
        self.spread = np.sqrt(self.variance[:-1] + self.drift + self.noise)
        rest = np.cumsum(self.median[::-1], axis=0)[::-1]  # [K, A] seconds from k on
        count = np.arange(iterations, 0, -1)
        rest_noise = np.cumsum(self.noise[::-1])[::-1] / count**2  # of the mean over what is to come
        wide = np.exp(TAILS * np.sqrt(self.variance[:-1] + self.drift * (1 + count / 3) + rest_noise))
        self.low, self.high = rest.min(axis=1) / wide, rest.max(axis=1) * wide

    def solve(self) -> tuple[NDArray[np.float32], Array]:
        """Post-decision worth [P, K, A, X, E], and the expected return of beginning at each allocation, [A]."""
        grid, iterations = self.grid, self.layout.iterations
        x = grid.left if self.run_scope else 1
        worth = np.zeros((len(self.pauses), iterations, len(self.rate), x, grid.effect), np.float32)
        value = self._end(x)
        for k in range(iterations - 1, -1, -1):
            after = np.stack([self._run(k, value, pause) for pause in self.pauses])
            worth[:, k] = after
            value = self._decide(k, after)
        return worth, self._start(worth)

    def _effects(self, k: int) -> Array:
        """Posterior means of the log run effect after k iterations, [E]."""
        return np.linspace(-self.half[k], self.half[k], self.grid.effect)

    def _left(self, k: int, x: int) -> Array:
        """Values of the time left at iteration k, over what the run effect makes of a second, [X]."""
        return np.geomspace(self.low[k], self.high[k], x) if self.run_scope else np.ones(1)

    @property
    def slope(self) -> float:
        """Return per second of lateness."""
        return self.sla * self.metric.weight / self.metric.target if self.run_scope and self.metric.target else 0.0

    def _end(self, x: int) -> Array:
        """Value when all is done, [A, X, E]: nothing while there is time left; what is late is extrapolated."""
        return np.zeros((len(self.rate), x, self.grid.effect))

    def _run(self, k: int, value: Array, pause: float) -> Array:
        """E over the noise of iteration k's cost and miss plus what follows, [A, X, E]."""
        effects = self._effects(k)
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.grid.noise)
        weights = weights / weights.sum()
        left = self._left(k, value.shape[1])[:, None] * np.exp(effects)  # [X, E]
        total = np.zeros_like(value)
        for node, weight in zip(nodes, weights, strict=True):
            innovation = node * self.spread[k]
            duration = self.median[k][:, None] * np.exp(effects + innovation) + pause  # [A, E]
            paid = -self.cost * self.rate[:, None] * duration
            if self.metric.target is not None and not self.run_scope:
                ratio = duration / self.metric.target
                paid = paid - self.sla * self.metric.weight * miss(self.metric.goal, ratio) / self.layout.iterations
            follow = self._next(k, value, left[None] - duration[:, None, :], effects + self.gain[k] * innovation)
            total += weight * (paid[:, None, :] + follow)
        return total

    def _next(self, k: int, value: Array, left: Array, effect: Array) -> Array:
        """Value at iteration k + 1 with ``left`` [A, X, E] and posterior means ``effect`` [E], interpolated."""
        half, count = self.half[k + 1], self.grid.effect
        nodes, weights = stencil(np.clip(effect, -half, half) + half, float(2 * half), count)
        mixing = np.zeros((count, count))
        np.add.at(mixing, (nodes, np.arange(count)), weights)
        blended = value @ mixing  # [A, X, E]
        if not self.run_scope:
            return blended
        if k + 1 == self.layout.iterations:
            return self.slope * np.minimum(left, 0)
        return self._at(blended, left, k + 1, effect)

    def _at(self, table: Array, left: Array, k: int, effect: Array) -> Array:
        """``table`` [A, X, E] over the time left of iteration k, read at ``left`` [A, X, E] under ``effect`` [E]."""
        low, high = self.low[k], self.high[k]
        inside = np.clip(left * np.exp(-effect), low, high)
        nodes, weights = stencil(np.log(inside / low), float(np.log(high / low)), table.shape[1])
        read = np.minimum(left - low * np.exp(effect), 0) * self.slope
        for node, weight in zip(nodes, weights, strict=True):
            read += np.take_along_axis(table, node, axis=1) * weight
        return read

    def _decide(self, k: int, after: Array) -> Array:
        """Value of deciding iteration k from each allocation, [A, X, E]."""
        layout, levels = self.layout, self.projector.grid_levels
        best = np.full(after.shape[1:], -np.inf)
        moved = np.abs(layout.deltas).sum(axis=1) / (layout.largest_action * layout.iterations)
        shifted = {float(pause): self._paused(k, after, float(pause)) for pause in np.unique(self.pause)}
        for action, delta in enumerate(layout.deltas):
            goal = levels + delta
            legal = ((goal >= 0) & (goal < np.array(layout.levels))).all(axis=1)
            rows = layout.index(goal[legal])
            candidate = shifted[float(self.pause[action])][rows] - self.change * moved[action]
            best[legal] = np.maximum(best[legal], candidate)
        return best

    def _paused(self, k: int, after: Array, pause: float) -> Array:
        """Worth of iteration k when ``pause`` seconds go first, [A, X, E]."""
        if not self.run_scope:
            return after[int(np.abs(self.pauses - pause).argmin())]
        if pause == 0:
            return after[0]
        effect = self._effects(k)
        left = self._left(k, after.shape[2])[:, None] * np.exp(effect) - pause
        return (
            self._at(after[0], np.broadcast_to(left, after[0].shape), k, effect)
            - self.cost * self.rate[:, None, None] * pause
        )

    def _start(self, worth: NDArray[np.float32]) -> Array:
        """Expected return of a run that begins at each allocation, [A]."""
        middle = worth.shape[4] // 2
        table = worth[0, 0, :, :, :].astype(np.float64)
        if not self.run_scope:
            return table[:, 0, middle]
        target = np.full((len(self.rate), 1, table.shape[2]), self.metric.target)
        return self._at(table, target, 0, self._effects(0))[:, 0, middle]

    def policy(self, worth: NDArray[np.float32]) -> PlannerPolicy:
        """The table as a policy."""
        iterations = self.layout.iterations
        arrays = {
            "worth": worth,
            "pauses": self.pauses,
            "left_low": self.low,
            "left_high": self.high,
            "effect_half": self.half[:iterations],
        }
        return PlannerPolicy({"algorithm": "planner", "slope": self.slope}, arrays)

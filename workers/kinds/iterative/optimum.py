"""Optima of kind ``iterative``: dynamic programming under the domain model, and hindsight for one known episode.

Letters in shapes: K iterations, A allocations of the grid, N actions, R resources, M metrics, P different pauses
(seconds that a change of allocation takes), X grid values of the time left, E grid values of the run effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.heuristics import first_allocation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, Point
from app.kinds.iterative.observation import miss, reference_cost
from app.kinds.iterative.policies import PlannerPolicy, stencil
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Disturbances
from app.kinds.iterative.state import State, begin
from workers.evaluation.problem import Encoder
from workers.kinds.iterative.world import IterativeWorld

Array = NDArray[np.float64]
LARGEST_GRID = 50_000_000  # state-actions of an exact optimum
LARGEST_PLAN = 150_000_000  # state-actions of a plan on a coarser grid, which is no reference
TAILS = 3.5  # reach of the grids in standard deviations


class Grid(NamedTuple):
    """Numbers of grid points of a dynamic programme.

    Attributes:
        remaining_time: grid values of the time left until the target.
        effect: grid values of the posterior mean of the log run effect.
        noise: quadrature nodes of an iteration's noise.
    """

    remaining_time: int = 101
    effect: int = 13
    noise: int = 15


COARSER = (Grid(81, 11, 7), Grid(41, 9, 7), Grid(31, 7, 5), Grid(21, 5, 5))


class NoOptimum(ValueError):
    """The optimum of a workload can't be computed; the message says why."""


@dataclass(frozen=True)
class Optimum:
    """The solution of a workload by dynamic programming.

    Attributes:
        policy: the optimal policy, up to the grid's error.
        expected: expected return (unscaled) of a run that begins at the service's first allocation.
        error: absolute change of ``expected`` when every grid is halved; 0 if not computed.
        grid: the grid on which it was solved.
    """

    policy: PlannerPolicy
    expected: float
    error: float
    grid: Grid

    @property
    def exact(self) -> bool:
        """Whether ``grid`` is none of ``COARSER``; only then ``policy`` counts as the optimum, otherwise as a plan."""
        return self.grid not in COARSER


def why_not(layout: Layout, table: ModelTable, grid: Grid = Grid(), largest: int = LARGEST_GRID) -> str | None:
    """Return the reason why the workload can't be solved on ``grid`` within ``largest`` state-actions; None: it can."""
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
    left = grid.remaining_time if timed.target is not None and timed.scope == "run" else 1
    size = layout.iterations * len(layout.allocations) * len(layout.deltas) * left * grid.effect
    if size > largest:
        return f"the grid has {size:.1e} state-actions, more than {largest:.0e}"
    return None


def solve(layout: Layout, table: ModelTable, grid: Grid = Grid(), *, with_error: bool = True) -> Optimum:
    """Solve the workload by dynamic programming.

    Args:
        layout, table: the workload's layout and its domain model.
        grid: sizes of the grids.
        with_error: whether to solve the workload on halved grids too, for ``Optimum.error``.

    Raises:
        NoOptimum: the workload is disturbed, has targets on metrics other than seconds, several model members or
            varying features, or needs more than 50 million state-actions.
    """
    reason = why_not(layout, table, grid)
    if reason:
        raise NoOptimum(reason)
    return _solve(layout, table, grid, with_error=with_error)


def plan(layout: Layout, table: ModelTable) -> Optimum:
    """Compute the exact optimum, else a plan: the solution on the finest of ``COARSER`` that is small enough.

    A plan replaces several alternative models by their mean, and ignores disturbances.

    Raises:
        NoOptimum: a metric other than seconds has a target, features vary between runs, or no grid has at most 150
            million state-actions.
    """
    if why_not(layout, table) is None:
        return _solve(layout, table, Grid(), with_error=True)
    table = replace(table, members=None)
    layout = Layout(layout.spec.model_copy(update={"disturbances": Disturbances()}))
    reasons = [why_not(layout, table, grid, LARGEST_PLAN) for grid in COARSER]
    if None not in reasons:
        raise NoOptimum(str(reasons[-1]))
    return _solve(layout, table, COARSER[reasons.index(None)], with_error=False)


def _solve(layout: Layout, table: ModelTable, grid: Grid, *, with_error: bool) -> Optimum:
    programme = _Programme(layout, table, grid)
    worth, start = programme.solve()
    fresh = begin(programme.projector, layout.start_levels[None])
    first = int(layout.index(first_allocation(programme.projector, fresh))[0])
    error = 0.0
    if with_error:
        coarse = Grid((grid.remaining_time + 1) // 2, (grid.effect + 1) // 2, (grid.noise + 1) // 2)
        error = abs(float(start[first] - _Programme(layout, table, coarse).solve()[1][first]))
    return Optimum(programme.policy(worth), float(start[first]), error, grid)


class _Programme:
    """Arrays of the backward recursion: K iterations, A allocations, N actions, P different pauses, X grid values of
    the time left, E of the run effect.

    Attributes:
        rate: cost per second of each allocation, relative to the reference cost of a run, [A].
        pauses: different seconds that a change of allocation takes, [P]; a single 0.0 if ``run_scope``.
        pause: seconds that each action's change takes, [N].
        median: median seconds of each iteration at each allocation, [K, A].
        noise: variance of the log noise, [K]; ``tau``, ``drift``: variance of the log run effect, and its increase per
            iteration.
        run_scope: whether the target is on the sum of seconds over the run.
    """

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
        """Set for each iteration: variance of the posterior of the log run effect (``variance``), its gain in 0…1, half
        the width of the effect's grid (``half``), and least and most seconds left on the grid (``low``, ``high``)."""
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
        rest_noise = np.cumsum(self.noise[::-1])[::-1] / count**2  # variance of the mean over the remaining iterations
        wide = np.exp(TAILS * np.sqrt(self.variance[:-1] + self.drift * (1 + count / 3) + rest_noise))
        self.low, self.high = rest.min(axis=1) / wide, rest.max(axis=1) * wide

    def solve(self) -> tuple[NDArray[np.float32], Array]:
        """Return expected returns: after each decision, by pause, iteration, allocation, time left and run effect, [P,
        K, A, X, E]; and of runs that begin at each allocation, [A]."""
        grid, iterations = self.grid, self.layout.iterations
        x = grid.remaining_time if self.run_scope else 1
        worth = np.zeros((len(self.pauses), iterations, len(self.rate), x, grid.effect), np.float32)
        value = self._end(x)
        for k in range(iterations - 1, -1, -1):
            after = np.stack([self._run(k, value, pause) for pause in self.pauses])
            worth[:, k] = after
            value = self._decide(k, after)
        return worth, self._start(worth)

    def _effects(self, k: int) -> Array:
        """Return the grid of posterior means of the natural log of the run effect after ``k`` iterations, [E]."""
        return np.linspace(-self.half[k], self.half[k], self.grid.effect)

    def _remaining_time_grid(self, k: int, x: int) -> Array:
        """Return ``x`` grid values, [X], of the seconds left before iteration ``k`` divided by the run effect's factor.

        Without a target on the run's time, the grid is the single value 1.
        """
        return np.geomspace(self.low[k], self.high[k], x) if self.run_scope else np.ones(1)

    @property
    def slope(self) -> float:
        """Change of the return per second of time left below 0; 0 without a target on the run's time."""
        return self.sla * self.metric.weight / self.metric.target if self.run_scope and self.metric.target else 0.0

    def _end(self, x: int) -> Array:
        """Return zeros [A, X, E], the value after the last iteration by allocation, time left and run effect."""
        return np.zeros((len(self.rate), x, self.grid.effect))

    def _run(self, k: int, value: Array, pause: float) -> Array:
        """Return the expectation over noise, by allocation, time left and run effect [A, X, E], of iteration ``k``'s
        reward plus the ``value`` after it, [A, X, E], if the iteration begins with a pause of ``pause`` seconds."""
        effects = self._effects(k)
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.grid.noise)
        weights = weights / weights.sum()
        left = self._remaining_time_grid(k, value.shape[1])[:, None] * np.exp(effects)  # [X, E]
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
        """Interpolate ``value`` (by allocation, time left, run effect, [A, X, E]) on the grid of iteration k + 1, at
        ``left`` seconds [A, X, E] and posterior means ``effect`` [E] of the log run effect; return [A, X, E]."""
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
        """Interpolate ``table`` (by allocation, time left, run effect, [A, X, E]), on the grid of iteration k, at
        ``left`` seconds [A, X, E] and log run effects ``effect`` [E]; return [A, X, E]. Below the grid the value falls
        by ``slope`` per second."""
        low, high = self.low[k], self.high[k]
        inside = np.clip(left * np.exp(-effect), low, high)
        nodes, weights = stencil(np.log(inside / low), float(np.log(high / low)), table.shape[1])
        read = np.minimum(left - low * np.exp(effect), 0) * self.slope
        for node, weight in zip(nodes, weights, strict=True):
            read += np.take_along_axis(table, node, axis=1) * weight
        return read

    def _decide(self, k: int, after: Array) -> Array:
        """Return the value before the decision on iteration ``k``, by allocation, time left and run effect [A, X, E]:
        the largest over legal actions. ``after`` [P, A, X, E] are the values after the decision, by pause."""
        layout, levels = self.layout, self.projector.grid_levels
        best = np.full(after.shape[1:], -np.inf)
        moved = np.abs(layout.deltas).sum(axis=1) / (layout.largest_action * layout.iterations)
        shifted = {float(pause): self._value_after_pause(k, after, float(pause)) for pause in np.unique(self.pause)}
        for action, delta in enumerate(layout.deltas):
            goal = levels + delta
            legal = ((goal >= 0) & (goal < np.array(layout.levels))).all(axis=1)
            rows = layout.index(goal[legal])
            candidate = shifted[float(self.pause[action])][rows] - self.change * moved[action]
            best[legal] = np.maximum(best[legal], candidate)
        return best

    def _value_after_pause(self, k: int, after: Array, pause: float) -> Array:
        """Interpolate iteration ``k``'s value [A, X, E] at a pause of ``pause`` seconds in ``after`` [P, A, X, E]."""
        if not self.run_scope:
            return after[int(np.abs(self.pauses - pause).argmin())]
        if pause == 0:
            return after[0]
        effect = self._effects(k)
        left = self._remaining_time_grid(k, after.shape[2])[:, None] * np.exp(effect) - pause
        return (
            self._at(after[0], np.broadcast_to(left, after[0].shape), k, effect)
            - self.cost * self.rate[:, None, None] * pause
        )

    def _start(self, worth: NDArray[np.float32]) -> Array:
        """Return the expected return [A] of runs that begin at each allocation; ``worth``: as ``solve`` returns it."""
        middle = worth.shape[4] // 2
        table = worth[0, 0, :, :, :].astype(np.float64)
        if not self.run_scope:
            return table[:, 0, middle]
        target = np.full((len(self.rate), 1, table.shape[2]), self.metric.target)
        return self._at(table, target, 0, self._effects(0))[:, 0, middle]

    def policy(self, worth: NDArray[np.float32]) -> PlannerPolicy:
        iterations = self.layout.iterations
        arrays = {
            "worth": worth,
            "pauses": self.pauses,
            "left_low": self.low,
            "left_high": self.high,
            "effect_half": self.half[:iterations],
        }
        return PlannerPolicy({"algorithm": "planner", "slope": self.slope}, arrays)


# The best sequence of actions for one episode with known noise: an upper bound for any policy.
#
# With everything known, a run is a shortest path over iteration × allocation. A target on a run's sum couples the
# iterations; its miss is the largest of λ · (sum − target) over an interval of λ, so the Lagrangian dual is a shortest
# path for each λ. The sum falls with λ, and bisection finds the λ at which it meets the target (Handler and Zang 1980).
# A label-setting pass (Joksch 1966) then finds a path: for every allocation and each of many bins of the sum so far it
# keeps the label with the least lower bound by that λ. Its gap to the dual bound is the stated error.


HindsightArray = NDArray[Any]
BISECTIONS = 24
LARGEST = 20_000_000  # pairs of iteration, allocation and action
LABELS = 100_000  # labels kept at every iteration
FACTORS = (0.25, 0.5)  # of λ, for further guides of the label-setting pass
BINS = 1000  # bins of the sum


@dataclass(frozen=True)
class Replay:
    """A policy that plays one sequence of actions whatever it observes; an illegal one is replaced by no change.

    Attributes:
        name: the policy's name in reports.
        actions: number of the action before each iteration after the first, [K − 1].
    """

    name: str
    actions: NDArray[np.intp]

    @property
    def encoder(self) -> Encoder:
        """An encoder whose keys are the runs' iterations alone, [B, 1]."""
        return Encoder("iteration", lambda situation: situation.state.iteration[:, None])

    def act(self, situation: Situation) -> Choice:
        """Choose the sequence's action for the iteration of each of B runs, [B]; no change where that is illegal."""
        place = np.clip(situation.state.iteration - 1, 0, len(self.actions) - 1)
        action = self.actions[place]
        legal = situation.view.mask[np.arange(len(action)), action]
        return Choice(np.where(legal, action, situation.projector.layout.noop))


class Hindsight(NamedTuple):
    """The best sequence of actions found for one episode.

    Attributes:
        policy: a policy that plays the sequence.
        expected: its return (unscaled).
        error: upper bound of the best return less ``expected``, at least 0.
    """

    policy: Replay
    expected: float
    error: float


def hindsight(world: IterativeWorld) -> Hindsight:
    """Search for the best actions in the single episode of an undisturbed ``world``, whose noise is known.

    Raises:
        ValueError: several metrics have a target on their sum over the run, or iterations times allocations times
            actions exceed 20 million.
    """
    _check_size(world.layout)
    path = _Path(world)
    relaxed = _tightest(path)
    guides = [relaxed, *(path.solve(relaxed.multiplier * factor) for factor in FACTORS if relaxed.multiplier)]
    least = min((path.search(guide) for guide in guides), key=lambda result: result.cost)
    return Hindsight(Replay("optimum", least.actions), -least.cost, max(least.cost - relaxed.bound, 0.0))


def hindsight_bound(world: IterativeWorld) -> float:
    """Return an upper bound of the return in the single episode of an undisturbed ``world``, whose noise is known.

    The bound is the value of the Lagrangian dual, which takes far less time than the search of ``hindsight``.

    Raises:
        ValueError: several metrics have a target on their sum over the run, or iterations times allocations times
            actions exceed 20 million.
    """
    _check_size(world.layout)
    return -_tightest(_Path(world)).bound


def _check_size(layout: Layout) -> None:
    size = layout.iterations * len(layout.allocations) * len(layout.deltas)
    if size > LARGEST:
        raise ValueError(f"{size:.1e} moves between allocations over the run, more than {LARGEST:.0e}")


def _tightest(path: _Path) -> _RelaxedPaths:
    """Return the relaxation with the largest lower bound of the cost among the multipliers λ of a bisection."""
    low, high = path.multipliers
    below, above = path.solve(low), path.solve(high)
    tightest = max(below, above, key=lambda relaxed: relaxed.bound)
    for _ in range(BISECTIONS if below.excess > 0 > above.excess else 0):
        middle = path.solve((low + high) / 2)
        tightest = max(tightest, middle, key=lambda relaxed: relaxed.bound)
        low, high = (middle.multiplier, high) if middle.excess > 0 else (low, middle.multiplier)
    return tightest


class _RelaxedPaths(NamedTuple):
    """Shortest paths at one Lagrange multiplier λ.

    Attributes:
        multiplier: λ, in return per unit of the sum.
        bound: lower bound of any path's cost.
        excess: sum of the shortest path less the target, in the metric's unit.
        ahead: least cost from the decision on iteration k at each of A allocations, [K + 1, A].
    """

    multiplier: float
    bound: float
    excess: float
    ahead: HindsightArray


class _ActionPath(NamedTuple):
    """A path through K iterations: numbers of its actions [K − 1], and its cost, the negative of its return."""

    actions: NDArray[np.intp]
    cost: float


class _Labels(NamedTuple):
    """The best L partial paths, [L] each.

    Attributes:
        here: index of the present allocation.
        cost: cost so far, without the target on the sum.
        total: sum so far of the metric whose sum has a target, in its unit.
        action: number of the last action.
        parent: index of the previous iteration's label that the path continues.
    """

    here: NDArray[np.intp]
    cost: HindsightArray
    total: HindsightArray
    action: NDArray[np.intp]
    parent: NDArray[np.intp]


class _Path:
    """Arrays of the shortest path through the single episode of a world: K iterations, A allocations, N actions, P
    different pauses.

    Raises:
        ValueError: several metrics have a target on their sum over the run.
    """

    def __init__(self, world: IterativeWorld) -> None:
        self.layout, self.projector = world.layout, world.projector
        world.reset()
        truth = world.truth
        self.followed = truth.projectors[int(truth.model[0])]
        start, factors = world.state, [world.log_factors[0]]
        for _ in range(world.steps):
            world.step(np.full(world.batch, self.layout.noop))
            factors.append(world.log_factors[0])
        self.start = State(*(field[:1] for field in start))
        courses = [world.features(np.full(world.batch, k))[:1] for k in range(self.layout.iterations)]
        self._measured(np.array(factors, np.float64), courses)
        run_scoped = [
            i for i, m in enumerate(self.layout.spec.metrics) if m.target is not None and m.scope == "run" and m.weight
        ]
        if len(run_scoped) > 1:
            raise ValueError("more than one target on a run's sum")
        self.summed = run_scoped[0] if run_scoped else None
        self._moves()
        self._stages()

    def _measured(self, factors: HindsightArray, features: list[HindsightArray]) -> None:
        """Set ``measured``: each metric of every iteration at every allocation, without pauses, [K, A, M].

        ``factors`` [K, M] are the natural logs of measured over modelled metrics; ``features`` are K arrays [1, F].
        """
        layout, followed = self.layout, self.followed
        every = np.arange(len(layout.allocations))
        points = [followed.point(np.tile(feature, (len(every), 1))) for feature in features]
        logs = [followed.log_mean(every, point, np.full(len(every), k)) for k, point in enumerate(points)]
        self.measured = np.exp(np.array(logs, np.float64) + factors[:, None])

    def _moves(self) -> None:
        """Set, for each action at each allocation, whether it is legal and the index of the allocation it leads to
        (``legal``, ``goal``, [N, A]); the different pauses in seconds [P], each action's pause and cost of change [N].
        """
        layout, projector = self.layout, self.projector
        levels = projector.grid_levels
        goals = levels[None] + layout.deltas[:, None]  # [N, A, R]
        self.legal = ((goals >= 0) & (goals <= layout.tops)).all(axis=2)
        self.goal = np.where(self.legal, layout.index(np.clip(goals, 0, layout.tops)), 0)
        pauses = ((layout.deltas != 0) @ self.followed.change_seconds).astype(np.float64)
        self.pauses, self.pause_of = np.unique(pauses, return_inverse=True)
        share = np.abs(layout.deltas).sum(axis=1) / (layout.largest_action * layout.iterations)
        self.moving = float(self.start.weights[0, 2]) * share

    def _stages(self) -> None:
        """Set each iteration's cost (``stage``) and part of the metric's sum (``sum``), by pause and allocation,
        [P, K, A]."""
        layout, projector, state = self.layout, self.projector, self.start
        sla, cost = float(state.weights[0, 0]), float(state.weights[0, 1])
        money = projector.units(projector.grid_levels) @ state.prices[0].astype(np.float64) / 3600  # [A] per second
        seconds = self.measured[None, :, :, layout.seconds] + self.pauses[:, None, None]
        self.stage = cost * money * seconds / float(reference_cost(projector, state)[0])
        for i, metric in enumerate(layout.spec.metrics):
            if metric.target is not None and metric.scope == "iteration":
                measured = seconds if i == layout.seconds else self.measured[None, :, :, i]
                ratio = measured / float(state.targets[0, i])
                self.stage = self.stage + sla * metric.weight * miss(metric.goal, ratio) / layout.iterations
        self.sum = np.zeros_like(seconds)
        if self.summed is not None:
            plain = np.broadcast_to(self.measured[None, :, :, self.summed], seconds.shape)
            self.sum = seconds if self.summed == layout.seconds else plain

    @property
    def multipliers(self) -> tuple[float, float]:
        """Bounds (low, high) of the Lagrange multiplier λ, return per unit of the sum; 0 without a target on a sum."""
        if self.summed is None:
            return 0.0, 0.0
        metric = self.layout.spec.metrics[self.summed]
        most = float(self.start.weights[0, 0]) * metric.weight / float(self.start.targets[0, self.summed])
        return (0.0 if metric.goal == "at_most" else -most), (0.0 if metric.goal == "at_least" else most)

    @property
    def first(self) -> int:
        return int(self.layout.index(self.start.levels)[0])

    @property
    def target(self) -> float:
        return 0.0 if self.summed is None else float(self.start.targets[0, self.summed])

    def solve(self, multiplier: float) -> _RelaxedPaths:
        """Compute the shortest paths when each unit of the sum costs ``multiplier`` in return."""
        staged = self.stage + multiplier * self.sum
        ahead = np.zeros((self.layout.iterations + 1, self.measured.shape[1]))
        value, total = np.zeros((2, ahead.shape[1]))
        for k in range(self.layout.iterations - 1, 0, -1):
            worth = (staged[:, k] + value)[self.pause_of[:, None], self.goal] + self.moving[:, None]
            worth = np.where(self.legal, worth, np.inf)
            best = worth.argmin(axis=0)
            goal, every = self.goal[best, np.arange(len(best))], np.arange(len(best))
            value = ahead[k] = worth[best, every]
            total = self.sum[self.pause_of[best], k, goal] + total[goal]
        bound = float(staged[0, 0, self.first] + value[self.first]) - multiplier * self.target
        excess = float(self.sum[0, 0, self.first] + total[self.first]) - self.target
        return _RelaxedPaths(multiplier, bound, excess, ahead)

    def search(self, relaxed: _RelaxedPaths) -> _ActionPath:
        """Find the best path by a label-setting pass (Joksch 1966) whose lower bounds come from ``relaxed``."""
        start = np.array([self.first])
        nowhere = np.zeros(1, np.intp)
        labels = _Labels(start, self.stage[0, 0, start], self.sum[0, 0, start], nowhere, nowhere)
        history = []
        for k in range(1, self.layout.iterations):
            labels = self._extend_labels(k, labels, relaxed)
            history.append(labels)
        low, high = self.multipliers
        excess = labels.total - self.target
        cost = labels.cost + np.maximum(low * excess, high * excess)
        best = place = int(cost.argmin())
        actions = []
        for step in reversed(history):
            actions.append(int(step.action[place]))
            place = int(step.parent[place])
        return _ActionPath(np.array(actions[::-1], np.intp), float(cost[best]))

    def _extend_labels(self, k: int, labels: _Labels, relaxed: _RelaxedPaths) -> _Labels:
        """Return the labels after iteration ``k``: for each allocation and bin of the sum, the extension of ``labels``
        with the least lower bound; at most ``LABELS`` in all."""
        action, parent = np.nonzero(self.legal.take(labels.here, axis=1))
        here, pause = self.goal[action, labels.here[parent]], self.pause_of[action]
        cost = labels.cost[parent] + self.stage[pause, k, here] + self.moving[action]
        total = labels.total[parent] + self.sum[pause, k, here]
        low, span = total.min(), max(np.ptp(total), 1e-12)
        place = here * BINS + np.minimum(((total - low) / span * BINS).astype(np.intp), BINS - 1)
        least = cost + relaxed.multiplier * total + relaxed.ahead[k + 1, here]
        order = np.lexsort((least, place))
        best = order[np.diff(place[order], prepend=-1) > 0]
        most = LABELS // len(self.goal)
        if len(best) > most:
            best = best[np.argpartition(least[best], most)[:most]]
        return _Labels(here[best], cost[best], total[best], action[best], parent[best])

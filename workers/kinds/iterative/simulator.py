"""The simulator of an ``iterative`` workload for learners: hidden variables, transitions and shaped rewards.

Letters in shapes: B runs side by side, R resources, M metrics, F features, N actions, D observation entries. Levels
count steps above a resource's minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import first_allocation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import Preferences, View, potential, preferences_of, reward, terms, view
from app.kinds.iterative.projection import course_places
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Disturbances, Spec
from app.kinds.iterative.state import State, advance, begin, expect, member_weights, pack, unpack
from app.policies.base import RETURN_SCALE
from workers.learning.simulator import SimulatorSpec, Step

Array = NDArray[Any]


class Courses:
    """Courses of features over the iterations of past executions; other features keep their initial value.

    Attributes:
        count: number of courses; 0 where no feature changes within a run.
    """

    def __init__(self, table: ModelTable) -> None:
        self.count = 0 if table.courses is None else len(table.courses)
        self._courses = table.courses
        resolution = 1 if table.courses is None else table.courses.shape[1]
        self._place = course_places(len(table.iteration_bin), resolution)

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.intp]:
        """Draw the index (from 0) of a course for each of ``count`` runs, [count]; zeros where there are no courses."""
        if self._courses is None:
            return np.zeros(count, np.intp)
        return random.integers(0, self.count, count)

    def at(self, course: NDArray[np.intp], iteration: NDArray[np.integer], features: Array) -> Array:
        """Return the features [B, F] of B runs, each on its ``course`` [B] (an index) in its ``iteration`` [B];
        features without a course are copied from ``features`` [B, F], those of any iteration of the same run."""
        if self._courses is None:
            return features
        there = self._courses[course, self._place[np.minimum(iteration, len(self._place) - 1)]]
        return np.where(np.isnan(there), features, there).astype(features.dtype, copy=False)


Indices = NDArray[np.integer]


class Truth(NamedTuple):
    """Hidden variables of B simulated runs, which no policy may read.

    Attributes:
        effect: run effect on the natural log of each metric, [B, M].
        member: index of the domain model's member (alternative model) that the run follows, [B].
        course: index of the course of its features (``Courses``), [B].
        lost: iteration from which capacity is reduced, [B]; the number of iterations: never.
        left: share of each resource's range above its minimum that remains then, in 0…1, [B].
        shifted: iteration from which all metrics change by a factor, [B]; the number of iterations: never.
        shift: natural log of that factor, [B].
    """

    effect: Array
    member: Array
    course: Array
    lost: Array
    left: Array
    shifted: Array
    shift: Array

    def at(self, iteration: Indices) -> Truth:
        """Return the hidden variables as ``iteration`` [B] begins: ``shift`` is added to the effect of runs that shift
        in it."""
        now = (iteration == self.shifted) * self.shift
        return self._replace(effect=self.effect + now[:, None].astype(self.effect.dtype))

    def within(self, layout: Layout, levels: Indices, iteration: Indices) -> NDArray[np.int16]:
        """Limit ``levels`` [B, R] (steps above each minimum) to the capacity that remains in ``iteration`` [B]."""
        share = np.where(iteration >= self.lost, self.left, 1.0)
        most = np.floor(layout.tops * share[:, None] + 1e-9)
        return np.minimum(levels, most).astype(np.int16)


def undisturbed_truth(layout: Layout, effect: Array, member: NDArray[np.intp], course: NDArray[np.intp]) -> Truth:
    """Make the hidden variables of B runs without lost capacity and without a shift of pace.

    Args:
        layout: the workload's layout.
        effect: run effect on the natural log of each of M metrics, [B, M].
        member: index of the domain model's member (alternative model) that each run follows, [B].
        course: index of each run's course of features, [B].
    """
    never, ones = np.full(len(effect), layout.iterations), np.ones(len(effect), np.float32)
    return Truth(effect, member, course, never, ones, never, ones * 0)


def draw_disturbances(layout: Layout, truth: Truth, begun: Indices, random: np.random.Generator) -> Truth:
    """Return ``truth`` with the spec's disturbances (lost capacity, shift of pace) drawn anew for each of B runs.

    ``begun`` [B] is the first simulated iteration of each run. A shift drawn at or before it never happens, because
    the effect of a run that begins in its middle already includes it.
    """
    wanted, count = layout.spec.disturbances, len(begun)
    if wanted.lost_capacity is not None:
        lost = random.integers(1, layout.iterations + 1, count)
        happens = random.random(count) < wanted.lost_capacity.probability
        left = random.uniform(*wanted.lost_capacity.left, count).astype(np.float32)
        truth = truth._replace(lost=np.where(happens, lost, layout.iterations), left=left)
    if wanted.pace_shift is not None:
        shifted = random.integers(1, layout.iterations + 1, count)
        happens = (random.random(count) < wanted.pace_shift.probability) & (shifted > begun)
        low, high = map(math.log, wanted.pace_shift.factor)
        shift = random.uniform(low, high, count).astype(np.float32)
        truth = truth._replace(shifted=np.where(happens, shifted, layout.iterations), shift=shift)
    return truth


SimulatorArray = NDArray[np.float32]


class Ranges(NamedTuple):
    """Ranges from which the parameters of episodes are drawn.

    Attributes:
        targets: lowest and highest ratio of an episode's targets to the spec's; the ratio is drawn log-uniformly.
        explore: share of episodes, in 0…1, that begin at a random iteration, allocation and elapsed time.
    """

    targets: tuple[float, float] = (1.0, 1.0)
    explore: float = 0.0


def describe_simulator(
    spec: Spec, table: ModelTable, batch: int, seed: int, ranges: Ranges = Ranges(), *, expected: bool = False
) -> SimulatorSpec:
    """Describe a simulator as data from which any process can make it.

    Args:
        spec, table: the workload's spec and its domain model.
        batch: number of runs side by side.
        seed: seed of all draws.
        ranges: ranges of the episodes' parameters.
        expected: whether to make an ``ExpectedSimulator`` (rewards averaged over noise) or an ``IterativeSimulator``.
    """
    options = {"targets": list(ranges.targets), "explore": ranges.explore, "expected": expected}
    return SimulatorSpec("iterative", spec.model_dump_json().encode(), table.to_bytes(), batch, seed, options)


def parse_options(options: Mapping[str, Any]) -> tuple[bool, Ranges]:
    """Parse the options of ``describe_simulator``: (whether rewards are averaged over noise, ranges of episodes).

    Raises:
        TypeError: an option is neither ``expected`` nor a field of ``Ranges``.
    """
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }
    return bool(values.pop("expected", False)), Ranges(**values)


KNOWN = 1e-6  # variance of a run effect that is known
STOCK = 4096  # new runs that are drawn at once
VARIETY = 64  # distinct targets and features among them, since the first allocation of each is searched for
TRAINING = Ranges(targets=(0.6, 1.6), explore=0.5)


@dataclass
class _Episodes:
    state: State
    truth: Truth
    preferences: Preferences
    view: View
    potential: SimulatorArray  # [B]


class IterativeSimulator:
    """B runs of one workload under its domain model; a run that ends is replaced by a new one.

    An episode begins after the first iteration, at the first allocation.

    Args:
        layout, table: the workload's layout and its domain model.
        batch: number of runs B.
        seed: seed of all draws.
        ranges: ranges of the episodes' parameters.
        shaped: whether rewards, which are multiplied by ``RETURN_SCALE``, contain differences of ``potential``.
        count: function of projector and the states before and after a step, called at each step; None: none.

    Attributes:
        terms: unshaped, unscaled terms of the last step's reward (target, cost, change), [B, 3].
        outcome_increments: result of ``count`` at the last step; None without ``count`` or before the first step.
    """

    advice: slice | None = None

    def __init__(
        self,
        layout: Layout,
        table: ModelTable,
        batch: int,
        seed: int,
        ranges: Ranges = Ranges(),
        *,
        shaped: bool = True,
        count: Callable[[Projector, State, State], Any] | None = None,
    ) -> None:
        self.layout, self.batch, self.ranges, self.shaped, self.count = layout, batch, ranges, shaped, count
        self.observation_space, self.action_space = layout.observation_space, layout.action_space
        self.projector, self.courses = Projector(layout, table, np.float32), Courses(table)
        self.disturbed = layout.spec.disturbances != Disturbances()
        self.random = np.random.Generator(np.random.SFC64(seed))
        self.terms = np.zeros((batch, 3), np.float32)
        self.outcome_increments: Any = None
        self._episodes: _Episodes | None = None
        self._stock = self._open(0)

    @property
    def state(self) -> State:
        """The observable state of the B runs. Raises RuntimeError before the first ``reset``."""
        return self._current().state

    @property
    def view(self) -> View:
        """The observation of policies [B, D], the mask of legal actions [B, N], and the outlook (expected return) of
        each action [B, N]. Raises RuntimeError before ``reset``."""
        return self._current().view

    @property
    def situation(self) -> Situation:
        """What the service gives to a policy: domain model, state and view. Raises RuntimeError before ``reset``."""
        return Situation(self.projector, self.state, self.view)

    @property
    def informed_situation(self) -> Situation:
        """The situation of a policy that knows the ensemble member and run effect that each run follows, but neither
        noise nor later changes. Raises RuntimeError before ``reset``."""
        episodes, projector = self._current(), self.projector
        state, effect = episodes.state, episodes.truth.effect
        state = state._replace(effect=effect, variance=np.full_like(effect, KNOWN), trend=np.zeros_like(effect))
        if projector.members > 1:
            unlikely = np.full_like(state.log_weights, -np.inf)
            unlikely[np.arange(len(effect)), episodes.truth.member] = 0
            state = state._replace(log_weights=unlikely, effects=np.tile(effect, projector.members))
        return Situation(projector, state, view(projector, state, episodes.preferences))

    def reset(self) -> tuple[SimulatorArray, NDArray[np.bool_]]:
        """Begin B runs and simulate their first iteration; return observation [B, D] and legal actions [B, N]."""
        self._episodes = self._open(self.batch)
        return self._episodes.view.observation, self._episodes.view.mask

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Change allocations by ``actions`` [B] (numbers), simulate one iteration, and replace the runs that end by new
        ones. Rewards in the result are shaped and scaled, [B].

        Raises:
            RuntimeError: before the first ``reset``.
        """
        episodes, projector = self._current(), self.projector
        before, preferences, truth = episodes.state, episodes.preferences, episodes.truth
        levels = self.resulting_levels(actions)
        if projector.drift_sd.any():
            truth = truth._replace(effect=truth.effect + self._normal(truth.effect.shape) * projector.drift_sd)
        if self.disturbed:
            truth = truth.at(before.iteration)
        after = self._run(before, levels, truth)
        observation = view(projector, after, preferences)
        done = after.iteration >= self.layout.iterations
        self.terms = terms(projector, before, after, preferences)
        if self.count is not None:
            self.outcome_increments = self.count(projector, before, after)
        paid = reward(before.weights, self.terms)
        reached = potential(observation)
        if self.shaped:
            paid -= episodes.potential
            paid += reached * ~done
        paid *= RETURN_SCALE
        self._episodes = _Episodes(after, truth, preferences, observation, reached)
        if done.any():
            self._renew(done)
        now = self.view
        return Step(now.observation, now.mask, paid, done, observation.observation)

    def resulting_levels(self, actions: NDArray[np.integer]) -> NDArray[np.int16]:
        """Return the levels [B, R] that ``actions`` [B] lead to, within the remaining capacity; changes nothing.

        Raises:
            RuntimeError: before the first ``reset``.
        """
        before, truth = self.state, self._current().truth
        levels = step(self.layout, before.levels, actions)
        return truth.within(self.layout, levels, before.iteration) if self.disturbed else levels

    def get_state(self) -> dict[str, Any]:
        """Return runs, hidden variables, stock of drawn runs and random generator as a dict of arrays by name.

        Raises:
            RuntimeError: before the first ``reset``.
        """
        state: dict[str, Any] = {"random": self.random.bit_generator.state}
        for name, episodes in (("", self._current()), ("stock_", self._stock)):
            state |= {f"{name}rows": pack(episodes.state)}
            state |= {f"{name}{part}": values for part, values in episodes.truth._asdict().items()}
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the result of ``get_state``; later steps are bit-identical. Raises KeyError for a missing entry."""
        self.random.bit_generator.state = state["random"]
        self._episodes = self._restore_episodes(state, "")
        self._stock = self._restore_episodes(state, "stock_")

    def _restore_episodes(self, state: dict[str, Any], name: str) -> _Episodes:
        truth = Truth(*(state[f"{name}{part}"] for part in Truth._fields))
        return self._observe(unpack_states(self.layout, state[f"{name}rows"]), truth)

    def _current(self) -> _Episodes:
        if self._episodes is None:
            raise RuntimeError("reset() comes before the first step")
        return self._episodes

    def _normal(self, shape: tuple[int, ...]) -> SimulatorArray:
        return self.random.standard_normal(shape, np.float32)

    def _run(self, before: State, levels: NDArray[np.integer], truth: Truth) -> State:
        features = self.courses.at(truth.course, before.iteration, before.features)
        noise = self._normal(truth.effect.shape)
        return ran(self.projector, before, levels, features, truth.effect, truth.member, noise)

    def _open(self, count: int) -> _Episodes:
        return self._observe(*self.begin(count))

    def _observe(self, state: State, truth: Truth) -> _Episodes:
        preferences = preferences_of(self.projector, state)
        observation = view(self.projector, state, preferences)
        return _Episodes(state, truth, preferences, observation, potential(observation))

    def begin(self, count: int) -> tuple[State, Truth]:
        """Draw ``count`` runs and simulate their first iteration; return their states and hidden variables."""
        projector = self.projector
        state = self._initial_states(min(count, VARIETY))
        state = state._replace(levels=first_allocation(projector, state))
        which = np.arange(count) % max(len(state.iteration), 1)
        state = State(*(field[which] for field in state))
        effect = self._normal(state.effect.shape) * np.sqrt(projector.effect_variance)
        if self.ranges.explore:
            state, effect = self._anywhere(state, effect)
        truth = undisturbed_truth(self.layout, effect, self._members(count), self.courses.draw(self.random, count))
        if self.disturbed:
            truth = draw_disturbances(self.layout, truth, state.iteration, self.random)
            state = state._replace(levels=truth.within(self.layout, state.levels, state.iteration))
        return self._run(state, state.levels, truth), truth

    def _members(self, count: int) -> NDArray[np.intp]:
        if self.projector.members == 1:
            return np.zeros(count, np.intp)
        return self.random.integers(0, self.projector.members, count)

    def _initial_states(self, count: int) -> State:
        """Draw targets and features of ``count`` runs, and return their states before the first iteration."""
        low, high = np.log(self.ranges.targets)
        ratio = np.exp(self.random.uniform(low, high, (count, 1)))
        start = np.tile(self.layout.start_levels, (count, 1))
        return begin(self.projector, start, targets=self.layout.targets * ratio, features=self._features(count))

    def _features(self, count: int) -> SimulatorArray:
        table = self.projector.table
        drawn = self.random.uniform(table.feature_low, table.feature_high, (count, len(table.feature_low)))
        return drawn.astype(np.float32)

    def _anywhere(self, state: State, effect: SimulatorArray) -> tuple[State, SimulatorArray]:
        """Move a share ``ranges.explore`` of the runs to a random iteration and allocation; return states and effects.

        ``effect`` [B, M]: true run effects on the natural log of each metric, drawn anew for the moved runs.

        The posterior mean after k reports is drawn from its marginal distribution, and the true effect from the
        posterior, so the policy's belief about such a run is calibrated. Its time left is about that of the rest of the
        run at some constant allocation.
        """
        projector, layout, count = self.projector, self.layout, len(effect)
        chosen = self.random.random(count) < self.ranges.explore
        k = self.random.integers(0, max(layout.iterations - 1, 1), count).astype(np.int32)
        variance = _posterior_variances(projector)[k]
        total = projector.effect_variance + projector.drift_variance * k[:, None].astype(np.float32)
        mean = self._normal(effect.shape) * np.sqrt(np.maximum(total - variance, 0))
        levels = np.stack([self.random.integers(0, n, count) for n in layout.levels], axis=1).astype(np.int16)
        effects = np.tile(mean, (1, self.projector.members)) if self.projector.members > 1 else state.effects
        there = state._replace(iteration=k, levels=levels, effect=mean, variance=variance, effects=effects)
        there = there._replace(elapsed=self._draw_elapsed(there))
        pick = {
            name: old if new is old else np.where(chosen if old.ndim == 1 else chosen[:, None], new, old)
            for name, old, new in zip(State._fields, state, there, strict=True)
        }
        drawn = mean + self._normal(effect.shape) * np.sqrt(variance)
        return State(**pick), np.where(chosen[:, None], drawn, effect)

    def _draw_elapsed(self, state: State) -> SimulatorArray:
        """Draw the sums of each metric so far, [B, M], in the metric's unit: the target less 0.8 to 1.2 times the rest
        of the run at one random constant allocation, and at least 5 % of the target in proportion to progress."""
        projector, layout, count = self.projector, self.layout, len(state.iteration)
        other = self.random.integers(0, len(layout.allocations), (1, count))
        ahead, point = projector.ahead, projector.ahead.point(state.features)
        elapsed = np.zeros_like(state.elapsed)
        progress = state.iteration.astype(np.float32) / layout.iterations
        for i in range(elapsed.shape[1]):
            rest = ahead.remaining(i, other, point, state.iteration)[0] * np.exp(state.effect[:, i])
            slack = self.random.uniform(0.8, 1.2, count).astype(np.float32)
            gone = ahead.remaining(i, other, point, np.zeros_like(state.iteration))[0] - rest
            target = np.where(np.isnan(state.targets[:, i]), rest + gone, state.targets[:, i])
            elapsed[:, i] = np.maximum(target - rest * slack, 0.05 * target * progress)
        return elapsed

    def _renew(self, done: NDArray[np.bool_]) -> None:
        """Replace the runs marked in the mask ``done`` [B] by new ones; other runs keep their state."""
        rows, episodes = np.flatnonzero(done), self._current()
        fresh = self._draw(len(rows))
        # Copy the last observation and effect, which callers may still hold; other arrays belong to this step alone.
        view = episodes.view._replace(observation=episodes.view.observation.copy(order="K"))
        own = Truth(*(part.copy() for part in episodes.truth))
        self._episodes = replace(episodes, truth=own, view=view)
        for old, new in zip(_arrays(self._episodes), _arrays(fresh), strict=True):
            old[..., rows] = new

    def _draw(self, count: int) -> _Episodes:
        """Take ``count`` new runs from a stock drawn in bulk, as drawing one takes as long as drawing a thousand."""
        if len(self._stock.potential) < count:
            self._stock = self._open(max(count, min(self.batch, STOCK)))
        taken = _rows(self._stock, slice(count))
        self._stock = _rows(self._stock, slice(count, None))
        return taken


def unpack_states(layout: Layout, rows: NDArray[np.float64]) -> State:
    """Unpack states from ``rows`` [B, …] made by ``pack``; floats become float32, in which simulators compute."""
    return State(*(f if f.dtype.kind == "i" else f.astype(np.float32) for f in unpack(layout, rows)))


def ran(
    projector: Projector,
    before: State,
    levels: NDArray[np.integer],
    features: SimulatorArray,
    effect: SimulatorArray,
    member: NDArray[np.intp],
    noise: SimulatorArray,
) -> State:
    """Simulate one iteration of B runs and return their states after it.

    Args:
        projector: the domain model that runs follow, which is also the one that policies assume.
        before: states before the iteration.
        levels: allocation in steps above each minimum, [B, R].
        features: features in this iteration, [B, F].
        effect: true run effect on the natural log of each metric, [B, M].
        member: index of the domain model's member (alternative model) that each run follows, [B].
        noise: standard normal draws, [B, M]; overwritten.
    """
    expected = expect(projector, before, levels, features)
    noise *= np.sqrt(projector.noise(before.iteration))
    noise += effect
    if projector.members > 1:
        position = projector.layout.index(levels), projector.point(features), before.iteration
        noise += projector.offsets(*position)[np.arange(len(member)), member]
    noise += expected.logs
    measured: SimulatorArray = np.exp(noise, out=noise)
    measured[:, projector.layout.seconds] += expected.pause
    return advance(projector, before, levels, measured, features, expected)


def _arrays(episodes: _Episodes) -> list[NDArray[Any]]:
    by_run: tuple[NDArray[Any], ...] = (*episodes.state, *episodes.truth, *episodes.view)
    return [*(field.T for field in by_run), *episodes.preferences, episodes.potential]


def _rows(episodes: _Episodes, rows: slice) -> _Episodes:
    return _Episodes(
        State(*(field[rows] for field in episodes.state)),
        Truth(*(part[rows] for part in episodes.truth)),
        Preferences(*(field[..., rows] for field in episodes.preferences)),
        View(*(field[rows] for field in episodes.view)),
        episodes.potential[rows],
    )


def _posterior_variances(projector: Projector) -> SimulatorArray:
    """Return the posterior variance of the (natural) log run effect on M metrics after 0, 1, … iterations,
    [iterations, M]."""
    variance, noise = projector.effect_variance.copy(), projector.noise_variance
    out = []
    for _ in range(projector.layout.iterations):
        out.append(variance)
        prior = variance + projector.drift_variance
        variance = prior * noise / (prior + noise)
    return np.array(out, np.float32)


class ExpectedSimulator(IterativeSimulator):
    """An ``IterativeSimulator`` whose rewards and potentials are averaged over the possible measurements of each step.

    The natural log of a measurement is normal about its posterior mean, so the average is a Gauss–Hermite sum over
    ``nodes`` outcomes, all metrics moving together. Rewards keep their expectation given the observation, with much
    less noise (Rao–Blackwell). The next state is one drawn outcome. From an iteration in which the pace shifts on, the
    posterior is wrong, and the run gets the reward of the drawn outcome.
    """

    def __init__(
        self, layout: Layout, table: ModelTable, batch: int, seed: int, ranges: Ranges = Ranges(), *, nodes: int = 3
    ) -> None:
        super().__init__(layout, table, batch, seed, ranges)
        self.outcomes = outcomes(nodes)

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Change allocations by ``actions`` [B] and simulate one iteration; rewards [B] are averaged over noise.

        Raises:
            RuntimeError: before the first ``reset``.
        """
        episodes = self._current()
        truth, iteration = episodes.truth, episodes.state.iteration
        features = self.courses.at(truth.course, iteration, episodes.state.features)
        levels = self.resulting_levels(actions)
        expected = expectation(self.projector, episodes.state, levels, features, episodes.preferences, self.outcomes)
        expected -= episodes.potential
        expected *= RETURN_SCALE
        drawn = super().step(actions)
        return drawn._replace(reward=np.where(iteration >= truth.shifted, drawn.reward, expected))


class Outcomes(NamedTuple):
    """A quadrature of the standard normal distribution.

    Attributes:
        places: nodes in standard deviations from the mean, [nodes].
        weights: weights of the nodes, which sum to 1, [nodes].
    """

    places: NDArray[np.float32]
    weights: NDArray[np.float32]


def outcomes(nodes: int) -> Outcomes:
    """Compute Gauss–Hermite nodes and weights of the standard normal distribution, float32 [nodes] each.

    Raises:
        ValueError: ``nodes`` is less than 1.
    """
    places, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return Outcomes(places.astype(np.float32), (weights / weights.sum()).astype(np.float32))


def expectation(
    projector: Projector,
    before: State,
    levels: NDArray[np.integer],
    features: NDArray[np.float32],
    preferences: Preferences,
    outcomes: Outcomes,
) -> NDArray[np.float32]:
    """Return the expectation [B] of reward plus potential (0 at a run's end), unscaled, over an iteration's noise.

    Args:
        projector: the domain model.
        before: states of B runs before the iteration.
        levels: allocation of the iteration in steps above each minimum, [B, R].
        features: features in the iteration, [B, F].
        preferences: the runs' preferences (targets, weights, prices).
        outcomes: quadrature over the noise.
    """
    known = expect(projector, before, levels, features)
    spread = np.sqrt(before.variance + projector.drift_variance + projector.noise(before.iteration))
    logs = known.logs + before.effect
    if projector.members > 1:
        position = projector.layout.index(levels), projector.point(features), before.iteration
        logs = logs + np.einsum("bkm,bk->bm", projector.offsets(*position), member_weights(before))
    ending = before.iteration + 1 >= projector.layout.iterations
    total = np.zeros_like(before.cost)
    for place, weight in zip(*outcomes, strict=True):
        measured = np.exp(logs + place * spread)
        measured[:, projector.layout.seconds] += known.pause
        after = advance(projector, before, levels, measured, features, known)
        total += weight * reward(before.weights, terms(projector, before, after, preferences))
        total += weight * np.where(ending, 0, potential(view(projector, after, preferences)))
    return total

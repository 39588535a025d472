"""Tuning of how the rule's numbers depend on the disturbances that a spec declares.

Letters in shapes: P points of numbers, E episodes, B = P · E runs, M metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.iterative.declared import NEUTRAL, NUMBERS, USUAL, numbers
from app.kinds.iterative.heuristics import TunedNumbers, adjusted, first_allocation, model_predictive
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import View, preferences_of, reward, terms
from app.kinds.iterative.policies import unconvincing
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance, begin, expect
from workers.evaluation.headroom import Found, Search, cross_entropy
from workers.kinds.iterative.generator import Generated, generate
from workers.kinds.iterative.simulator import Truth, draw_disturbances, undisturbed_truth

Array = NDArray[Any]
Floats = NDArray[np.float64]
WORKLOADS, VALIDATION = 160, 96  # that numbers are tuned on, and chosen on
PART, EPISODES, VALIDATION_EPISODES = 48, 24, 64  # workloads of a generation, and episodes of each workload
POPULATION, GENERATIONS = 32, 32
SPREAD = 0.5  # of weights in the first generation
MOST = 0.1  # gain on a workload that counts, as a share of its return: few that gain much don't decide


class Arena:
    """Plays a workload with many points of numbers on the same episodes, behind the guard.

    The first half of the episodes follows what is true, the second half members of the belief."""

    def __init__(self, given: Generated) -> None:
        self.given, self.layout = given, Layout(given.spec)
        self.believed = Projector(self.layout, given.table, np.float32)
        self.true = Projector(self.layout, given.truth, np.float32)
        self.first = first_allocation(self.believed, begin(self.believed, self.layout.start_levels[None]))

    def play(self, points: Floats, seed: int, episodes: int) -> Floats:
        """Return the returns of ``points`` [P, 5] of ``declared.NUMBERS`` in the episodes of a seed, [P, E]."""
        random, layout, believed = np.random.Generator(np.random.SFC64(seed)), self.layout, self.believed
        count, metrics = len(points), len(layout.metrics)

        def normal() -> Array:
            return np.tile(random.standard_normal((episodes, metrics), np.float32), (count, 1))

        truth, true = self._truth(random, episodes, count), np.tile(np.arange(episodes) < episodes // 2, count)[:, None]
        drift = np.where(true, np.sqrt(self.true.drift_variance), np.sqrt(believed.drift_variance))
        each = np.repeat(points, episodes, axis=0).astype(np.float32)
        chosen, required = TunedNumbers.at(each), np.exp(each[:, 2])
        state = begin(believed, np.tile(self.first, (count * episodes, 1)))
        given, total, wanted = preferences_of(believed, state), np.zeros((count * episodes, 3)), state.levels
        for iteration in range(layout.iterations):
            if iteration:
                truth = truth._replace(effect=truth.effect + normal() * drift).at(state.iteration)
                wanted = step(layout, state.levels, self._act(state, chosen, required))
            levels = truth.within(layout, wanted, state.iteration)
            after = self._ran(state, levels, truth, true, normal())
            total += terms(believed, state, after, given)
            state = after
        return reward(state.weights.astype(np.float64), total).reshape(count, episodes)

    def _truth(self, random: np.random.Generator, episodes: int, count: int) -> Truth:
        """Draw the hidden variables of E episodes, the same for each of P points, of B runs."""
        half = np.arange(episodes)[:, None] < episodes // 2
        deviation = np.sqrt(np.where(half, self.true.effect_variance, self.believed.effect_variance))
        effect = random.standard_normal((episodes, len(self.layout.metrics)), np.float32) * deviation
        members = random.integers(0, self.believed.members, episodes)
        begun = np.zeros(episodes, np.intp)
        drawn = draw_disturbances(self.layout, undisturbed_truth(self.layout, effect, members, begun), begun, random)
        return Truth(*(np.concatenate([part] * count) for part in drawn))

    def _act(self, state: State, chosen: TunedNumbers, required: Array) -> NDArray[np.integer]:
        layout, unseen = self.layout, np.empty((0, 0), np.float32)
        situation = Situation(self.believed, state, View(unseen, layout.legal(state.levels).T, unseen))
        choice = model_predictive(adjusted(situation, chosen))
        assert choice.values is not None  # noqa: S101 - it computes values of all actions
        still = unconvincing(situation, choice.action, np.fmax(choice.values, -np.inf), required)
        return np.where(still, layout.noop, choice.action)

    def _ran(self, state: State, levels: NDArray[np.int16], truth: Truth, true: Array, noise: Array) -> State:
        """Run an iteration of B runs, of which those in ``true`` [B, 1] follow what is true."""
        believed, at = self.believed, self.layout.index(levels)
        expected = expect(believed, state, levels, state.features)
        logs = expected.logs
        if believed.members > 1:
            offsets = believed.offsets(at, believed.point(state.features), state.iteration)
            logs = logs + offsets[np.arange(len(at)), truth.member]
        logs = np.where(true, self.true.log_mean(at, self.true.point(state.features), state.iteration), logs)
        deviation = np.sqrt(np.where(true, self.true.noise(state.iteration), believed.noise(state.iteration)))
        measured = np.exp(logs + truth.effect + noise * deviation).astype(np.float32)
        measured[:, self.layout.seconds] += expected.pause
        return advance(believed, state, levels, measured, state.features, expected)


def relative(arena: Arena, points: Floats, seed: int, episodes: int) -> Floats:
    """Return the mean gains [P] of ``points`` [P, 5] over the numbers without disturbances, as shares of the return."""
    returns = arena.play(np.concatenate([NEUTRAL[None], points]), seed, episodes).mean(axis=1)
    gains: Floats = (returns[1:] - returns[0]) / max(abs(float(returns[0])), 1e-3)
    return gains


def tune(seed: int, generations: int = GENERATIONS) -> Found:
    """Tune the weights [5, 3] of ``declared.numbers`` by the cross-entropy method on generated, disturbed workloads.

    They are chosen on other workloads. The result is the same for the same seed."""
    seeds = np.random.SeedSequence([seed, 5]).generate_state(WORKLOADS + VALIDATION).tolist()
    arenas = [Arena(generate(one, disturbed=True)) for one in seeds]
    random = np.random.default_rng([seed, 6])

    def mean(points: Floats, chosen: Sequence[int], draw: int, episodes: int) -> Floats:
        weights = points.reshape(len(points), *SHAPE)
        gains = [relative(arenas[i], numbers(weights, arenas[i].given.spec), draw + i, episodes) for i in chosen]
        returned: Floats = np.minimum(gains, MOST).mean(axis=0) - 1
        return returned

    def play_all(points: Floats, generation: int) -> Floats:
        chosen = np.random.default_rng([seed, 7, generation]).permutation(WORKLOADS)[:PART]
        return mean(points, chosen.tolist(), 1_000 * (generation + 1), EPISODES)

    def validated(point: Floats) -> float:
        return float(mean(point[None], range(WORKLOADS, len(arenas)), 0, VALIDATION_EPISODES)[0])

    zeros = np.zeros(SHAPE[0] * SHAPE[1])
    search = Search(zeros, zeros, zeros + SPREAD, play_all, validated, generations, population=POPULATION)
    return cross_entropy(search, random)


SHAPE = (len(NUMBERS), len(USUAL))


def fitted(seed: int) -> dict[str, Any]:
    """Tune the weights, and return them with the command that made them, as JSON values."""
    found = tune(seed)
    weights = dict(zip(NUMBERS, found.point.reshape(SHAPE).round(4).tolist(), strict=True))
    made = {"generations": found.generations, "converged": found.converged, "workloads": WORKLOADS + VALIDATION}
    return {"command": f"steward pretrain --seed {seed}", **made, "weights": weights}

"""The simulator for learners: the reward of a step is its expectation over noise."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.observation import Preferences, potential, reward, terms, view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance, expect, member_weights
from app.policies.base import RETURN_SCALE
from workers.kinds.iterative.simulator import IterativeSimulator, Ranges
from workers.learning.simulator import Step

Array = NDArray[np.float32]


class ExpectedSimulator(IterativeSimulator):
    """The same runs, with each step's reward and potential averaged over what might have been measured.

    The measurement's log is normal about the posterior mean, so the average is a Gauss–Hermite sum over `nodes`
    outcomes, all metrics moving together. The transition itself is one drawn outcome, as ever. So rewards have the same
    expectation given what a policy sees, and much less noise (Rao–Blackwell). Where a run's pace has shifted, what is
    believed of it isn't true, and what was drawn is paid.
    """

    def __init__(
        self, layout: Layout, table: ModelTable, batch: int, seed: int, ranges: Ranges = Ranges(), *, nodes: int = 3
    ) -> None:
        super().__init__(layout, table, batch, seed, ranges)
        self.outcomes = outcomes(nodes)

    def step(self, actions: NDArray[np.integer]) -> Step:
        """As ``IterativeSimulator.step``, with the expected reward [B]."""
        episodes = self._current()
        truth, iteration = episodes.truth, episodes.state.iteration
        features = self.courses.at(truth.course, iteration, episodes.state.features)
        levels = self.taken(actions)
        expected = expectation(self.projector, episodes.state, levels, features, episodes.given, self.outcomes)
        expected -= episodes.potential
        expected *= RETURN_SCALE
        drawn = super().step(actions)
        return drawn._replace(reward=np.where(iteration >= truth.shifted, drawn.reward, expected))


class Outcomes(NamedTuple):
    """Where the average is taken: standard deviations from the mean, and weights that sum to 1, [nodes] each."""

    places: Array
    weights: Array


def outcomes(nodes: int) -> Outcomes:
    """Gauss–Hermite nodes of the standard normal distribution."""
    places, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return Outcomes(places.astype(np.float32), (weights / weights.sum()).astype(np.float32))


def expectation(
    projector: Projector,
    before: State,
    levels: NDArray[np.integer],
    features: Array,
    given: Preferences,
    outcomes: Outcomes,
) -> Array:
    """E[reward + potential afterwards], [B], of going from ``before`` to ``levels`` [B, R] under ``features``."""
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
        total += weight * reward(before.weights, terms(projector, before, after, given))
        total += weight * np.where(ending, 0, potential(view(projector, after, given)))
    return total

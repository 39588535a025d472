"""A direct search for a network's parameters on the exact objective: an evolution strategy.

Antithetic pairs (Salimans et al. 2017) are played on the same sequences, so that arrivals cancel out of each
difference; a pair counts by the logarithm of its ratio, which heavy sequences do not drown. The best network on a fixed
set of other sequences is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.agents import Agent
from workers.kinds.workflow.training.sequences import Sequence, loss

MOMENTUM, SECOND, FLOOR = 0.85, 0.97, 0.3
LOOK_EVERY = 10

Build = Callable[[Seconds], Agent]


class Settings(NamedTuple):
    """How to search: pairs and sequences a step, standard deviation and first step length of parameters."""

    pairs: int = 12
    sequences: int = 12
    spread: float = 0.12
    rate: float = 0.08


DEFAULT = Settings()


@dataclass
class Search:
    """A search from ``point`` [P]; ``best`` is what did best on ``validation``.

    Args:
        build: the agent that parameters stand for.
        draw: so many new sequences to learn from.
        validation: sequences to choose on.
        point: where it begins; it competes too.
        rng: of the perturbations.
        settings: how to search.
    """

    build: Build
    draw: Callable[[int], list[Sequence]]
    validation: list[Sequence]
    point: Seconds
    rng: np.random.Generator
    settings: Settings = DEFAULT

    def __post_init__(self) -> None:
        self.first, self.second = np.zeros_like(self.point), np.zeros_like(self.point)
        self.steps, self.best = 0, self.point.copy()
        self.reference = self.measured(self.point)
        self.ratio = 1.0
        self.curve: list[tuple[int, float]] = [(0, 1.0)]

    def measured(self, point: Seconds) -> Seconds:
        """Losses on the sequences to choose on."""
        agent = self.build(point)
        return np.array([loss(sequence, agent) for sequence in self.validation])

    def advance(self, progress: float) -> None:
        """One step, shorter the nearer ``progress`` is to 1."""
        settings = self.settings
        played = self.draw(settings.sequences)
        centre = self.build(self.point)
        weight = importance(played, np.array([loss(sequence, centre) for sequence in played]))
        slope = np.zeros_like(self.point)
        for _ in range(settings.pairs):
            noise = self.rng.normal(size=len(self.point))
            up, down = (self.build(self.point + sign * settings.spread * noise) for sign in (1.0, -1.0))
            ratios = [np.log(loss(sequence, up) / loss(sequence, down)) for sequence in played]
            slope += float(np.mean(weight * np.array(ratios))) * noise
        self._step(slope, settings.rate * max(0.1, 1.0 - progress))
        self.steps += 1
        if self.steps % LOOK_EVERY == 0:
            self._look()

    def _step(self, slope: Seconds, rate: float) -> None:
        """Down the slope, whose length does not count, by moments (Kingma and Ba 2015)."""
        slope = slope / max(float(np.sqrt(np.mean(slope**2))), 1e-12)
        self.first = MOMENTUM * self.first + (1 - MOMENTUM) * slope
        self.second = SECOND * self.second + (1 - SECOND) * slope**2
        mean = self.first / (1 - MOMENTUM ** (self.steps + 1))
        square = self.second / (1 - SECOND ** (self.steps + 1))
        self.point = self.point - rate * mean / (np.sqrt(square) + FLOOR)

    def _look(self) -> None:
        found = self.measured(self.point)
        ratio = mixed(self.validation, found, self.reference)
        self.curve.append((self.steps, ratio))
        if ratio < self.ratio:
            self.ratio, self.best = ratio, self.point.copy()


def groups(sequences: list[Sequence]) -> list[list[int]]:
    """Indices of the sequences of each machine and mechanism."""
    found: dict[tuple[int, int], list[int]] = {}
    for i, sequence in enumerate(sequences):
        found.setdefault((sequence.processors, sequence.mechanism), []).append(i)
    return list(found.values())


def importance(sequences: list[Sequence], losses: Seconds) -> Seconds:
    """The root of each loss over the mean of its group: means are what counts, and no group counts more."""
    weight = np.ones(len(sequences))
    for group in groups(sequences):
        weight[group] = np.sqrt(losses[group] / losses[group].mean())
    return weight


def mixed(sequences: list[Sequence], losses: Seconds, reference: Seconds) -> float:
    """Geometric mean over the groups of the ratio of mean losses."""
    return float(
        np.exp(np.mean([np.log(losses[group].mean() / reference[group].mean()) for group in groups(sequences)]))
    )

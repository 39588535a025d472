"""Worlds under many conditions: what a dynamics model that is to adapt is learned in.

Every user's load goes from level to level at times of its own, bursts come on top, servers become slower or faster for
good, and some are lost for a while.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from workers.evaluation.wrappers.base import Conditions, World, neutral
from workers.inputs import Conditions as Wanted
from workers.kinds.inference.simulator.recorded import Recorded
from workers.kinds.inference.simulator.world import InferenceWorld

LEVELS = (0.25, 3.0)  # of the usual rate, drawn log-uniformly
LASTING = 45.0  # seconds of a level on average
BURSTS = (0.0, 0.3)  # variance of a control interval's rate over its level, drawn by stretch
PACES = (0.6, 2.5)  # factors of seconds, drawn log-uniformly
SHIFTED, LOST = 0.7, 0.3  # shares of the episodes in which servers change pace, or are lost
STRETCH = 3_600  # seconds of requests that episodes are drawn from
SHARPNESS = 0.05  # standard deviation of the log of seconds from one variant and size to another


class Shifting:
    """A disturbance that draws when servers change their pace, and when some are lost.

    Args:
        seed: of all that is drawn.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def begin(self, world: World) -> None:
        """See ``Disturbance``."""
        world.reseed(self.seed)
        random, count = np.random.default_rng(self.seed), world.batch
        low, high = np.log(PACES)
        self.pace = random.uniform(low, high, count) * (random.random(count) < SHIFTED)
        self.when = random.integers(-world.steps // 2, world.steps, count)
        self.left = np.where(random.random(count) < LOST, random.uniform(0.3, 0.9, count), 1.0)
        self.lost = random.integers(0, world.steps, count)
        self.now = 0

    def conditions(self, world: World) -> Conditions:
        """See ``Disturbance``."""
        found = neutral(world.batch, world.channels)
        slowdown = np.where(self.now >= self.when, self.pace, 0.0)
        short = (self.now >= self.lost) & (self.now < self.lost + world.steps // 3 + 1)
        self.now += 1
        return found._replace(slowdown=slowdown, capacity=np.where(short, self.left, 1.0))


def varied(layout: Layout, model: ServiceModel, batch: int, seed: int) -> InferenceWorld:
    """B episodes, each under conditions of its own."""
    random = np.random.default_rng(seed)
    apart = random.normal(0.0, SHARPNESS, (8, *model.log_seconds.shape[1:]))
    members = model.log_seconds[random.integers(len(model.log_seconds), size=8)] + apart
    truth = replace(model, log_seconds=members)
    world = InferenceWorld(layout, [truth], Wanted(batch, seed), requests(layout, model, seed), believed=model)
    disturbances: list[Any] = world.disturbances
    disturbances.append(Shifting(seed))
    return world


def requests(layout: Layout, model: ServiceModel, seed: int) -> Recorded:
    """Requests of all users over a stretch."""
    random, window = np.random.default_rng([seed, 1]), layout.spec.control_seconds
    counts = [random.poisson(rate * _level(random) * _bursts(random, window)).astype(np.int64) for rate in usual(model)]
    return Recorded.of_counts(counts, layout.spec.episode_seconds, seed)


def usual(model: ServiceModel) -> NDArray[np.float64]:
    """Requests per second of each user over the day, [U]."""
    rate: NDArray[np.float64] = model.rate.mean(axis=1)
    return rate


def _level(random: np.random.Generator) -> NDArray[np.float64]:
    """In each second."""
    ends = np.cumsum(random.exponential(LASTING, int(4 * STRETCH / LASTING))).astype(int)
    low, high = np.log(LEVELS).tolist()
    levels = np.exp(random.uniform(low, high, len(ends) + 1))
    found: NDArray[np.float64] = levels[np.searchsorted(ends, np.arange(STRETCH), side="right")]
    return found


def _bursts(random: np.random.Generator, window: float) -> NDArray[np.float64]:
    variance = random.uniform(*BURSTS) + 1e-9
    drawn = random.gamma(1 / variance, variance, int(STRETCH / window) + 1)
    found: NDArray[np.float64] = drawn[(np.arange(STRETCH) / window).astype(int)]
    return found

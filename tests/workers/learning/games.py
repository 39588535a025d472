"""Small vectorised environments for what is beyond one vector and one agent: sets, memory, company."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.simulator import MaskedObservation, Role, Step

Array = NDArray[Any]


class Choosing:
    """Of up to K candidates, pick the one nearest to the mean of all: what is best depends on the others.

    Features [K, 3]: place, noise, and a constant. Some candidates are absent: masked, with features that would mislead
    whoever looks at them. A step is an episode; it pays minus the distance, less the best one's. The optimum pays 0.
    """

    advice: slice | None = None

    def __init__(self, batch: int, seed: int, candidates: int = 6) -> None:
        self.batch, self.candidates, self.rng = batch, candidates, np.random.default_rng(seed)
        self.observation_space = spaces.Box(-np.inf, np.inf, (candidates, 3), np.float32)
        self.action_space = spaces.Discrete(candidates)
        self.observation, self.mask = self._draw()

    def _draw(self) -> tuple[Array, Array]:
        mask = self.rng.random((self.batch, self.candidates)) < 0.8
        mask[:, 0] |= ~mask.any(axis=1)
        place = self.rng.normal(0.0, 1.0, (self.batch, 1)) + self.rng.normal(0.0, 1.0, mask.shape)
        result = np.stack([np.where(mask, place, 50.0), self.rng.normal(size=mask.shape), np.ones(mask.shape)], axis=2)
        return result.astype(np.float32), mask

    def regret(self, action: Array) -> Array:
        """How much farther each choice [B] is than the best, [B]."""
        place, legal = self.observation[:, :, 0], self.mask
        mean = (place * legal).sum(axis=1) / legal.sum(axis=1)
        distance = np.where(legal, np.abs(place - mean[:, None]), np.inf)
        array: Array = distance[np.arange(self.batch), action] - distance.min(axis=1)
        return array

    def reset(self) -> tuple[Array, Array]:
        self.observation, self.mask = self._draw()
        return self.observation, self.mask

    def step(self, actions: Array) -> Step:
        reward, before = -self.regret(actions).astype(np.float32), self.observation
        self.reset()
        return Step(self.observation, self.mask, reward, np.ones(self.batch, np.bool_), before)

    def get_state(self) -> dict[str, Any]:
        return {"observation": self.observation, "mask": self.mask, "rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.observation, self.mask = state["observation"].copy(), state["mask"].copy()
        self.rng.bit_generator.state = state["rng"]


class Recalling:
    """A cue is shown at first; at the end, `delay` steps later, the action that equals it pays 1, any other nothing.

    In between nothing is told but the time, and nothing is paid: who does not remember earns 1 / cues.
    """

    advice: slice | None = None

    def __init__(self, batch: int, seed: int, cues: int = 3, delay: int = 3) -> None:
        self.batch, self.cues, self.delay = batch, cues, delay
        self.rng = np.random.default_rng(seed)
        self.observation_space = spaces.Box(0.0, 1.0, (cues + delay + 1,), np.float32)
        self.action_space = spaces.Discrete(cues)
        self.cue, self.time = self.rng.integers(0, cues, batch), np.zeros(batch, np.int64)

    def _seen(self) -> Array:
        cue = np.eye(self.cues, dtype=np.float32)[self.cue] * (self.time == 0)[:, None]
        return np.concatenate([cue, np.eye(self.delay + 1, dtype=np.float32)[self.time]], axis=1)

    def reset(self) -> tuple[Array, Array]:
        self.cue, self.time = self.rng.integers(0, self.cues, self.batch), np.zeros(self.batch, np.int64)
        return self._seen(), np.ones((self.batch, self.cues), np.bool_)

    def step(self, actions: Array) -> Step:
        final = self.time == self.delay
        reward = (final & (actions == self.cue)).astype(np.float32)
        before = self._seen()
        self.time = np.where(final, 0, self.time + 1)
        self.cue = np.where(final, self.rng.integers(0, self.cues, self.batch), self.cue)
        now = self._seen()
        after = np.where(final[:, None], before, now)
        return Step(now, np.ones((self.batch, self.cues), np.bool_), reward, final, after)

    def get_state(self) -> dict[str, Any]:
        return {"cue": self.cue, "time": self.time, "rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.cue, self.time = state["cue"].copy(), state["time"].copy()
        self.rng.bit_generator.state = state["rng"]


class Meeting:
    """Two agents who can't talk: they are paid if they choose the same place, twice as much if it is the right one.

    Both see the cue that says which place is right; each also sees a number of its own. `left` has three places to
    choose from, `right` four, of which the last is never met at. Two decisions make an episode; the optimum is 2.
    """

    PLACES = 3

    def __init__(self, batch: int, seed: int) -> None:
        self.batch, self.rng = batch, np.random.default_rng(seed)
        self.roles = {
            "left": Role(spaces.Box(-np.inf, np.inf, (4,), np.float32), spaces.Discrete(3)),
            "right": Role(spaces.Box(-np.inf, np.inf, (6,), np.float32), spaces.Discrete(4)),
        }
        self.time, self.cue = np.zeros(batch, np.int64), np.zeros(batch, np.int64)
        self.own = {"left": np.zeros((batch, 1), np.float32), "right": np.zeros((batch, 3), np.float32)}

    def _draw(self) -> None:
        self.cue = self.rng.integers(0, self.PLACES, self.batch)
        self.own = {name: self.rng.normal(size=old.shape).astype(np.float32) for name, old in self.own.items()}

    def _seen(self) -> dict[str, MaskedObservation]:
        cue = np.eye(self.PLACES, dtype=np.float32)[self.cue]
        return {
            name: MaskedObservation(
                np.concatenate([cue, own], axis=1), np.ones((self.batch, int(self.roles[name].actions.n)), bool)
            )
            for name, own in self.own.items()
        }

    def reset(self) -> dict[str, MaskedObservation]:
        self.time = np.zeros(self.batch, np.int64)
        self._draw()
        return self._seen()

    def step(self, actions: Mapping[str, Array]) -> dict[str, Step]:
        met = (actions["left"] == actions["right"]).astype(np.float32)
        reward = met * np.where(actions["left"] == self.cue, 1.0, 0.5).astype(np.float32)
        self.time = (self.time + 1) % 2
        self._draw()
        return {
            name: Step(*observation, reward, self.time == 0, observation.observation)
            for name, observation in self._seen().items()
        }

    def get_state(self) -> dict[str, Any]:
        return {"time": self.time, "cue": self.cue, "own": self.own, "rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.time, self.cue = state["time"].copy(), state["cue"].copy()
        self.own = {name: state["own"][name].copy() for name in self.own}
        self.rng.bit_generator.state = state["rng"]

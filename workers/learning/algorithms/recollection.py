"""How an actor-critic agent looks at its environments: each observation by itself, or with what came before."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms.base import Experience, Observations
from workers.learning.backends import Backend
from workers.learning.backends.base import Array
from workers.learning.build import Bound

Batch = dict[str, Array]
Host = dict[str, NDArray[Any]]


class Glance:
    """Each observation by itself: examples are single steps."""

    fetches: tuple[str, ...] = ()
    """What acting has to fetch besides."""

    def __init__(self, backend: Backend, rollout: int) -> None:
        self.backend, self.rollout = backend, rollout

    def now(self, observation: Observations) -> Batch:
        """Feeds for acting on [B, D]."""
        return {"observation": self.backend.asarray(observation)}

    def alone(self, observation: Observations) -> Batch:
        """Feeds for acting on [B, D] with nothing before it."""
        return self.now(observation)

    def acted(self, found: Mapping[str, Array]) -> None:
        """Take in what acting fetched."""

    def stepped(self, experience: Experience) -> Host:
        """Go one step on; return what the rollout keeps besides."""
        del experience
        return {}

    def whole(self, slabs: Host) -> Batch:
        """What a full rollout's batch holds besides."""
        del slabs
        return {}

    def feeds(self, batch: Batch) -> Batch:
        """Feeds of the networks for examples."""
        return {"observation": batch["observation"]}

    def last(self, batch: Batch, bound: Bound) -> Batch:
        """Feeds of the networks for what was observed after the rollout."""
        del bound
        return {"observation": batch["last_observation"]}

    def split(self, count: int, wanted: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Cut the examples at random into minibatches of some `wanted`: their places."""
        return np.array_split(rng.permutation(count), -(-count // wanted))

    def pick(self, batch: Batch, names: tuple[str, ...], places: NDArray[np.int64]) -> Batch:
        """The examples at these places."""
        where = self.backend.asarray(places)
        return {name: self.backend.xp.take(batch[name], where, axis=0) for name in names}

    def state(self) -> Host:
        """What is remembered of the environments."""
        return {}

    def restore(self, state: Host) -> None:
        """Remember that again."""


class Recollection(Glance):
    """With the memory of a recurrent core, [B, H]; examples are whole trajectories."""

    fetches = ("core.memory",)

    def __init__(self, backend: Backend, rollout: int, units: int) -> None:
        super().__init__(backend, rollout)
        self.units = units
        self.before = self.after = np.zeros((0, units), np.float32)

    def now(self, observation: Observations) -> Batch:
        """The observations, as sequences of one step, and what came before."""
        if len(self.before) != len(observation):
            self.before = np.zeros((len(observation), self.units), np.float32)
        return self._sequence(self.backend.asarray(observation), self.backend.asarray(self.before))

    def alone(self, observation: Observations) -> Batch:
        """The same, with empty memories."""
        empty = np.zeros((len(observation), self.units), np.float32)
        return self._sequence(self.backend.asarray(observation), self.backend.asarray(empty))

    def _sequence(self, observation: Array, memory: Array) -> Batch:
        begins = self.backend.asarray(np.zeros((len(observation), 1), np.bool_))
        return {"sequence": observation[:, None], "begins": begins, "memory": memory}

    def acted(self, found: Mapping[str, Array]) -> None:
        """The memory after this step."""
        self.after = self.backend.to_numpy(found["core.memory"])

    def stepped(self, experience: Experience) -> Host:
        """Where an episode ended, the memory is empty; the rollout keeps the one before the step."""
        before = self.before
        self.before = self.after * ~experience.done[:, None]
        return {"memory": before}

    def whole(self, slabs: Host) -> Batch:
        """Where episodes begin within the trajectories, and the memories at their start."""
        begins = np.zeros(slabs["done"].shape, np.bool_)
        begins[:, 1:] = slabs["done"][:, :-1]
        return {"begins": self.backend.asarray(begins), "memory": self.backend.asarray(slabs["memory"])}

    def feeds(self, batch: Batch) -> Batch:
        """Sequences."""
        observation = batch["observation"]
        sequence = observation.reshape(-1, self.rollout, *observation.shape[1:])
        return {"sequence": sequence, "begins": batch["begins"], "memory": batch["memory"]}

    def last(self, batch: Batch, bound: Bound) -> Batch:
        """One more step, with the memory after the trajectories."""
        memory = bound.run(("core.memory",), self.feeds(batch))["core.memory"]
        return self._sequence(batch["last_observation"], memory)

    def split(self, count: int, wanted: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Cut into whole trajectories: their numbers."""
        trajectories = count // self.rollout
        return np.array_split(rng.permutation(trajectories), min(-(-count // wanted), trajectories))

    def pick(self, batch: Batch, names: tuple[str, ...], places: NDArray[np.int64]) -> Batch:
        """The steps of these trajectories, in a row."""
        steps = (places[:, None] * self.rollout + np.arange(self.rollout)).reshape(-1)
        return {**super().pick(batch, names, steps), **super().pick(batch, ("begins", "memory"), places)}

    def state(self) -> Host:
        """The memories."""
        return {"before": self.before.copy()}

    def restore(self, state: Host) -> None:
        """Go on with these."""
        self.before = np.array(state["before"])

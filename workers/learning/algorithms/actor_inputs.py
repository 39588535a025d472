"""Network inputs of an actor-critic agent: single steps, or sequences with the memory of a recurrent core."""

import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms.base import Experience, Host, Observations
from workers.learning.backends import Backend
from workers.learning.backends.base import Array
from workers.learning.build import Bound
from workers.learning.stages.bind import Sets

Batch = dict[str, Array]


class StepInputs:
    """Each observation by itself: examples are single steps."""

    fetches: tuple[str, ...] = ()
    """What acting has to fetch besides: what is carried to the next step, if anything."""

    def __init__(self, backend: Backend, rollout: int) -> None:
        self.backend, self.rollout = backend, rollout

    def now(self, observation: Observations, carry: NDArray[np.float32] | None) -> Batch:
        """Feeds for acting on [B, D], with what was carried there."""
        del carry
        return {"observation": self.backend.asarray(observation)}

    def before(self, experience: Experience, carry: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        """What the rollout keeps of what was carried into a step."""
        del experience
        return carry

    def whole(self, slabs: Host) -> Batch:
        """What a full rollout's batch holds besides."""
        del slabs
        return {}

    def feeds(self, batch: Batch) -> Batch:
        """Feeds of the networks for examples."""
        return {"observation": batch["observation"]}

    def last(self, batch: Batch, bound: Bound, variables: Sets) -> Batch:
        """Feeds of the networks for what was observed after the rollout."""
        del bound, variables
        return {"observation": batch["last_observation"]}

    def split(self, count: int, wanted: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Cut the examples at random into minibatches of some `wanted`: their places."""
        return np.array_split(rng.permutation(count), -(-count // wanted))

    def pick(self, batch: Batch, names: tuple[str, ...], places: NDArray[np.int64]) -> Batch:
        """The examples at these places."""
        where = self.backend.asarray(places)
        return {name: self.backend.xp.take(batch[name], where, axis=0) for name in names}


class SequenceInputs(StepInputs):
    """With the memory of a recurrent core, [B, H]; examples are whole trajectories."""

    fetches = ("core.memory",)

    def __init__(self, backend: Backend, rollout: int, units: int) -> None:
        super().__init__(backend, rollout)
        self.units = units

    def now(self, observation: Observations, carry: NDArray[np.float32] | None) -> Batch:
        """The observations, as sequences of one step, and what came before."""
        given = self.backend.asarray
        return self._sequence(given(observation), given(self._carried(len(observation), carry)))

    def before(self, experience: Experience, carry: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """The memory before the step; zeros at first."""
        return self._carried(len(experience.reward), carry)

    def _carried(self, batch: int, carry: NDArray[np.float32] | None) -> NDArray[np.float32]:
        return carry if carry is not None and len(carry) == batch else np.zeros((batch, self.units), np.float32)

    def _sequence(self, observation: Array, memory: Array) -> Batch:
        begins = self.backend.asarray(np.zeros((len(observation), 1), np.bool_))
        return {"sequence": observation[:, None], "begins": begins, "memory": memory}

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

    def last(self, batch: Batch, bound: Bound, variables: Sets) -> Batch:
        """One more step, with the memory after the trajectories."""
        memory = bound.run(("core.memory",), self.feeds(batch), variables)["core.memory"]
        return self._sequence(batch["last_observation"], memory)

    def split(self, count: int, wanted: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Cut into whole trajectories: their numbers."""
        trajectories = count // self.rollout
        return np.array_split(rng.permutation(trajectories), min(-(-count // wanted), trajectories))

    def pick(self, batch: Batch, names: tuple[str, ...], places: NDArray[np.int64]) -> Batch:
        """The steps of these trajectories, in a row."""
        steps = (places[:, None] * self.rollout + np.arange(self.rollout)).reshape(-1)
        return {**super().pick(batch, names, steps), **super().pick(batch, ("begins", "memory"), places)}

"""Replay memories (uniform and prioritised), and rollouts.

Shapes: B environments, n transitions, H recurrent units; … stands for a port's own shape.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from workers.learning.components.base import Arrays, HostArrays, Memory, Space, Spaces, empty, reals
from workers.learning.components.value import STEP

TRANSITION = ("observation", "mask", "action", "reward", "discount", "next_observation", "next_mask")
Batch = dict[str, NDArray[Any]]


class Replay(Memory):
    """Ring buffer of ``capacity`` transitions, sampled uniformly with replacement (Lin, 1992).

    Raises:
        ValueError: the capacity is below 1.
    """

    takes: ClassVar = TRANSITION

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}, must be 1 or more")
        self.capacity, self.size, self.head = capacity, 0, 0
        self.rings: dict[str, NDArray[Any]] = {}
        self.rng = np.random.default_rng(0)

    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Return the spaces of a transition, and of `weight`, its importance weight in the loss (one number)."""
        return {**{port: inputs[port] for port in TRANSITION}, "weight": reals()}

    @override
    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        self.rings = {port: empty(inputs[port], self.capacity) for port in TRANSITION}
        self.rng, self.size, self.head = rng, 0, 0

    def insert(self, batch: Arrays) -> NDArray[np.int64]:
        """Insert n transitions [n, …] (the last `capacity` at most) over the oldest ones; return their indices."""
        count = min(len(batch["reward"]), self.capacity)
        end = self.head + count
        for port, ring in self.rings.items():
            value = np.asarray(batch[port])[-count:] if count else np.asarray(batch[port])[:0]
            fit = min(count, self.capacity - self.head)
            ring[self.head : self.head + fit] = value[:fit]
            ring[: count - fit] = value[fit:]
        places = np.arange(self.head, end) % self.capacity
        self.head, self.size = end % self.capacity, min(self.size + count, self.capacity)
        return places

    def draw(self, count: int, progress: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Draw indices [count] and importance weights [count], all 1; ValueError if empty; ``progress`` is ignored."""
        del progress
        return self.rng.integers(0, self.size, count), np.ones(count, np.float32)

    def sample(self, count: int, progress: float = 0.0) -> tuple[Batch, NDArray[np.int64]]:
        """Draw ``count`` transitions [count, …] with `weight` [count], and their indices; ``progress`` is 0 to 1.
        Raises ValueError if the memory is empty."""
        places, weight = self.draw(count, progress)
        batch = {port: ring.take(places, axis=0) for port, ring in self.rings.items()}
        return {**batch, "weight": weight}, places

    def reprioritise(self, places: NDArray[np.int64], errors: NDArray[np.float32]) -> None:
        """Do nothing: a uniform memory has no priorities."""

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Insert a batch [B, …] of transitions, and return a drawn batch of the same size with its `weight` [B]."""
        self.insert(inputs)
        return self.sample(len(inputs["reward"]))[0]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the stored transitions by name, and `position` [2]: their number, and the next index to overwrite."""
        return {
            **{port: ring[: self.size].copy() for port, ring in self.rings.items()},
            "position": np.array([self.size, self.head]),
        }

    @override
    def restore(self, state: HostArrays) -> None:
        self.size, self.head = (int(value) for value in state["position"])
        for port, ring in self.rings.items():
            ring[: self.size] = state[port]


class SumTree:
    """Binary tree of partial sums of ``capacity`` priorities (initially 0), with vectorised update and search."""

    def __init__(self, capacity: int) -> None:
        self.depth = max(1, int(capacity - 1).bit_length())
        self.leaves = 1 << self.depth
        self.nodes = np.zeros(2 * self.leaves, np.float64)

    @property
    def total(self) -> float:
        """Sum of all stored priorities."""
        return float(self.nodes[1])

    def get(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the priorities [n] at the indices ``places`` [n]."""
        return self.nodes[places + self.leaves]

    def set(self, places: NDArray[np.int64], priorities: NDArray[np.float64]) -> None:
        """Set the ``priorities`` [n] at the indices ``places`` [n]; of a repeated index, the last value counts."""
        node = places + self.leaves
        self.nodes[node] = priorities
        for _ in range(self.depth):
            node = node >> 1
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    def find(self, mass: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return, for each ``mass`` [n] from 0 to `total`, the first index whose cumulated priority exceeds it, [n]."""
        node, left = np.ones(len(mass), np.int64), mass.copy()
        for _ in range(self.depth):
            node = 2 * node
            below = self.nodes[node]
            right = left >= below
            left -= np.where(right, below, 0.0)
            node += right
        return node - self.leaves


class PrioritisedReplay(Replay):
    """Replay memory with proportional priorities P(i) ∝ (|error_i| + tiny)^α (Schaul et al., 2016, section 3.3).

    New transitions get the highest priority so far. The importance weight of an example is (size · P(i))^−β, divided by
    the batch's largest. β grows linearly from `beta` to 1 over the training (section 3.4): prioritisation biases the
    updates, and near convergence the weights must remove that bias completely.
    """

    def __init__(self, capacity: int, alpha: float = 0.6, beta: float = 0.4, tiny: float = 1e-3) -> None:
        super().__init__(capacity)
        self.alpha, self.beta, self.tiny, self.highest = alpha, beta, tiny, 1.0
        self.tree = SumTree(capacity)

    @override
    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        super().allocate(inputs, rng)
        self.tree, self.highest = SumTree(self.capacity), 1.0

    def insert(self, batch: Arrays) -> NDArray[np.int64]:
        """Insert n transitions [n, …] at the highest priority so far; return their indices [n]."""
        places = super().insert(batch)
        self.tree.set(places, np.full(len(places), self.highest))
        return places

    def draw(self, count: int, progress: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Draw an index from each of ``count`` equal shares of the priority mass; return indices and weights [count].

        The importance weights are in (0, 1]; ``progress`` (0 to 1) sets their exponent β.
        """
        mass = (np.arange(count) + self.rng.random(count)) / count * self.tree.total
        places = np.minimum(self.tree.find(mass), self.size - 1)
        chance = np.maximum(self.tree.get(places), 1e-300) / self.tree.total
        weight = (self.size * chance) ** -(self.beta + (1.0 - self.beta) * progress)
        return places, (weight / weight.max()).astype(np.float32)

    def reprioritise(self, places: NDArray[np.int64], errors: NDArray[np.float32]) -> None:
        """Set the priorities of the transitions at indices ``places`` [n] from their absolute errors [n]."""
        priorities = (np.abs(errors.astype(np.float64)) + self.tiny) ** self.alpha
        self.highest = max(self.highest, float(priorities.max(initial=0.0)))
        self.tree.set(places, priorities)

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        return {
            **super().state(),
            "priorities": self.tree.get(np.arange(self.size)),
            "highest": np.array([self.highest]),
        }

    @override
    def restore(self, state: HostArrays) -> None:
        super().restore(state)
        self.highest = float(state["highest"][0])
        self.tree = SumTree(self.capacity)
        self.tree.set(np.arange(self.size), np.asarray(state["priorities"], np.float64))


# Trajectories of environments in lock-step, collected slab by slab.


SLAB = (*STEP, "log_prob")
KEPT = ("observation", "mask", "action", "reward", "done", "log_prob")


class Rollout(Memory):
    """Memory that joins `steps` consecutive steps of the same B environments to trajectories [B, steps, …].

    `last_observation` and `last_mask` [B, …] follow the last step. While incomplete, outputs are empty, [0, steps, …].
    `discount` is that of the steps, 1 for steps without one. ``steps`` below 1 raises ValueError.
    """

    takes: ClassVar[tuple[str, ...]] = SLAB
    once: ClassVar[tuple[str, ...]] = ()
    """Inputs stored from the first slab only."""

    def __init__(self, steps: int) -> None:
        if steps < 1:
            raise ValueError(f"rollout is {steps} slabs, must be 1 or more")
        self.steps, self.filled = steps, 0
        self.spaces: Spaces = {}
        self.slabs: dict[str, NDArray[Any]] = {}

    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Return the spaces of a trajectory: one entry per step, but `last_observation` and `last_mask` of one step."""
        self.scalar(inputs, "reward")
        self.scalar(inputs, "done")
        spaces = {port: stack_space(inputs[port], self.steps) for port in KEPT}
        last = {"last_observation": inputs["observation"], "last_mask": inputs["mask"]}
        return {**spaces, "discount": reals(self.steps), **{port: inputs[port] for port in self.once}, **last}

    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        """Delete all steps; storage is allocated with the first one, which determines the number of environments."""
        self.spaces, self.slabs, self.filled = dict(inputs), {}, 0

    def clear(self) -> None:
        """Delete the steps of the incomplete rollout."""
        self.filled = 0

    @property
    def full(self) -> bool:
        """Whether the rollout has all its `steps` steps."""
        return self.filled == self.steps

    def push(self, slab: Arrays) -> None:
        """Append a step, arrays [B, …] of B environments; after a full rollout, begin the next.

        Raises:
            ValueError: the number of environments changes within a rollout.
        """
        batch = len(slab["reward"])
        if self.full:
            self.filled = 0
        if not self.filled and (not self.slabs or len(self.slabs["reward"]) != batch):
            self.slabs = {port: empty(space, batch) for port, space in self.output_spaces(self.spaces).items()}
        if len(self.slabs["reward"]) != batch:
            raise ValueError(f"a slab of {batch} environments follows one of {len(self.slabs['reward'])}")
        for port in KEPT:
            self.slabs[port][:, self.filled] = slab[port]
        self.slabs["discount"][:, self.filled] = 1.0 if slab.get("discount") is None else slab["discount"]
        if not self.filled:
            for port in self.once:
                self.slabs[port][:] = slab[port]
        self.slabs["last_observation"][:] = slab["next_observation"]
        self.slabs["last_mask"][:] = slab["next_mask"]
        self.filled += 1

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Append a step [B, …]; return the trajectories [B, steps, …] if complete, else [0, steps, …]. Raises
        ValueError if the number of environments B changes within a rollout."""
        self.push(inputs)
        return {port: (value if self.full else value[:0]) for port, value in self.slabs.items()}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the steps' arrays by name, and `filled` [1], the number of steps so far."""
        return {**{port: value.copy() for port, value in self.slabs.items()}, "filled": np.array([self.filled])}

    def restore(self, state: HostArrays) -> None:
        """Restore the steps that `state` returned; KeyError if `filled` is missing."""
        self.slabs = {port: np.array(value) for port, value in state.items() if port != "filled"}
        self.filled = int(state["filled"][0])


class RecurrentRollout(Rollout):
    """A rollout that also stores the recurrent memory [B, H], of H units, before its first step."""

    takes: ClassVar = (*SLAB, "memory")
    once: ClassVar = ("memory",)


def stack_space(space: Space, steps: int) -> Space:
    """Return the space of ``steps`` examples of a space in sequence, [steps, *shape]."""
    if isinstance(space, spaces.Discrete):
        return spaces.MultiDiscrete(np.full(steps, space.n))
    shape = (steps, *(space.shape or ()))
    if isinstance(space, spaces.MultiBinary):
        return spaces.MultiBinary(shape)
    return spaces.Box(-np.inf, np.inf, shape, np.float32)

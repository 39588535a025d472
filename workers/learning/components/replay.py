"""Replay memories: whole slabs in, big batches out, no Python loop over transitions."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from workers.learning.components.base import Arrays, HostArrays, Memory
from workers.learning.spaces import Spaces, empty, reals

TRANSITION = ("observation", "mask", "action", "reward", "discount", "next_observation", "next_mask")
Batch = dict[str, NDArray[Any]]


class Replay(Memory):
    """A ring of transitions, sampled uniformly with replacement (Lin, 1992)."""

    takes: ClassVar = TRANSITION

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}, must be 1 or more")
        self.capacity, self.size, self.head = capacity, 0, 0
        self.rings: dict[str, NDArray[Any]] = {}
        self.rng = np.random.default_rng(0)

    def gives(self, inputs: Spaces) -> Spaces:
        """The transitions' spaces, and the weight of each example in the loss."""
        return {**{port: inputs[port] for port in TRANSITION}, "weight": reals()}

    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        """Make the rings."""
        self.rings = {port: empty(inputs[port], self.capacity) for port in TRANSITION}
        self.rng, self.size, self.head = rng, 0, 0

    def insert(self, batch: Arrays) -> NDArray[np.int64]:
        """Put a batch of transitions in (the last `capacity` of them, if it is bigger); return their places."""
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
        """Draw places [count] and their weights in the loss [count]; `progress`: share of the training that is done."""
        del progress
        return self.rng.integers(0, self.size, count), np.ones(count, np.float32)

    def sample(self, count: int, progress: float = 0.0) -> tuple[Batch, NDArray[np.int64]]:
        """Draw a batch, as `draw` does; also return where its examples stand."""
        places, weight = self.draw(count, progress)
        batch = {port: ring.take(places, axis=0) for port, ring in self.rings.items()}
        return {**batch, "weight": weight}, places

    def reprioritise(self, places: NDArray[np.int64], errors: NDArray[np.float32]) -> None:
        """Learn how wrong the examples were; a uniform memory does not care."""

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Insert a batch and draw one of the same size."""
        self.insert(inputs)
        return self.sample(len(inputs["reward"]))[0]

    def state(self) -> dict[str, NDArray[Any]]:
        """The filled part of the rings, and where they stand (the generator belongs to the caller)."""
        return {
            **{port: ring[: self.size].copy() for port, ring in self.rings.items()},
            "position": np.array([self.size, self.head]),
        }

    def restore(self, state: HostArrays) -> None:
        """Refill the rings."""
        self.size, self.head = (int(value) for value in state["position"])
        for port, ring in self.rings.items():
            ring[: self.size] = state[port]


class SumTree:
    """Sums over a binary tree of priorities, updated and searched for whole batches at once."""

    def __init__(self, capacity: int) -> None:
        self.depth = max(1, int(capacity - 1).bit_length())
        self.leaves = 1 << self.depth
        self.nodes = np.zeros(2 * self.leaves, np.float64)

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self.nodes[1])

    def get(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the priorities at these places."""
        return self.nodes[places + self.leaves]

    def set(self, places: NDArray[np.int64], priorities: NDArray[np.float64]) -> None:
        """Overwrite priorities, and the sums above them. Of places named twice, the last counts."""
        node = places + self.leaves
        self.nodes[node] = priorities
        for _ in range(self.depth):
            node = node >> 1
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    def find(self, mass: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the places at which the running sum of priorities passes each mass."""
        node, left = np.ones(len(mass), np.int64), mass.copy()
        for _ in range(self.depth):
            node = 2 * node
            below = self.nodes[node]
            right = left >= below
            left -= np.where(right, below, 0.0)
            node += right
        return node - self.leaves


class PrioritisedReplay(Replay):
    """Proportional prioritisation (Schaul et al., 2016, section 3.3): P(i) ∝ (|error_i| + tiny)^α, stratified draws.

    New transitions get the highest priority seen. The weight of an example is (size · P(i))^−β over the largest in the
    batch. β grows linearly from `beta` at the start of the training to 1 at its end (section 3.4): prioritisation
    biases what is learned, and near convergence the weights have to undo that bias completely.
    """

    def __init__(self, capacity: int, alpha: float = 0.6, beta: float = 0.4, tiny: float = 1e-3) -> None:
        super().__init__(capacity)
        self.alpha, self.beta, self.tiny, self.highest = alpha, beta, tiny, 1.0
        self.tree = SumTree(capacity)

    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        """Make rings and tree."""
        super().allocate(inputs, rng)
        self.tree, self.highest = SumTree(self.capacity), 1.0

    def insert(self, batch: Arrays) -> NDArray[np.int64]:
        """Insert at the highest priority seen."""
        places = super().insert(batch)
        self.tree.set(places, np.full(len(places), self.highest))
        return places

    def draw(self, count: int, progress: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Draw one place from each of `count` equal shares of the priority mass."""
        mass = (np.arange(count) + self.rng.random(count)) / count * self.tree.total
        places = np.minimum(self.tree.find(mass), self.size - 1)
        chance = np.maximum(self.tree.get(places), 1e-300) / self.tree.total
        weight = (self.size * chance) ** -(self.beta + (1.0 - self.beta) * progress)
        return places, (weight / weight.max()).astype(np.float32)

    def reprioritise(self, places: NDArray[np.int64], errors: NDArray[np.float32]) -> None:
        """Set the priorities of the examples from their errors."""
        priorities = (np.abs(errors.astype(np.float64)) + self.tiny) ** self.alpha
        self.highest = max(self.highest, float(priorities.max(initial=0.0)))
        self.tree.set(places, priorities)

    def state(self) -> dict[str, NDArray[Any]]:
        """Rings and priorities."""
        return {
            **super().state(),
            "priorities": self.tree.get(np.arange(self.size)),
            "highest": np.array([self.highest]),
        }

    def restore(self, state: HostArrays) -> None:
        """Refill rings and tree."""
        super().restore(state)
        self.highest = float(state["highest"][0])
        self.tree = SumTree(self.capacity)
        self.tree.set(np.arange(self.size), np.asarray(state["priorities"], np.float64))

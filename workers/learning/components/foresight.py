"""Learning from what every action would lead to: a full backup of the Bellman equation in place of one drawn step.

Where the simulator can tell what each action is paid and where it leads to, the target of all N actions of a state is
their expectation, and all are learned at once (Expected Sarsa's idea, van Seijen et al., 2009, at the greedy policy; in
planning, the full backups of value iteration). The same luck for all actions makes their differences nearly exact.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from workers.learning.components.base import Arrays, Component, HostArrays, Memory, SpaceError
from workers.learning.components.value import FORBIDDEN
from workers.learning.spaces import Spaces, empty, reals

TAUGHT = ("observation", "mask", "targets")
FLOOR = 0.1


class Best(Component):
    """values, mask → the value of the best legal action."""

    takes: ClassVar = ("values", "mask")

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        if self.vector(inputs, "mask") != self.vector(inputs, "values"):
            raise SpaceError(self.name, "mask", inputs["mask"], f"one bit per value of {inputs['values']}")
        return {"value": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """The highest, illegal ones aside."""
        values = inputs["values"]
        return {"value": xp.max(xp.where(inputs["mask"], values, xp.full_like(values, FORBIDDEN)), axis=1)}


class EveryHuber(Component):
    """Huber loss (1964) of every legal action's value, per state: the mean over its legal actions.

    With a `focus`, in the unit of the values, an action weighs exp((target − best target)/focus) + 0.1: what hopeless
    actions are worth then takes little of the network's capacity, but is not left to chance either.
    """

    takes: ClassVar = ("values", "targets", "mask")

    def __init__(self, delta: float = 1.0, focus: float | None = None) -> None:
        self.delta, self.focus = delta, focus

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        actions = self.vector(inputs, "values")
        for port in ("targets", "mask"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"one entry per value of {inputs['values']}")
        return {"loss": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Quadratic up to δ, linear beyond; illegal actions count for nothing, whatever their targets are."""
        values, targets, mask = inputs["values"], inputs["targets"], inputs["mask"]
        weight = xp.astype(mask, values.dtype)
        if self.focus is not None:
            legal = xp.where(mask, targets, xp.full_like(targets, FORBIDDEN))
            weight = weight * (FLOOR + xp.exp((legal - xp.max(legal, axis=1, keepdims=True)) / self.focus))
        error = xp.where(mask, xp.abs(values - targets), xp.zeros_like(targets))
        inside = xp.clip(error, 0.0, self.delta)
        loss = 0.5 * inside * inside + self.delta * (error - inside)
        return {"loss": xp.sum(weight * loss, axis=1) / xp.sum(weight, axis=1)}


class Taught(Memory):
    """A ring of states with the targets of all their actions, the latest `capacity` of them, drawn uniformly.

    Targets age with the network that they were computed by, so the ring is short.
    """

    takes: ClassVar = TAUGHT

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}, must be 1 or more")
        self.capacity, self.size, self.head = capacity, 0, 0
        self.rings: dict[str, NDArray[Any]] = {}
        self.rng = np.random.default_rng(0)

    def gives(self, inputs: Spaces) -> Spaces:
        """The same."""
        return {port: inputs[port] for port in TAUGHT}

    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        """Make the rings."""
        self.rings = {port: empty(inputs[port], self.capacity) for port in TAUGHT}
        self.rng, self.size, self.head = rng, 0, 0

    def clear(self) -> None:
        """Forget everything."""
        self.size = self.head = 0

    def insert(self, batch: Arrays) -> None:
        """Put a batch in (the last `capacity` of it, if it is bigger)."""
        count = min(len(batch["mask"]), self.capacity)
        places = np.arange(self.head, self.head + count) % self.capacity
        for port, ring in self.rings.items():
            ring[places] = np.asarray(batch[port])[len(batch[port]) - count :]
        self.head, self.size = (self.head + count) % self.capacity, min(self.size + count, self.capacity)

    def sample(self, count: int) -> dict[str, NDArray[Any]]:
        """Draw a batch, with replacement."""
        places = self.rng.integers(0, self.size, count)
        return {port: ring.take(places, axis=0) for port, ring in self.rings.items()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Insert a batch and draw one of the same size."""
        self.insert(inputs)
        return self.sample(len(inputs["mask"]))

    def state(self) -> dict[str, NDArray[Any]]:
        """The filled part of the rings, and where they stand (the generator belongs to the caller)."""
        filled = {port: ring[: self.size].copy() for port, ring in self.rings.items()}
        return {**filled, "position": np.array([self.size, self.head])}

    def restore(self, state: HostArrays) -> None:
        """Refill the rings."""
        self.size, self.head = (int(value) for value in state["position"])
        for port, ring in self.rings.items():
            ring[: self.size] = state[port]

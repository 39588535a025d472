"""Trajectories of environments in lock-step, gathered slab by slab."""

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.components.base import Arrays, HostArrays, Memory
from workers.learning.components.n_step import STEP
from workers.learning.spaces import Space, Spaces, empty, reals

SLAB = (*STEP, "log_prob")
KEPT = ("observation", "mask", "action", "reward", "done", "log_prob")


class Rollout(Memory):
    """`steps` slabs [B] in; then B trajectories out, [B, steps, …], with observation and mask after the last step.

    In between, nothing comes out ([0, steps, …]). Slabs must follow one another: all of the same B environments.
    `discount` is that of the slabs, 1 where they have none.
    """

    takes: ClassVar[tuple[str, ...]] = SLAB
    once: ClassVar[tuple[str, ...]] = ()
    """Inputs of which what came with the first slab is kept."""

    def __init__(self, steps: int) -> None:
        if steps < 1:
            raise ValueError(f"rollout is {steps} slabs, must be 1 or more")
        self.steps, self.filled = steps, 0
        self.spaces: Spaces = {}
        self.slabs: dict[str, NDArray[Any]] = {}

    def gives(self, inputs: Spaces) -> Spaces:
        """The slab's spaces, one entry per step; `last_observation`, `last_mask` as observed."""
        self.scalar(inputs, "reward")
        self.scalar(inputs, "done")
        kept = {port: stacked(inputs[port], self.steps) for port in KEPT}
        last = {"last_observation": inputs["observation"], "last_mask": inputs["mask"]}
        return {**kept, "discount": reals(self.steps), **{port: inputs[port] for port in self.once}, **last}

    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        """Start empty; the storage is made with the first slab, which says how many environments there are."""
        self.spaces, self.slabs, self.filled = dict(inputs), {}, 0

    def clear(self) -> None:
        """Forget the slabs so far."""
        self.filled = 0

    @property
    def full(self) -> bool:
        """Whether `trajectories` are there."""
        return self.filled == self.steps

    def push(self, slab: Arrays) -> None:
        """Take in one slab; the first after a full rollout begins the next. Raises ValueError where B changes."""
        batch = len(slab["reward"])
        if self.full:
            self.filled = 0
        if not self.filled and (not self.slabs or len(self.slabs["reward"]) != batch):
            self.slabs = {port: empty(space, batch) for port, space in self.gives(self.spaces).items()}
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
        """Push a slab; return the trajectories when they are full."""
        self.push(inputs)
        return {port: (value if self.full else value[:0]) for port, value in self.slabs.items()}

    def state(self) -> dict[str, NDArray[Any]]:
        """The slabs, and how many of them are filled."""
        return {**{port: value.copy() for port, value in self.slabs.items()}, "filled": np.array([self.filled])}

    def restore(self, state: HostArrays) -> None:
        """Go on with these slabs."""
        self.slabs = {port: np.array(value) for port, value in state.items() if port != "filled"}
        self.filled = int(state["filled"][0])


class RecurrentRollout(Rollout):
    """The same, with the memory [B, H] that a recurrent core had before the first slab."""

    takes: ClassVar = (*SLAB, "memory")
    once: ClassVar = ("memory",)


def stacked(space: Space, steps: int) -> Space:
    """The space of `steps` examples in a row."""
    if isinstance(space, spaces.Discrete):
        return spaces.MultiDiscrete(np.full(steps, space.n))
    shape = (steps, *(space.shape or ()))
    if isinstance(space, spaces.MultiBinary):
        return spaces.MultiBinary(shape)
    return spaces.Box(-np.inf, np.inf, shape, np.float32)

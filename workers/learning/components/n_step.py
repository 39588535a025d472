"""n-step returns over slabs of environments in lock-step."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from workers.learning.components.base import Arrays, HostArrays, Memory
from workers.learning.spaces import Spaces, empty, reals

STEP = ("observation", "mask", "action", "reward", "done", "next_observation", "next_mask")


class NStep(Memory):
    """One-step slabs in; n slabs later, the transition from then: R = Σ_{k<n} γᵏ·r_k, cut at the first terminal.

    `discount` is γⁿ, and 0 where the episode ended within the window (Sutton, 1988; as in Hessel et al., 2018). Until
    n slabs were seen, `valid` is False. Finite horizons are exact: after a terminal there is nothing to bootstrap from.
    Where slabs have a `discount` [B] of their own, γ is multiplied by it (semi-Markov: Bradtke and Duff, 1994).
    """

    takes: ClassVar = STEP

    def __init__(self, steps: int, gamma: float) -> None:
        if steps < 1:
            raise ValueError(f"n_step is {steps}, must be 1 or more")
        self.steps, self.gamma = steps, gamma
        self.spaces: Spaces = {}
        self.window: list[dict[str, NDArray[Any]]] = []

    def gives(self, inputs: Spaces) -> Spaces:
        """The transition's spaces."""
        self.scalar(inputs, "reward")
        self.scalar(inputs, "done")
        kept = {port: inputs[port] for port in STEP if port != "done"}
        return {**kept, "discount": reals()}

    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        """Start with an empty window."""
        self.spaces = dict(inputs)
        self.window = []

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Push a slab [B]; return the transitions that start n slabs back ([0] while there are none)."""
        slab = {port: np.asarray(inputs[port]) for port in STEP}
        if inputs.get("discount") is not None:
            slab["discount"] = np.asarray(inputs["discount"])
        if self.steps == 1:
            return self._transition([slab])
        self.window.append({port: np.array(value) for port, value in slab.items()})
        if len(self.window) < self.steps:
            return {port: empty(space, 0) for port, space in self.gives(self.spaces).items()}
        found = self._transition(self.window)
        del self.window[0]
        return found

    def _transition(self, window: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Fold the window from the back: R ← r + γ·(1 − done)·R."""
        total = np.zeros_like(window[0]["reward"], dtype=np.float32)
        discount = np.ones_like(total)
        for slab in reversed(window):
            alive = self.gamma * (1.0 - slab["done"].astype(np.float32))
            if "discount" in slab:
                alive = alive * slab["discount"]
            total = slab["reward"] + alive * total
            discount = alive * discount
        first, last = window[0], window[-1]
        return {
            **{port: first[port] for port in ("observation", "mask", "action")},
            "reward": total.astype(np.float32),
            "discount": discount.astype(np.float32),
            "next_observation": last["next_observation"],
            "next_mask": last["next_mask"],
        }

    def state(self) -> dict[str, NDArray[Any]]:
        """The window."""
        return {f"{index}.{port}": value for index, slab in enumerate(self.window) for port, value in slab.items()}

    def restore(self, state: HostArrays) -> None:
        """Rebuild the window."""
        length = len({name.split(".")[0] for name in state})
        ports = (*STEP, "discount") if "0.discount" in state else STEP
        self.window = [{port: np.array(state[f"{index}.{port}"]) for port in ports} for index in range(length)]

"""The contract of a simulator that is compiled together with its learner: pure functions over pytrees of arrays.

What a step draws is handed to it, and so are the beginnings of the episodes that start in it: those are drawn on the
host, in NumPy, many at a time, and lie ready on the device.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Tree = Any
"""A pytree of arrays (a NamedTuple, dict, list or array)."""
Array = Any


class Seen(NamedTuple):
    """What a decision is made on: observation [B, D] and legal actions [B, N]."""

    observation: Array
    mask: Array


class Moved(NamedTuple):
    """What a step gives: the world after it (after a reset where an episode ended), and [B] each.

    The successor of the last step of an episode is not told: nothing is to be had from there.
    """

    world: Tree
    seen: Seen
    reward: Array
    done: Array


class CompiledSimulator(Protocol):
    """B environments in lock-step, as functions.

    Attributes:
        batch: B.
        usual: steps of an episode, about.
        normals: numbers from the standard normal distribution that a step needs, per environment.
        random: the generator behind the beginnings.
    """

    batch: int
    usual: int
    normals: int
    random: np.random.Generator

    @property
    def observation_space(self) -> spaces.Box:
        """Of one environment, [D]."""
        ...

    @property
    def action_space(self) -> spaces.Discrete:
        """Of one environment, N actions."""
        ...

    @property
    def advice(self) -> slice | None:
        """The part of an observation that holds one number per action in the unit of the reward, if there is one."""
        ...

    def constants(self) -> Tree:
        """What the functions below read besides their arguments; the same all along."""
        ...

    def beginnings(self, rounds: int) -> NDArray[np.float32]:
        """Draw ``rounds`` episodes for every environment, [rounds, B, S]."""
        ...

    def begin(self, constants: Tree, beginning: Array) -> tuple[Tree, Seen]:
        """The world of B episodes that begin, from rows of ``beginnings`` [B, S]."""
        ...

    def step(self, constants: Tree, world: Tree, action: Array, normal: Array, beginning: Array) -> Moved:
        """Take one ``action`` per environment [B], with ``normal`` [B, normals]; ended episodes begin anew."""
        ...

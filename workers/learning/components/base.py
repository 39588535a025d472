"""The component contract.

A component names its inputs (`takes`), says which spaces its outputs have once the spaces of its inputs are known
(`gives`), which variables it needs (`variables`), and computes outputs from variables and inputs (`run`) with
functions of the array namespace that it is handed: it holds no arrays and knows no backend. A `Memory` is the
exception by nature: it holds host (NumPy) storage, allocated from spaces, and is serialisable.

A component may be made of others: its `calls` are then nodes, each a call of an inner component, and its `results`
say which inner wire each output is.

To add one: one file here, and one line in the table of `tests/workers/learning/test_components.py`.

Spaces are those of one example each; arrays carry a leading batch dimension on top.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.backends import Array

Space = spaces.Space[Any]
Spaces = Mapping[str, Space]


def reals(*shape: int) -> spaces.Box:
    """Return the space of unbounded float32 arrays of this shape."""
    return spaces.Box(-np.inf, np.inf, shape, np.float32)


def unit(*shape: int) -> spaces.Box:
    """Return the space of float32 arrays in [0, 1]."""
    return spaces.Box(0.0, 1.0, shape, np.float32)


def sample(space: Space, batch: int, rng: np.random.Generator) -> NDArray[Any]:
    """Draw a batch from a space: [batch, *shape]. A MultiBinary (mask) sample always has one bit set or more."""
    if isinstance(space, spaces.Discrete):
        return rng.integers(space.start, space.start + space.n, batch).astype(np.int64)
    if isinstance(space, spaces.MultiBinary):
        bits = rng.random((batch, *space.shape)) < 0.7
        if space.shape:
            bits[:, 0] |= ~bits.any(axis=1)
        return bits
    if not isinstance(space, spaces.Box):
        raise TypeError(f"can't sample {space!r}: only Box, Discrete and MultiBinary are used here")
    shape = (batch, *space.shape)
    if space.is_bounded():
        return rng.uniform(space.low, space.high, shape).astype(space.dtype)
    return rng.standard_normal(shape).astype(space.dtype)


def empty(space: Space, batch: int) -> NDArray[Any]:
    """Return storage for a batch of a space: zeros of [batch, *shape]."""
    dtype = bool if isinstance(space, spaces.MultiBinary) else space.dtype
    return np.zeros((batch, *(space.shape or ())), dtype)


Arrays = Mapping[str, Array]
HostArrays = Mapping[str, NDArray[Any]]


class SpaceError(Exception):
    """A component can't work on the space of one of its inputs; names both."""

    def __init__(self, component: str, port: str, space: Space, wanted: str) -> None:
        super().__init__(f"component {component!r}: input {port!r} has space {space}, wanted is {wanted}")


@dataclass(frozen=True)
class Variable:
    """A variable's shape and how it starts: zeros where `fan_in` is 0, else He-uniform (He et al., 2015)."""

    shape: tuple[int, ...]
    fan_in: int = 0

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)

    def initial(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw the starting value."""
        if not self.fan_in:
            return np.zeros(self.shape, np.float32)
        bound = sqrt(6.0 / self.fan_in)
        return rng.uniform(-bound, bound, self.shape).astype(np.float32)


@dataclass(frozen=True)
class Node:
    """One call of a component: ports ← wires. A wire is an input of the graph, or "node.port" of another node's output.

    Nodes that share a component share its variables, in the variable set `variables`. The inner calls of a composite
    use the set of the composite's own call.
    """

    name: str
    component: Component
    inputs: Mapping[str, str]
    variables: str = "online"


class Component(ABC):
    """A pure function with variables, described by its spaces."""

    takes: ClassVar[tuple[str, ...]]

    @property
    def name(self) -> str:
        """The component's name in error messages."""
        return type(self).__name__

    def calls(self) -> tuple[Node, ...]:
        """Return the inner calls of a composite: their wires are its inputs, or inner outputs."""
        return ()

    def results(self) -> Mapping[str, str]:
        """Return the inner wire of each output of a composite."""
        return {}

    @abstractmethod
    def gives(self, inputs: Spaces) -> Spaces:
        """Return the spaces of the outputs; raises SpaceError for an input that can't be worked on."""

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Return the variables needed for inputs of these spaces."""
        del inputs
        return {}

    @abstractmethod
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Compute the outputs for a batch."""

    def vector(self, inputs: Spaces, port: str) -> int:
        """Return the length of a vector input; raises SpaceError where the input is none."""
        space = inputs[port]
        if not isinstance(space, spaces.Box | spaces.MultiBinary) or len(space.shape) != 1:
            raise SpaceError(self.name, port, space, "a vector")
        return int(space.shape[0])

    def scalar(self, inputs: Spaces, port: str) -> None:
        """Check that an input is one number per example."""
        space = inputs[port]
        if space.shape != ():
            raise SpaceError(self.name, port, space, "one number per example")


class Memory(Component):
    """A component with host storage: allocated once its input spaces are known."""

    @abstractmethod
    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        """Make the (empty) storage."""

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything needed to go on bit-equal."""

    @abstractmethod
    def restore(self, state: HostArrays) -> None:
        """Take a state that `state` gave, for the same spaces."""

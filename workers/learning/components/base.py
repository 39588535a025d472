"""The component interface.

A component names its inputs (`takes`), derives the spaces of its outputs from those of its inputs (`gives`), lists its
variables (`variables`), and computes outputs from variables and inputs (`run`) with the functions of the array
namespace passed in: it holds no arrays and is independent of the backend. Only a `Memory` holds host (NumPy) storage,
allocated from spaces and serialisable.

A component may be a composite: its `calls` are nodes, each a call of an inner component, and its `results` name the
inner wire of each output.

To add a component: one file here, and one line in the table of `tests/workers/learning/test_components.py`.
Spaces are those of one example; arrays have a leading batch dimension in addition.
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
    """Space of unbounded float32 arrays of this shape."""
    return spaces.Box(-np.inf, np.inf, shape, np.float32)


def unit(*shape: int) -> spaces.Box:
    """Space of float32 arrays in [0, 1] of this shape."""
    return spaces.Box(0.0, 1.0, shape, np.float32)


def sample(space: Space, batch: int, rng: np.random.Generator) -> NDArray[Any]:
    """Draw a random batch from a space, [batch, *shape]; masks (MultiBinary) have at least one bit set.

    Raises:
        TypeError: the space is no Box, Discrete or MultiBinary.
    """
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
    """Zero-filled storage for a batch of a space, [batch, *shape]."""
    dtype = bool if isinstance(space, spaces.MultiBinary) else space.dtype
    return np.zeros((batch, *(space.shape or ())), dtype)


Arrays = Mapping[str, Array]
HostArrays = Mapping[str, NDArray[Any]]


class SpaceError(Exception):
    """A component does not support the space of one of its inputs; the message names both."""

    def __init__(self, component: str, port: str, space: Space, wanted: str) -> None:
        super().__init__(f"component {component!r}: input {port!r} has space {space}, wanted is {wanted}")


@dataclass(frozen=True)
class Variable:
    """Shape of a variable and its initialisation: zeros where `fan_in` is 0, else He-uniform (He et al., 2015)."""

    shape: tuple[int, ...]
    fan_in: int = 0

    @property
    def size(self) -> int:
        """Number of the variable's entries."""
        return prod(self.shape)

    def initial(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw the initial value, float32 of ``shape``."""
        if not self.fan_in:
            return np.zeros(self.shape, np.float32)
        bound = sqrt(6.0 / self.fan_in)
        return rng.uniform(-bound, bound, self.shape).astype(np.float32)


@dataclass(frozen=True)
class Node:
    """One call of a component: a wire for each input port. A wire is a graph input, or
    "node.port" of another node's output.

    Nodes that share a component share its variables, in the variable set `variables`. Inner calls of a composite use
    the set of the composite's call.
    """

    name: str
    component: Component
    inputs: Mapping[str, str]
    variables: str = "online"


class Component(ABC):
    """A pure function with variables, described by spaces.

    Attributes:
        takes: names of the inputs.
    """

    takes: ClassVar[tuple[str, ...]]

    @property
    def name(self) -> str:
        """Name in error messages: the class name."""
        return type(self).__name__

    def calls(self) -> tuple[Node, ...]:
        """Inner calls of a composite, wired to its inputs or to inner outputs; empty for other components."""
        return ()

    def results(self) -> Mapping[str, str]:
        """Inner wire of each output of a composite; empty for other components."""
        return {}

    @abstractmethod
    def gives(self, inputs: Spaces) -> Spaces:
        """Spaces of the outputs for inputs of these spaces.

        Raises:
            SpaceError: an input's space is not supported.
        """

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Variables needed for inputs of these spaces, by name."""
        del inputs
        return {}

    @abstractmethod
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Compute the outputs, [B, …] each, for inputs [B, …] with the functions of the array namespace ``xp``."""

    def vector(self, inputs: Spaces, port: str) -> int:
        """Length of a vector input.

        Raises:
            SpaceError: the input is not a vector.
        """
        space = inputs[port]
        if not isinstance(space, spaces.Box | spaces.MultiBinary) or len(space.shape) != 1:
            raise SpaceError(self.name, port, space, "a vector")
        return int(space.shape[0])

    def scalar(self, inputs: Spaces, port: str) -> None:
        """Check that an input has one number per example.

        Raises:
            SpaceError: it has not.
        """
        space = inputs[port]
        if space.shape != ():
            raise SpaceError(self.name, port, space, "one number per example")


class Memory(Component):
    """A component with host (NumPy) storage, allocated once its input spaces are known."""

    @abstractmethod
    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        """Allocate empty storage for inputs of these spaces; ``rng`` is kept for drawing."""

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays from which `restore` resumes bit-equal."""

    @abstractmethod
    def restore(self, state: HostArrays) -> None:
        """Restore a state returned by `state` for the same spaces."""

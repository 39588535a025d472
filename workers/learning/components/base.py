"""The component interface.

In shapes, B counts examples (environments or transitions) and N actions; … stands for a space's own shape.

A component names its inputs (`takes`), derives the spaces of its outputs from those of its inputs (`output_spaces`),
lists its variables (`variables`), and computes outputs from variables and inputs (`run`) with the functions of the
array namespace passed in: it holds no arrays and is independent of the backend. Only a `Memory` holds host (NumPy)
storage, allocated from spaces and serialisable.

A component may be a composite: its `calls` are nodes, each a call of an inner component, and its `results` name the
inner wire of each output.

To add a component: one file here, and one line in the table of `tests/workers/learning/test_components.py`.
Spaces are those of one example; arrays have a leading batch dimension in addition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
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
    """Return the space of unbounded float32 arrays of this shape; without arguments, of single numbers."""
    return spaces.Box(-np.inf, np.inf, shape, np.float32)


def unit(*shape: int) -> spaces.Box:
    """Return the space of float32 arrays with entries in [0, 1]; without arguments, of single numbers."""
    return spaces.Box(0.0, 1.0, shape, np.float32)


def sample(space: Space, batch: int, rng: np.random.Generator) -> NDArray[Any]:
    """Draw an array [batch, *shape] at random from a space; masks (MultiBinary) have at least one bit set.

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
    """Return a zero-filled array [batch, *shape] of the space's dtype, bool for MultiBinary."""
    dtype = bool if isinstance(space, spaces.MultiBinary) else space.dtype
    return np.zeros((batch, *(space.shape or ())), dtype)


Arrays = Mapping[str, Array]
Pullback = Callable[[Arrays], Arrays]
"""Gradients of a scalar by a component's outputs → its gradients by inputs and variables, by name (`differentiate`)."""
HostArrays = Mapping[str, NDArray[Any]]


class SpaceError(Exception):
    """Raised if a component does not support the space of one of its inputs; the message names component and input."""

    def __init__(self, component: str, port: str, space: Space, wanted: str) -> None:
        super().__init__(f"component {component!r}: input {port!r} has space {space}, wanted is {wanted}")


@dataclass(frozen=True)
class Variable:
    """Shape of a variable, and number of inputs per unit for He-uniform initial values (He et al., 2015); 0: zeros."""

    shape: tuple[int, ...]
    fan_in: int = 0

    @property
    def size(self) -> int:
        """Number of the variable's entries."""
        return prod(self.shape)

    def initial(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw the initial float32 array [*shape]: uniform in ±√(6 / fan_in), or zeros where `fan_in` is 0."""
        if not self.fan_in:
            return np.zeros(self.shape, np.float32)
        bound = sqrt(6.0 / self.fan_in)
        return rng.uniform(-bound, bound, self.shape).astype(np.float32)


@dataclass(frozen=True)
class Node:
    """One call of a component.

    Attributes:
        name: unique in the graph.
        component: what to run; nodes with the same component share its variables.
        inputs: a wire for each input port: the name of a graph input, or "node.port" of another node's output.
        variables: name of the variable set to use; the inner calls of a composite use the composite's set.
    """

    name: str
    component: Component
    inputs: Mapping[str, str]
    variables: str = "online"


class Component(ABC):
    """A pure function of input arrays and variables, with spaces as the types of its inputs and outputs.

    Attributes:
        takes: names of the inputs.
        pulls: names of the inputs by which `differentiate` gives gradients; the others are data.
    """

    takes: ClassVar[tuple[str, ...]]
    pulls: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """Name in error messages: the class name."""
        return type(self).__name__

    def calls(self) -> tuple[Node, ...]:
        """Return a composite's inner calls, wired to its inputs or to inner outputs; none for other components."""
        return ()

    def results(self) -> Mapping[str, str]:
        """Return the inner wire ("call.port") of each output of a composite; empty for other components."""
        return {}

    @abstractmethod
    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Return the space of one example of each output, by name, for inputs of these spaces.

        Raises:
            SpaceError: an input's space is not supported.
        """

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Return the variables needed for inputs of these spaces, by name; none by default."""
        del inputs
        return {}

    @abstractmethod
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Compute the output arrays [B, …] from input arrays [B, …] of B examples, by name.

        ``xp`` is the array namespace to compute with, ``variables`` the component's variables by name.
        """

    @property
    def differentiable(self) -> bool:
        """Whether the class that defines its `run` also defines `differentiate`, so that both compute the same."""
        return "differentiate" in next(vars(kind) for kind in type(self).__mro__ if "run" in vars(kind))

    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        """Compute the outputs of `run` by NumPy, with a function that pulls gradients back (reverse mode).

        That function takes the gradients of a scalar by those outputs on which it depends, [B, …] by name, and returns
        its gradients by the inputs in `pulls` and by all variables. Optional: it replaces a backend that records
        operations, whose calls take longer than the arithmetic where networks are small.

        Raises:
            NotImplementedError: the component has none.
        """
        raise NotImplementedError(f"component {self.name!r} has no gradients of its own")

    def vector(self, inputs: Spaces, port: str) -> int:
        """Return the length of the input ``port``; raises SpaceError if the input is not a vector."""
        space = inputs[port]
        if not isinstance(space, spaces.Box | spaces.MultiBinary) or len(space.shape) != 1:
            raise SpaceError(self.name, port, space, "a vector")
        return int(space.shape[0])

    def scalar(self, inputs: Spaces, port: str) -> None:
        """Check that the input ``port`` has one number per example; raises SpaceError if it has another shape."""
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
        """Return the memory's contents as arrays by name, from which `restore` continues bit-equal."""

    @abstractmethod
    def restore(self, state: HostArrays) -> None:
        """Restore arrays that `state` returned for the same spaces; KeyError if one is missing."""

"""Spaces of one example each; arrays carry a leading batch dimension on top."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

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

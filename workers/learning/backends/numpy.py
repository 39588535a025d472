"""The NumPy backend: acts, and is the oracle of every component's forward pass."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.backends.base import Array, Backend


class NumpyBackend(Backend):
    """Plain arrays, no gradients."""

    name = "numpy"
    xp = np

    def asarray(self, array: NDArray[Any]) -> Array:
        """Return the array itself."""
        return np.asarray(array)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """Return the array itself."""
        return np.asarray(array)


def devices() -> tuple[str, ...]:
    """Return the devices that NumPy can use."""
    return ("cpu",)

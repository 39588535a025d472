"""The NumPy backend: acts, and is the oracle of every component's forward pass."""

from collections.abc import Mapping
from typing import Any

import array_api_compat.numpy as namespace
import numpy as np
from numpy.typing import NDArray

from workers.learning.backends.base import Array, Backend, Store, flatten, layout


class NumpyBackend(Backend):
    """Plain arrays, no gradients."""

    name = "numpy"
    xp = namespace

    def asarray(self, array: NDArray[Any]) -> Array:
        """Return the array itself."""
        return np.asarray(array)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """Return the array itself."""
        return np.asarray(array)

    def store(self, values: Mapping[str, NDArray[Any]]) -> Store:
        """Return variables as views of one vector."""
        store = Store(flatten(values), {}, layout(values))
        store.views = store.cut(store.flat)
        return store

    def assign(self, store: Store, flat: Array) -> None:
        """Copy the vector into the store's."""
        store.flat[:] = flat


def devices() -> tuple[str, ...]:
    """Return the devices that NumPy can use."""
    return ("cpu",)

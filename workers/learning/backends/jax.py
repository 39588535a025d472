"""The jax backend: the same pure functions, compiled by XLA. An optional extra."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import jax
import jax.numpy as namespace
import numpy as np
from numpy.typing import NDArray

from workers.learning.backends.base import Array, Backend, BackendError, Function, Store, flatten, layout


class JaxBackend(Backend):
    """Immutable arrays on one device; every run and gradient is compiled once for each shape of its feeds.

    Integers are of 32 bits on the device, and of 64 again on the host.

    Args:
        device: "cpu" or "cuda".
        compiled: accepted for the sake of one signature; jax compiles either way.

    Raises:
        BackendError: there is no such device.
    """

    name = "jax"
    xp = namespace

    def __init__(self, device: str = "cpu", *, compiled: bool = True) -> None:
        del compiled
        if device not in devices():
            raise BackendError(f"device is {device!r}, but jax sees {', '.join(devices())} here")
        self.device = jax.devices(device)[0]
        self._gradients: dict[Callable[..., Any], Callable[..., Any]] = {}

    def asarray(self, array: NDArray[Any]) -> Array:
        """Return a copy on the device: the source may be overwritten while jax still reads it."""
        return jax.device_put(np.array(array), self.device)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """Return a copy on the host."""
        found = np.array(array)
        return found.astype(np.int64) if found.dtype == np.int32 else found

    def store(self, values: Mapping[str, NDArray[Any]]) -> Store:
        """Return variables cut from one vector."""
        store = Store(self.asarray(flatten(values)), {}, layout(values))
        self.assign(store, store.flat)
        return store

    def assign(self, store: Store, flat: Array) -> None:
        """Replace the vector and its views; arrays are immutable."""
        store.flat, store.views = flat, store.cut(flat)

    def compile(self, function: Function) -> Function:
        """Return it compiled for each shape that it meets."""
        return cast("Function", jax.jit(function))

    def gradient(
        self, function: Callable[..., tuple[Array, Mapping[str, Array]]], store: Store, *arguments: Any
    ) -> tuple[Mapping[str, Array], Array]:
        """Differentiate by the flat vector, through the cut into views."""
        if function not in self._gradients:
            cut = store.cut

            def of_flat(flat: Array, *arguments: Any) -> tuple[Array, Mapping[str, Array]]:
                return function(cut(flat), *arguments)

            self._gradients[function] = jax.jit(jax.grad(of_flat, has_aux=True))
        flat, others = self._gradients[function](store.flat, *arguments)
        return others, flat


def devices() -> tuple[str, ...]:
    """Return the devices that jax can use here, the CPU first."""
    found = {"cuda" if device.platform in {"gpu", "cuda"} else device.platform for device in jax.devices()}
    return tuple(sorted(found | {"cpu"}))

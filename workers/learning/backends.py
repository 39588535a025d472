"""Numeric backends (NumPy, torch), and the choice of the fastest device.

A backend provides an array namespace for pure forward functions, keeps variables in one flat vector with named views
(so that optimiser, target network and averaging are few vector operations for any number of layers), and, if it
learns, the gradient of a scalar. Components are independent of the backend.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any, cast

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from workers.learning.algorithms.config import DeviceConfig

Array = Any
"""An array of the bound backend, whose namespace follows the Python array API."""


class BackendError(Exception):
    """Raised if the backend cannot do what is requested, for instance differentiate or use a device."""


Views = Mapping[str, Array]
"""Variables by name, each in its shape."""

Function = Callable[..., dict[str, Array]]

Layout = Mapping[str, tuple[slice, tuple[int, ...]]]
"""Slice of each variable in the flat vector, and its shape."""


@dataclass
class Store:
    """One set of variables: the vector `flat` [P] of P parameters, views of it by variable's name, and their layout."""

    flat: Array
    views: Views
    layout: Layout


class Backend(ABC):
    """Arrays, variables and gradients of one numeric library.

    Attributes:
        name: name of the library ("numpy", "torch").
        xp: array namespace of the library, by the Python array API.
        records: whether it records operations, for `gradient`; without, a graph is differentiated by its components'
            own gradients, as far as they have them.
    """

    name: str
    xp: Any
    records = False

    @abstractmethod
    def asarray(self, array: NDArray[Any]) -> Array:
        """Convert a NumPy array to this backend, sharing memory where possible."""

    @abstractmethod
    def to_numpy(self, array: Array) -> NDArray[Any]:
        """Convert an array to NumPy, sharing memory where possible."""

    def store(self, values: Mapping[str, NDArray[Any]]) -> Store:
        """Return new variables that are initialised with copies of the values, by name."""
        flat, places = self.asarray(flatten(values)), layout(values)
        return Store(flat, self.cut(places, flat), places)

    def cut(self, layout: Layout, flat: Array) -> Views:
        """Return a flat vector [P] cut into variables by name, which share its memory."""
        return {name: flat[place].reshape(shape) for name, (place, shape) in layout.items()}

    def gradient(
        self, function: Callable[..., tuple[Array, Mapping[str, Array]]], views: Views, *arguments: Any
    ) -> tuple[Mapping[str, Array], Array]:
        """Evaluate `function(views, *arguments)`, which returns (scalar, other arrays), and differentiate the scalar.

        The function must be pure; pass the same object each time, since a backend may compile it once.
        The arguments are nested mappings of arrays. Returns the other arrays, and the gradient by
        `views` (from `cut`) as a flat vector [P].

        Raises:
            BackendError: the backend has no gradients.
        """
        del function, views, arguments
        raise BackendError(f"the {self.name} backend records no operations, and so has no gradient of a function")

    def compile(self, function: Function) -> Function:
        """Compile a pure function of nested mappings of arrays, where the backend can; else return it unchanged."""
        return function

    def without_gradient(self) -> AbstractContextManager[Any]:
        """Return a context manager in which operations are not recorded for differentiation."""
        return nullcontext()


def flatten(values: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Concatenate the values, in order, to one float32 vector [P]; P counts their entries."""
    parts = [np.asarray(value, dtype=np.float32).reshape(-1) for value in values.values()]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)


def layout(values: Mapping[str, NDArray[Any]]) -> Layout:
    """Return slice and shape, by name, of each value in the vector that `flatten` makes of them."""
    places, start = {}, 0
    for name, value in values.items():
        places[name] = (slice(start, start + int(np.size(value))), np.shape(value))
        start += int(np.size(value))
    return places


class NumpyBackend(Backend):
    """Backend of plain NumPy arrays, which learns by the gradients that components have of their own."""

    name = "numpy"
    xp = np

    def asarray(self, array: NDArray[Any]) -> Array:
        """Return the array itself, not a copy."""
        return np.asarray(array)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """Return the array itself, not a copy."""
        return np.asarray(array)


# Backends by name, and the choice of the fastest device for a config.

BACKENDS = ("numpy", "torch")
TORCH = "workers.learning.torch_backend"
"""Module of the torch backend, imported on first use."""

LEARNS = "torch"
"""Name of the backend with gradients."""
REPEATS = 3


def get_backend(name: str, device: str = "cpu", *, compiled: bool = False) -> Backend:
    """Return a new backend; ``device`` ("cpu", "cuda") and ``compiled`` are for "torch" only.

    Raises:
        BackendError: the name is unknown, or the device or a compiler is unavailable.
    """
    if name not in BACKENDS:
        raise BackendError(f"unknown backend {name!r}; known are {', '.join(BACKENDS)}")
    if name == "numpy":
        return NumpyBackend()
    return cast("Backend", import_module(TORCH).TorchBackend(device, compiled=compiled))


def candidates(place: DeviceConfig) -> list[DeviceConfig]:
    """Return the config with each device that it permits; for `auto`, every device that torch can use.

    An unavailable device is returned too; `backend_of` refuses it.
    """
    devices = import_module(TORCH).devices()
    wanted = devices if place.device == "auto" else (place.device,)
    return [structs.replace(place, device=device) for device in wanted]


def resolve(
    place: DeviceConfig, trial: Callable[[DeviceConfig], Callable[[], None]], clock: Callable[[], float] = perf_counter
) -> DeviceConfig:
    """Return the config with the fastest of the devices that it permits; a single one is not timed.

    ``trial`` prepares a workload on a device and returns the function to time: one warm-up run, then the minimum of
    3 runs, by ``clock`` (seconds).

    Raises:
        BackendError: a device to be timed is unavailable.
    """
    result = candidates(place)
    if len(result) == 1:
        return result[0]
    return min(result, key=lambda one: _seconds(trial(one), clock))


def backend_of(place: DeviceConfig, *, own_gradients: bool = False) -> Backend:
    """Return the backend to learn with on a config's device, which must not be `auto`.

    It is torch; but NumPy on the CPU for a graph whose components have gradients of their own (``own_gradients``):
    at usual sizes an update then takes less time, most of which torch spends between operations.

    Raises:
        BackendError: the device or, for `compiled`, a compiler is unavailable.
    """
    if own_gradients and place.device == "cpu" and not place.compiled:
        return get_backend("numpy")
    return get_backend(LEARNS, place.device, compiled=place.compiled)


def _seconds(work: Callable[[], None], clock: Callable[[], float]) -> float:
    work()
    spent = []
    for _ in range(REPEATS):
        start = clock()
        work()
        spent.append(clock() - start)
    return min(spent)

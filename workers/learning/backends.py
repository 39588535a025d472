"""The backend contract: where arrays live, and who can differentiate.

A backend gives an array namespace for the pure forward functions, keeps variables in one flat vector with a named view
of each (so that optimiser, target network and averaging are a few vector operations whatever the number of layers),
and, if it learns, the gradient of a scalar. Components never ask which backend they run on.
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
"""An array of the bound backend; its namespace follows the Python array API."""


class BackendError(Exception):
    """The backend can't do what was asked of it (for instance, differentiate)."""


Views = Mapping[str, Array]
"""Variables by name, each in its shape."""

Function = Callable[..., dict[str, Array]]

Layout = Mapping[str, tuple[slice, tuple[int, ...]]]
"""Where each variable stands in the flat vector, and its shape."""


@dataclass
class Store:
    """Variables of one set: `flat` [P], the views into it by name, and where each stands."""

    flat: Array
    views: Views
    layout: Layout


class Backend(ABC):
    """Arrays, variables and gradients of one numeric library."""

    name: str
    xp: Any

    @abstractmethod
    def asarray(self, array: NDArray[Any]) -> Array:
        """Return the array on this backend, sharing memory where that is possible."""

    @abstractmethod
    def to_numpy(self, array: Array) -> NDArray[Any]:
        """Return the array as NumPy's, sharing memory where that is possible."""

    def store(self, values: Mapping[str, NDArray[Any]]) -> Store:
        """Return new variables that start from copies of the values."""
        flat, places = self.asarray(flatten(values)), layout(values)
        return Store(flat, self.cut(places, flat), places)

    def cut(self, layout: Layout, flat: Array) -> Views:
        """Return a flat vector [P] as variables by name, looking at the same memory."""
        return {name: flat[place].reshape(shape) for name, (place, shape) in layout.items()}

    def gradient(
        self, function: Callable[..., tuple[Array, Mapping[str, Array]]], views: Views, *arguments: Any
    ) -> tuple[Mapping[str, Array], Array]:
        """Evaluate `function(views, *arguments)`, which gives (scalar, other arrays), and differentiate the scalar.

        The function is pure; hand in the same object each time, since a backend may compile it once. The arguments are
        nested mappings of arrays. Returns the other arrays and the gradient by `views`, which `cut` gave, as a flat
        vector [P].
        """
        raise BackendError(
            f"the {self.name} backend acts and checks; it has no gradients for {function!r} of {views!r} {arguments!r}"
        )

    def compile(self, function: Function) -> Function:
        """Return the pure function of nested mappings of arrays, compiled where this backend does that."""
        return function

    def without_gradient(self) -> AbstractContextManager[Any]:
        """Return a context in which nothing is recorded for differentiation."""
        return nullcontext()


def flatten(values: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Join the values, in order, to one float32 vector [P]."""
    parts = [np.asarray(value, dtype=np.float32).reshape(-1) for value in values.values()]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)


def layout(values: Mapping[str, NDArray[Any]]) -> Layout:
    """Return where each value stands in the vector that `flatten` makes."""
    places, start = {}, 0
    for name, value in values.items():
        places[name] = (slice(start, start + int(np.size(value))), np.shape(value))
        start += int(np.size(value))
    return places


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


# Backends by name, and the place on which a config learns fastest.

BACKENDS = ("numpy", "torch")
TORCH = "workers.learning.torch_backend"
"""The module of the backend `torch`, imported only when it is asked for."""

LEARNS = "torch"
"""The backend that differentiates."""
REPEATS = 3


def get_backend(name: str, device: str = "cpu", *, compiled: bool = False) -> Backend:
    """Return a new backend; raises BackendError for an unknown name or device."""
    if name not in BACKENDS:
        raise BackendError(f"unknown backend {name!r}; known are {', '.join(BACKENDS)}")
    if name == "numpy":
        return NumpyBackend()
    return cast("Backend", import_module(TORCH).TorchBackend(device, compiled=compiled))


def candidates(place: DeviceConfig) -> list[DeviceConfig]:
    """Return the places that a config leaves open, each with a device; raises BackendError for none.

    Left open, it is any device that torch sees.
    """
    seen = import_module(TORCH).devices()
    wanted = seen if place.device == "auto" else (place.device,)
    return [structs.replace(place, device=device) for device in wanted]


def resolve(
    place: DeviceConfig, trial: Callable[[Backend], Callable[[], None]], clock: Callable[[], float] = perf_counter
) -> DeviceConfig:
    """Settle what a config leaves open by measurement: the place on which `trial` takes the least time.

    `trial` prepares some work on a backend and returns what is to be timed: once to warm up, then the best of
    `REPEATS`. With one candidate nothing is measured, and `trial` is not called. Raises BackendError where the place
    can't be had.
    """
    found = candidates(place)
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda one: _seconds(trial(backend_of(one)), clock))


def backend_of(place: DeviceConfig) -> Backend:
    """Return the backend of a settled place."""
    return get_backend(LEARNS, place.device, compiled=place.compiled)


def _seconds(work: Callable[[], None], clock: Callable[[], float]) -> float:
    work()
    spent = []
    for _ in range(REPEATS):
        start = clock()
        work()
        spent.append(clock() - start)
    return min(spent)

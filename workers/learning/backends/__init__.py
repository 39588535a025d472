"""Backends by name, imported only when asked for."""

from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import cast

from msgspec import structs

from workers.learning.algorithms.config import DeviceConfig
from workers.learning.backends.base import Backend, BackendError

BACKENDS = {
    "numpy": ("workers.learning.backends.numpy", "NumpyBackend"),
    "torch": ("workers.learning.backends.torch", "TorchBackend"),
}

LEARNS = "torch"
"""The backend that differentiates."""
REPEATS = 3


def get_backend(name: str, device: str = "cpu", *, compiled: bool = False) -> Backend:
    """Return a new backend; raises BackendError for an unknown name or device."""
    if name not in BACKENDS:
        raise BackendError(f"unknown backend {name!r}; known are {', '.join(sorted(BACKENDS))}")
    module, attribute = BACKENDS[name]
    found = getattr(import_module(module), attribute)
    return cast("Backend", found() if name == "numpy" else found(device, compiled=compiled))


def candidates(place: DeviceConfig) -> list[DeviceConfig]:
    """Return the places that a config leaves open, each with a device; raises BackendError for none.

    Left open, it is any device that torch sees.
    """
    seen = import_module(BACKENDS[LEARNS][0]).devices()
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


__all__ = ["BACKENDS", "Backend", "BackendError", "available", "backend_of", "candidates", "get_backend", "resolve"]

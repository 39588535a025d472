"""Backends by name, imported only when asked for."""

from importlib import import_module
from typing import cast

from workers.learning.algorithms.config.shared import Place
from workers.learning.backends.base import Backend, BackendError

BACKENDS = {
    "numpy": ("workers.learning.backends.numpy", "NumpyBackend"),
    "torch": ("workers.learning.backends.torch", "TorchBackend"),
}


def get_backend(name: str) -> Backend:
    """Return a new backend; raises BackendError for an unknown name."""
    if name not in BACKENDS:
        raise BackendError(f"unknown backend {name!r}; known are {', '.join(sorted(BACKENDS))}")
    module, attribute = BACKENDS[name]
    return cast("Backend", getattr(import_module(module), attribute)())


def resolve(place: Place) -> str:
    """Return the name of the backend that a config asks for; `auto` is torch."""
    return "torch" if place.backend == "auto" else place.backend


__all__ = ["BACKENDS", "Backend", "BackendError", "get_backend", "resolve"]

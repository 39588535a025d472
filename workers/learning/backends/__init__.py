"""Backends by name, imported only when asked for."""

from importlib import import_module
from importlib.util import find_spec
from typing import cast

from workers.learning.algorithms.config.shared import Place
from workers.learning.backends.base import Backend, BackendError

BACKENDS = {
    "numpy": ("workers.learning.backends.numpy", "NumpyBackend"),
    "torch": ("workers.learning.backends.torch", "TorchBackend"),
    "jax": ("workers.learning.backends.jax", "JaxBackend"),
}


def available() -> tuple[str, ...]:
    """Return the names of the backends whose library is installed."""
    return tuple(name for name in BACKENDS if find_spec(name) is not None)


def get_backend(name: str, device: str = "cpu", *, compiled: bool = False) -> Backend:
    """Return a new backend; raises BackendError for an unknown name, device, or a library that is not installed."""
    if name not in BACKENDS:
        raise BackendError(f"unknown backend {name!r}; known are {', '.join(sorted(BACKENDS))}")
    if name not in available():
        raise BackendError(f"the {name} backend needs the extra {name!r}: pip install 'steward[{name}]'")
    module, attribute = BACKENDS[name]
    found = getattr(import_module(module), attribute)
    return cast("Backend", found() if name == "numpy" else found(device, compiled=compiled))


def resolve(place: Place) -> str:
    """Return the name of the backend that a config asks for; `auto` is torch."""
    return "torch" if place.backend == "auto" else place.backend


__all__ = ["BACKENDS", "Backend", "BackendError", "available", "get_backend", "resolve"]

"""Backends by name, imported only when asked for."""

from importlib import import_module
from typing import cast

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


__all__ = ["BACKENDS", "Backend", "BackendError", "get_backend"]

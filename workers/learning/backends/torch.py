"""The torch backend: learns and acts."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import array_api_compat.torch as namespace
import numpy as np
import torch
from numpy.typing import NDArray

from workers.learning.backends.base import Array, Backend, Store, Views, flatten, layout


class TorchBackend(Backend):
    """Tensors on one device; on the CPU they share memory with NumPy's arrays.

    One thread: at these sizes a second one gains little, and takes the core of a process beside it.
    """

    name = "torch"
    xp = namespace

    def __init__(self, device: str = "cpu", threads: int = 1) -> None:
        torch.set_num_threads(threads)
        self.device = torch.device(device)

    def asarray(self, array: NDArray[Any]) -> Array:
        """Return a tensor over the same memory (CPU) or a copy on the device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """Return the tensor's values, detached."""
        result: NDArray[Any] = array.detach().cpu().numpy()
        return result

    def store(self, values: Mapping[str, NDArray[Any]]) -> Store:
        """Return leaf tensors that are views of one vector."""
        store = Store(torch.from_numpy(flatten(values)).to(self.device), {}, layout(values))
        store.views = {name: view.detach().requires_grad_() for name, view in store.cut(store.flat).items()}
        return store

    def assign(self, store: Store, flat: Array) -> None:
        """Copy the vector into the store's, in place; its views see it."""
        with torch.no_grad():
            store.flat.copy_(flat)

    def gradient(
        self, function: Callable[[Views], tuple[Array, Mapping[str, Array]]], store: Store
    ) -> tuple[Mapping[str, Array], Array]:
        """Differentiate by reverse mode; variables that the scalar does not depend on get zeros."""
        with torch.enable_grad():
            scalar, others = function(store.views)
        leaves = list(store.views.values())
        parts = torch.autograd.grad(scalar, leaves, allow_unused=True)
        flat = torch.cat(
            [
                torch.zeros_like(leaf).reshape(-1) if part is None else part.reshape(-1)
                for leaf, part in zip(leaves, parts, strict=True)
            ]
        )
        return {name: value.detach() for name, value in others.items()}, flat

    def without_gradient(self) -> AbstractContextManager[Any]:
        """Return torch's no_grad."""
        return torch.no_grad()

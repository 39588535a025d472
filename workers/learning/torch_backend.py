"""Torch backend: learns and acts, eagerly or compiled, on the CPU or a GPU."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import array_api_compat.torch as namespace
import numpy as np
import torch
from numpy.typing import NDArray

from workers.learning.backends import Array, Backend, BackendError, Function, Layout, Views

PROGRAMS = 64
"""Limit of torch.compile on the compiled variants of a graph's programs; further ones run uncompiled."""


class TorchBackend(Backend):
    """Backend of tensors on one device; on the CPU they share memory with NumPy arrays.

    One thread by default: for networks of usual size a second one gains little, and takes a core from another process.

    Args:
        device: "cpu" or "cuda".
        compiled: compile pure functions with torch.compile; needs a C++ compiler (and triton on a GPU).
        threads: size of torch's thread pool.

    Raises:
        BackendError: the device or the compiler is unavailable.
    """

    name = "torch"
    xp = namespace
    records = True

    def __init__(self, device: str = "cpu", *, compiled: bool = False, threads: int = 1) -> None:
        torch.set_num_threads(threads)
        if device != "cpu" and not torch.cuda.is_available():
            raise BackendError(f"device is {device!r}, but torch sees no GPU here; 'cpu' is what there is")
        self.device, self.compiled = torch.device(device), compiled
        self._compiled: dict[Callable[..., Any], Callable[..., Any]] = {}
        if compiled:
            torch._dynamo.config.recompile_limit = PROGRAMS  # noqa: SLF001  (it counts all programs of a graph as one)
            _check_compiler(self.device)

    def asarray(self, array: NDArray[Any]) -> Array:
        """Return a tensor on the device: over the same memory on the CPU, a copy on a GPU or of a read-only array."""
        whole = np.ascontiguousarray(array)
        return torch.from_numpy(whole if whole.flags.writeable else whole.copy()).to(self.device)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """Return the tensor's values as a NumPy array on the CPU, without gradient."""
        result: NDArray[Any] = array.detach().cpu().numpy()
        return result

    def cut(self, layout: Layout, flat: Array) -> Views:
        """Return a flat vector [P] cut into variables by name, as leaf tensors that require gradients."""
        return {name: view.detach().requires_grad_() for name, view in super().cut(layout, flat).items()}

    def compile(self, function: Function) -> Function:
        """Return the function, compiled if ``compiled``; numbers become tensors, so new values do not recompile."""
        return _compile_function(function, self.device) if self.compiled else function

    def gradient(
        self, function: Callable[..., tuple[Array, Mapping[str, Array]]], views: Views, *arguments: Any
    ) -> tuple[Mapping[str, Array], Array]:
        """Evaluate `function(views, *arguments)`, which returns (scalar, arrays); return the arrays and a gradient [P].

        It is the scalar's gradient by all P numbers of ``views`` (from `cut`) in their order; 0 where the scalar does
        not depend on them.

        Raises:
            RuntimeError: the scalar depends on none of the views, or a view was not made by `cut`.
        """
        if self.compiled:
            if function not in self._compiled:
                self._compiled[function] = _compile_function(function, self.device)
            function = self._compiled[function]
        with torch.enable_grad():
            scalar, others = function(views, *arguments)
        leaves = list(views.values())
        parts = torch.autograd.grad(scalar, leaves, allow_unused=True)
        flat = torch.cat(
            [
                torch.zeros_like(leaf).reshape(-1) if part is None else part.reshape(-1)
                for leaf, part in zip(leaves, parts, strict=True)
            ]
        )
        return {name: value.detach() for name, value in others.items()}, flat

    def without_gradient(self) -> AbstractContextManager[Any]:
        """Return a context manager in which torch records no gradients."""
        return torch.no_grad()


def devices() -> tuple[str, ...]:
    """Return the names of the devices that torch can use here: "cpu", and "cuda" if there is a GPU."""
    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def _compile_function(function: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """Return the compiled function, which converts number arguments to tensors first."""
    program = torch.compile(function)

    def run(*arguments: Any) -> Any:
        with warnings.catch_warnings():  # the array namespace's lookup is cached, which tracing ignores
            warnings.filterwarnings("ignore", message="Dynamo detected a call to a `functools.lru_cache`")
            return program(*(_tensors(argument, device) for argument in arguments))

    return run


def _tensors(argument: Any, device: torch.device) -> Any:
    if isinstance(argument, Mapping):
        return {name: _tensors(value, device) for name, value in argument.items()}
    return torch.tensor(float(argument), device=device) if isinstance(argument, int | float) else argument


def _check_compiler(device: torch.device) -> None:
    """Compile a sum, so that BackendError is raised before a graph is built if `torch.compile` finds no compiler."""
    try:
        torch.compile(_plus_one)(torch.zeros(2, device=device))
    except RuntimeError as error:
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BackendError(
            "compiled is true, but torch.compile does not work here: it needs a C++ compiler (g++ or clang++, or what "
            f"the variable CXX names) and Python's headers. It said: {text}"
        ) from error


def _plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1.0

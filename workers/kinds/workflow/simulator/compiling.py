"""Compiled loops over the kind's own functions.

Compiled code is kept on disk, in a folder named for what the sources say: Numba itself looks only at the file of the
function that it compiles, not at those of the functions that are called.
"""

import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

import app.kinds.workflow

Function = TypeVar("Function", bound=Callable[..., object])

SOURCES = (Path(app.kinds.workflow.__file__).parent, Path(__file__).parent)


def _digest() -> str:
    """Of everything that may be compiled."""
    texts = hashlib.sha256(numba.__version__.encode())
    for folder in SOURCES:
        for path in sorted(folder.rglob("*.py")):
            texts.update(path.read_bytes())
    return texts.hexdigest()[:16]


def _folder() -> Path:
    """Beside this file, or where that cannot be written, in the user's own corner of the temporary folder."""
    cache = Path(__file__).parent / "__pycache__"
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    kept = cache if os.access(cache.parent, os.W_OK) else Path(tempfile.gettempdir()) / f"steward-kernels-{owner}"
    return kept / _digest()


if "NUMBA_CACHE_DIR" not in os.environ:
    config: Any = numba.config
    config.CACHE_DIR = str(_folder())


def kernel(function: Function) -> Function:
    """``function`` compiled at its first call, and kept; it releases the interpreter's lock."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast("Function", compiled)


def inlined(function: Function) -> Function:
    """As ``kernel``, for what kernels call at every step: handing over dozens of arrays would take longer than it."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)
    return cast("Function", compiled)


def compilable(*functions: Callable[..., object]) -> None:
    """Let kernels call plain functions of the kind."""
    for function in functions:
        register_jitable(function)


def compiled_as(plain: Callable[..., object]) -> Callable[[Function], Function]:
    """Let kernels call the decorated function where the kind's code calls ``plain``."""

    def decorate(function: Function) -> Function:
        def typed(*_: object) -> Function:
            return function

        vars(typed)["__signature__"] = inspect.signature(function)
        overload(plain)(typed)
        return function

    return decorate


def _borrowed(_: Any, array: Any) -> Any:
    """How ``borrowed`` is compiled: the array's structure with nobody as its owner."""
    structure: Any = cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = structure.create_struct_proxy(signature.return_type)(context, builder, value=arguments[0])
        view.meminfo = structure.get_null_value(view.meminfo.type)
        view.parent = structure.get_null_value(view.parent.type)
        return view._getvalue()  # noqa: SLF001 - how structures are read in Numba's own intrinsics

    return array(array), generate


borrowed: Any = intrinsic(_borrowed)
"""The same array without an owner: references to it are not counted. Whoever calls the kernel keeps it alive."""

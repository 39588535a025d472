"""Compilation of simulators' loops with Numba, and its cache on disk.

Numba notices changes only in the file of the function that it compiles, not in those of the functions called from it.
So the cache is a folder named by a digest of all sources and of the compiler's settings.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., object])
SETTINGS: Any = numba.config


class Compiler:
    """Compiles functions and caches the machine code on disk, keyed by the content of ``sources`` (files or folders).

    The cache is ``home/__pycache__``; where ``home`` is not writable, a folder of this user in the temporary directory.
    The environment variable ``NUMBA_CACHE_DIR`` overrides both.
    """

    def __init__(self, home: Path, *sources: Path) -> None:
        self._folder = str(_writable(home) / _digest(sources))

    def kernel(self, function: Function) -> Function:
        """Return ``function`` compiled at its first call and cached; its code releases the global interpreter lock."""
        return self._compile(function)

    def inlined(self, function: Function) -> Function:
        """Return ``function`` (a small one) compiled at its first call, cached, and inlined into compiled callers."""
        return self._compile(function, forceinline=True)

    def _compile(self, function: Function, **options: Any) -> Function:
        before = SETTINGS.CACHE_DIR
        if "NUMBA_CACHE_DIR" not in os.environ:
            SETTINGS.CACHE_DIR = self._folder
        try:
            compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        finally:
            SETTINGS.CACHE_DIR = before
        return cast("Function", compiled)


def _writable(home: Path) -> Path:
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    return (
        home / "__pycache__" if os.access(home, os.W_OK) else Path(tempfile.gettempdir()) / f"steward-kernels-{owner}"
    )


def _digest(sources: tuple[Path, ...]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of this module, ``sources``, Numba's version and optimisation level.

    Raises:
        OSError: a file can't be read.
    """
    texts = hashlib.sha256(f"{numba.__version__} {SETTINGS.OPT}".encode())
    for path in (Path(__file__), *sources):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            texts.update(file.read_bytes())
    return texts.hexdigest()[:16]


def _without_owner(context: Any, builder: Any, array: Any, value: Any) -> Any:
    structure: Any = cgutils
    view = structure.create_struct_proxy(array)(context, builder, value=value)
    view.meminfo = structure.get_null_value(view.meminfo.type)
    view.parent = structure.get_null_value(view.parent.type)
    return view._getvalue()  # noqa: SLF001 - how structures are read in Numba's own intrinsics


def _borrowed(_: Any, value: Any) -> Any:
    """Return Numba's (signature, code generator) of ``borrowed``: the same arrays, without reference counts."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(value, types.Array):
            return _without_owner(context, builder, value, arguments[0])
        values = [builder.extract_value(arguments[0], place) for place in range(len(value.types))]
        pairs = zip(value.types, values, strict=True)
        whole = [_without_owner(context, builder, kind, v) if isinstance(kind, types.Array) else v for kind, v in pairs]
        return context.make_tuple(builder, signature.return_type, whole)

    return value(value), generate


borrowed: Any = intrinsic(_borrowed)
"""An array, or a named tuple of arrays, without an owner, so that compiled code does not count references to it. The
caller must keep the original alive.
"""

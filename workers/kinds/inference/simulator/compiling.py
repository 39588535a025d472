"""How this kind's loops are compiled.

Numba looks only at the file of the function that it compiles, not at those of the functions that are called: so the
compiled code is kept in a folder that is named for what all those sources say.
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

from app.kinds.inference import model, quality, transitions

Function = TypeVar("Function", bound=Callable[..., object])
OWN = Path(__file__).parent
COMPILED = (
    *(OWN / f"{name}.py" for name in ("arrivals", "compiling", "kernels")),
    *(Path(str(module.__file__)) for module in (model, quality, transitions)),
)


def _folder() -> str:
    """Beside this file, or where that cannot be written, in the user's own corner of the temporary folder."""
    texts = hashlib.sha256(numba.__version__.encode())
    for path in COMPILED:
        texts.update(path.read_bytes())
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    kept = OWN / "__pycache__" if os.access(OWN, os.W_OK) else Path(tempfile.gettempdir()) / f"steward-kernels-{owner}"
    return str(kept / texts.hexdigest()[:16])


def _compiled(function: Function, **options: Any) -> Function:
    settings: Any = numba.config
    before = settings.CACHE_DIR
    if "NUMBA_CACHE_DIR" not in os.environ:
        settings.CACHE_DIR = _folder()
    try:
        compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    finally:
        settings.CACHE_DIR = before
    return cast("Function", compiled)


def kernel(function: Function) -> Function:
    """``function`` compiled at its first call, and kept; it releases the interpreter's lock."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """As ``kernel``, for what is called at every event: handing over dozens of arrays would take longer than it."""
    return _compiled(function, forceinline=True)


def _borrowed(_: Any, given: Any) -> Any:
    """How ``borrowed`` is compiled: each array's structure with nobody as its owner."""
    structure: Any = cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = []
        for place, kind in enumerate(given.types):
            value = builder.extract_value(arguments[0], place)
            if isinstance(kind, types.Array):
                view = structure.create_struct_proxy(kind)(context, builder, value=value)
                view.meminfo = structure.get_null_value(view.meminfo.type)
                view.parent = structure.get_null_value(view.parent.type)
                value = view._getvalue()  # noqa: SLF001 - how structures are read in Numba's own intrinsics
            values.append(value)
        return context.make_tuple(builder, signature.return_type, values)

    return given(given), generate


borrowed: Any = intrinsic(_borrowed)
"""A named tuple's arrays without an owner: references to them are not counted. Whoever calls keeps them alive."""

"""How this kind's loops are compiled.

Numba looks only at the file of the function that it compiles, not at those of the functions that are called: so the
compiled code is kept in a folder that is named for what all of this folder's sources say.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])
OWN = Path(__file__).parent


def _folder() -> str:
    """Beside this file, or where that cannot be written, in the user's own corner of the temporary folder."""
    texts = hashlib.sha256(numba.__version__.encode())
    for path in sorted(OWN.glob("*.py")):
        texts.update(path.read_bytes())
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    kept = OWN / "__pycache__" if os.access(OWN, os.W_OK) else Path(tempfile.gettempdir()) / f"steward-kernels-{owner}"
    return str(kept / texts.hexdigest()[:16])


def kernel(function: Function) -> Function:
    """``function`` compiled at its first call, and kept; it releases the interpreter's lock."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    if "NUMBA_CACHE_DIR" not in os.environ:
        settings.CACHE_DIR = _folder()
    try:
        compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        settings.CACHE_DIR = before
    return cast("Function", compiled)

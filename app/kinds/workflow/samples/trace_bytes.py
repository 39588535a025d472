"""A trace as bytes of its own and back: what a workload of kind ``workflow`` keeps as an execution."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors

from app.kinds.workflow.trace import Trace

LEVEL = 3
ARRAYS = tuple(name for name in Trace._fields if name not in ("names", "users", "origin", "predicted"))
SILENT = ("user", "group", "parents")
"""Arrays of indices that may say nothing."""


def packed(trace: Trace) -> bytes:
    """Everything that a trace says, as safetensors; equal traces give equal bytes.

    Left out is an array that says nothing (all unknown, or no edge at all); names that are whole numbers are kept as
    such.
    """
    arrays = {name: array for name in ARRAYS if _says(name, array := getattr(trace, name))}
    known: dict[str, Any] = {"tasks": trace.tasks, "users": trace.users, "origin": trace.origin}
    numbers = _numbers(trace.names)
    if numbers is None:
        known["names"] = trace.names
    else:
        arrays["names"] = numbers
    # one entry of metadata, for the order of several is not fixed
    return safetensors.save(arrays, {"trace": json.dumps(known, sort_keys=True)})


def compressed(plain: bytes) -> bytes:
    """As it is stored."""
    return zlib.compress(plain, LEVEL)


def unpacked(stored: bytes) -> Trace:
    """The trace out of what ``compressed`` gave of ``packed``."""
    plain = zlib.decompress(stored)
    arrays = safetensors.load(plain)
    header = json.loads(plain[8 : 8 + int.from_bytes(plain[:8], "little")])
    known = json.loads(header["__metadata__"]["trace"])
    numbers = arrays.pop("names", None)
    names = known["names"] if numbers is None else map(str, numbers.tolist())
    found = {name: arrays[name] if name in arrays else _unknown(name, known["tasks"], arrays) for name in ARRAYS}
    return Trace(names=tuple(names), users=tuple(known["users"]), origin=known["origin"], **found)


def _says(name: str, array: NDArray[Any]) -> bool:
    if array.dtype.kind == "f":
        return bool((~np.isnan(array)).any())
    return name not in SILENT or bool((array != -1).any())


def _numbers(names: tuple[str, ...]) -> NDArray[np.int64] | None:
    """Names as numbers that read back as the same names."""
    try:
        numbers = np.array([int(name) for name in names], np.int64)
    except (ValueError, OverflowError):
        return None
    return numbers if tuple(map(str, numbers.tolist())) == names else None


def _unknown(name: str, tasks: int, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """An array that says nothing."""
    if name in ("user", "group"):
        return np.full(tasks, -1, np.int64)
    if name == "parents":
        return np.zeros(0, np.int64)
    return np.full(len(arrays.get("parents", ())) if name == "data" else tasks, np.nan)

"""Named arrays within named arrays: parts are told apart by a prefix of their names."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


def part(arrays: Arrays, prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names start with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def prefixed(arrays: Arrays, prefix: str) -> dict[str, NDArray[Any]]:
    """Undo `part`."""
    return {f"{prefix}{name}": value for name, value in arrays.items()}

"""Arrays with metadata as safetensors bytes; equal contents give equal bytes."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors_numpy

LENGTH = 8  # bytes of the header's length, which come first


def write_tensors(arrays: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str]) -> bytes:
    """Serialise named arrays as safetensors; metadata is sorted by name, as the library's order is arbitrary."""
    data = safetensors_numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, dict(metadata))
    end = LENGTH + int.from_bytes(data[:LENGTH], "little")
    header = json.loads(data[LENGTH:end]) | {"__metadata__": dict(sorted(metadata.items()))}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % LENGTH)
    return len(text).to_bytes(LENGTH, "little") + text + data[end:]


def read_tensors(data: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the metadata and the arrays by name of a safetensors file; allocates no more memory than its size.

    Raises:
        ValueError: the bytes are no safetensors file with metadata.
    """
    try:
        arrays = safetensors_numpy.load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a safetensors file: {error}") from error
    return read_header(data), arrays


def read_header(data: bytes) -> dict[str, str]:
    """Return the metadata of a safetensors file, without reading its arrays.

    Raises:
        ValueError: the bytes are no safetensors file with metadata.
    """
    length = int.from_bytes(data[:LENGTH], "little")
    if length > len(data) - LENGTH:
        raise ValueError("not a safetensors file: its header is longer than the file")
    header = read_json(data[LENGTH : LENGTH + length])
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict):
        raise ValueError("the safetensors file carries no metadata")
    return metadata


def read_json(text: str | bytes) -> Any:
    """Parse a JSON document.

    Raises:
        ValueError: ``text`` isn't JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("is not valid JSON: nested too deeply") from error

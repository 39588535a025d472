"""Arrays with metadata as bytes, in safetensors; equal contents give equal bytes."""

import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy

LENGTH = 8  # bytes of the header's length, which come first


def written(arrays: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str]) -> bytes:
    """A safetensors file. The library writes the metadata in no certain order; here it is sorted."""
    data = safetensors_numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, dict(metadata))
    end = LENGTH + int.from_bytes(data[:LENGTH], "little")
    header = json.loads(data[LENGTH:end]) | {"__metadata__": dict(sorted(metadata.items()))}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % LENGTH)
    return len(text).to_bytes(LENGTH, "little") + text + data[end:]


def read_header(data: bytes) -> dict[str, str]:
    """The string metadata of a safetensors file.

    Raises:
        ValueError: the bytes are no safetensors file with metadata.
    """
    length = int.from_bytes(data[:LENGTH], "little")
    if length > len(data) - LENGTH:
        raise ValueError("not a safetensors file: its header is longer than the file")
    metadata = json.loads(data[LENGTH : LENGTH + length]).get("__metadata__")
    if not isinstance(metadata, dict):
        raise ValueError("the safetensors file carries no metadata")
    return metadata

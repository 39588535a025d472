"""Checkpoints: named arrays and plain values in one safetensors blob; nothing in it can run code."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from workers.learning.parts import part

FORMAT = 1


class CheckpointError(Exception):
    """The bytes are no checkpoint of this format."""


def pack(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> bytes:
    """Join arrays and JSON values to bytes."""
    metadata = {"format": str(FORMAT), "values": json.dumps(values)}
    return bytes(save({name: np.ascontiguousarray(value) for name, value in arrays.items()}, metadata))


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Split bytes that `pack` made; raises CheckpointError."""
    try:
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        arrays = load(data)
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"not a checkpoint: {error}") from error
    if metadata.get("format") != str(FORMAT):
        raise CheckpointError(f"checkpoint format {metadata.get('format')!r}, this reads {FORMAT}")
    return arrays, json.loads(metadata["values"])


def split(state: Mapping[str, Any], prefix: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Separate the arrays of a nested mapping (named by prefix and path, parted by /) from its plain values."""
    arrays: dict[str, NDArray[Any]] = {}
    plain: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[f"{prefix}{name}"] = value
        elif isinstance(value, Mapping):
            inner, plain[name] = split(value, f"{prefix}{name}/")
            arrays.update(inner)
        else:
            plain[name] = value
    return arrays, plain


def join(arrays: Mapping[str, NDArray[Any]], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `split`, from arrays without the prefix."""
    state = {name: join({}, value) if isinstance(value, Mapping) else value for name, value in plain.items()}
    for path, value in arrays.items():
        *folders, name = path.split("/")
        place = state
        for folder in folders:
            place = place[folder]
        place[name] = value
    return state


__all__ = ["FORMAT", "CheckpointError", "join", "pack", "part", "split", "unpack"]

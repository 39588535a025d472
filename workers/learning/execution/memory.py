"""Arrays that processes share.

They lie in a file without a name: the processes that hold its descriptor see the same pages, and the system takes them
back with the last of them, however it ends. So nothing can be left behind, not by `kill -9` either.
"""

import mmap
import os
import tempfile
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ALIGNED = 64  # bytes: a cache line
NAME = "steward-learning"  # what the system's list of mappings calls it; no path leads to it


class Field(NamedTuple):
    """One array: NumPy's name of its type, and its shape."""

    dtype: str
    shape: tuple[int, ...]


Fields = Mapping[str, Field]


def nameless(size: int) -> int:
    """Return a descriptor of `size` zero bytes that no path leads to."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create(NAME)
    else:
        with tempfile.TemporaryFile() as opened:  # not Linux: a file that is deleted while it is open
            file = os.dup(opened.fileno())
    os.truncate(file, size)
    return file


class SharedArrays:
    """Named arrays, zero at first.

    Args:
        fields: what there is; the same in every process.
        file: the descriptor of those who made it; None makes new ones.
    """

    def __init__(self, fields: Fields, file: int | None = None) -> None:
        starts, size = {}, 0
        for name, (dtype, shape) in fields.items():
            starts[name] = size
            size += -(-prod(shape) * np.dtype(dtype).itemsize // ALIGNED) * ALIGNED
        self.file = nameless(max(size, ALIGNED)) if file is None else file
        pages = mmap.mmap(self.file, max(size, ALIGNED))
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.frombuffer(pages, dtype, prod(shape), starts[name]).reshape(shape)
            for name, (dtype, shape) in fields.items()
        }

    def close(self) -> None:
        """Let go; the pages go with the last array that looks at them."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
            self.arrays = {}


class ParameterBuffer:
    """The learner's parameters [P] and progress in shared memory: one process writes, actors read.

    A version that is odd is being written; who reads looks at it before and after, and reads again if it has changed.
    (A processor that reorders stores may still show a mixture of two versions that are one update apart: as harmless as
    the staleness that an actor's parameters have anyway.)
    """

    def __init__(self, parameters: int, file: int | None = None) -> None:
        fields = {
            "version": Field("<i8", (1,)),
            "progress": Field("<f8", (1,)),
            "parameters": Field("<f4", (parameters,)),
        }
        self.shared = SharedArrays(fields, file)
        self._version, self._progress, self._parameters = self.shared.arrays.values()

    @property
    def progress(self) -> float:
        """Share of the training that is done."""
        return float(self._progress[0])

    def write(self, parameters: NDArray[np.float32], progress: float) -> None:
        """Show the next version; one process writes."""
        self._version[0] += 1
        self._parameters[:] = parameters
        self._progress[0] = progress
        self._version[0] += 1

    def read(self, known: int) -> tuple[int, NDArray[np.float32]] | None:
        """Return version and a copy of the parameters; None while they are those of the `known` version."""
        while True:
            version = int(self._version[0])
            if version == known:
                return None
            found = self._parameters.copy()
            if version % 2 == 0 and int(self._version[0]) == version:
                return version, found

    def close(self) -> None:
        """Let go."""
        del self._version, self._progress, self._parameters
        self.shared.close()

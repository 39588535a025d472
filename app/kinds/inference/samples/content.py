"""An execution of kind ``inference`` as it is kept: measured batches, a log of requests, or both.

A log is held as gzip of microseconds between requests, of users' positions and of sizes, so that it is written and told
in bounded memory, however long it is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy

from app.kinds.tensors import read_header, written

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
FORMAT = "inference-samples-1"
STEP = 1 << 16
"""Requests that are told at once."""
GZIP, LEVEL = 16 + zlib.MAX_WBITS, 6
VARIANT, BATCH, SERVER, CORES, SECONDS = range(5)
"""Columns of ``Content.batches``."""


class Requests(NamedTuple):
    """A log of n requests, in order.

    Attributes:
        time: microseconds, since 1970 (UTC) or since a start of its own, [n].
        user: positions in the layout, [n].
        size: of each, in whatever unit; NaN where it is not known, [n].
    """

    time: NDArray[np.int64]
    user: Bytes
    size: Floats


class Content(NamedTuple):
    """What an execution says.

    Attributes:
        batches: position of the variant, batch size, position of the server class, cores, seconds, [m, 5].
        requests: a log; without requests where there is none.
    """

    batches: Floats
    requests: Requests


class LogWriter:
    """Takes a log in pieces, and holds it compressed.

    Attributes:
        count: requests so far.
        last: microseconds of the last one.
    """

    def __init__(self) -> None:
        self.count, self.last, self._sized = 0, 0, False
        self._columns = [_Column(), _Column(), _Column()]

    def add(self, piece: Requests) -> None:
        """Take the next requests, none of which is earlier than ``last``."""
        if not len(piece.time):
            return
        gaps = np.diff(piece.time, prepend=self.last)
        for column, values in zip(
            self._columns, (gaps.astype("<i8"), piece.user, piece.size.astype("<f8")), strict=True
        ):
            column.add(values.tobytes())
        self.count += len(piece.time)
        self.last = int(piece.time[-1])
        self._sized |= bool((~np.isnan(piece.size)).any())

    def finish(self) -> tuple[dict[str, Bytes], bytes]:
        """The compressed columns by name, none without requests; and a digest of what they say."""
        names = ("time", "user", "size")[: 2 + self._sized] if self.count else ()
        columns = dict(zip(names, self._columns, strict=False))
        digest = b"".join(column.digest.digest() for column in columns.values())
        return {name: np.frombuffer(column.finish(), np.uint8) for name, column in columns.items()}, digest


class _Column:
    def __init__(self) -> None:
        self._compressor, self._out = zlib.compressobj(LEVEL, wbits=GZIP), io.BytesIO()
        self.digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self.digest.update(data)
        self._out.write(self._compressor.compress(data))

    def finish(self) -> bytes:
        self._out.write(self._compressor.flush())
        return self._out.getvalue()


class Packed(NamedTuple):
    """An execution as bytes, and a digest of what it says."""

    data: bytes
    digest: str


def packed(batches: Floats, log: LogWriter) -> Packed:
    """What was read as it is stored."""
    columns, digest = log.finish()
    table = {"batches": batches.astype("<f8")} if len(batches) else {}
    metadata = {"format": FORMAT, "requests": str(log.count)}
    whole = hashlib.sha256(batches.astype("<f8").tobytes() + digest).hexdigest()
    return Packed(written({**table, **columns}, metadata), whole)


def unpacked(data: bytes) -> Content:
    """All that stored bytes say."""
    pieces = [Requests(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0)), *requests_of(data)]
    requests = Requests(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
    return Content(batches_of(data), requests)


def batches_of(data: bytes) -> Floats:
    """The measured batches in stored bytes, [m, 5]."""
    return np.asarray(safetensors_numpy.load(data).get("batches", np.zeros((0, 5))), np.float64)


def requests_of(data: bytes) -> Iterator[Requests]:
    """The requests in stored bytes, at most ``STEP`` at a time."""
    left, last = int(read_header(data)["requests"]), np.int64(0)
    arrays = safetensors_numpy.load(data)
    streams = {name: gzip.GzipFile(fileobj=io.BytesIO(arrays[name].tobytes())) for name in arrays if name != "batches"}
    while left:
        count = min(STEP, left)
        time = last + np.cumsum(np.frombuffer(streams["time"].read(8 * count), "<i8"), dtype=np.int64)
        user = np.frombuffer(streams["user"].read(count), np.uint8)
        size = np.frombuffer(streams["size"].read(8 * count), "<f8") if "size" in streams else np.full(count, np.nan)
        yield Requests(time, user, size)
        left, last = left - count, time[-1]

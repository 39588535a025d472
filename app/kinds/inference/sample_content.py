"""What samples of kind `inference` must hold, and the sample that a run becomes."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy

from app.kinds.contract.samples import LATEST
from app.kinds.inference.layout import Layout
from app.kinds.tensors import read_header, written

# An execution of kind ``inference`` as it is kept: measured batches, a log of requests, or both.
#
# A log is held as gzip of microseconds between requests, of users' positions and of sizes, so that it is written and
# told in bounded memory, however long it is.


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


# What a sample can hold: reports are held to the same, so that a run whose reports were taken can always end.


__all__ = ["LARGEST", "LATEST", "MOST_BATCHES", "MOST_REQUESTS"]
LARGEST = 1e9
MOST_REQUESTS, MOST_BATCHES = 20_000_000, 1_000_000


# Requests and measured batches out of what a run reported: those that a sample can hold, so that each run can end.


NAMES = ("variant", "batch", "seconds")
Event = Mapping[str, Any]


def run_requests(layout: Layout, reports: Sequence[Event]) -> dict[str, list[Any]]:
    """Columns ``time`` and ``user``, a row for each request that arrived, in order of time."""
    found = [one for report in reports for one in report.get("arrived") or ()]
    held = [one for one in found if one["user"] in layout.user_index and 0 <= one["at"] <= LATEST]
    held.sort(key=lambda one: float(one["at"]))
    return {"time": [one["at"] for one in held[:MOST_REQUESTS]], "user": [one["user"] for one in held[:MOST_REQUESTS]]}


def run_batches(layout: Layout, reports: Sequence[Event]) -> dict[str, list[Any]]:
    """Columns ``variant``, ``batch``, ``server`` (a class) and ``seconds``, a row for each batch that was measured.

    That is where the end of a batch says what it was and how long it took; or where its start was reported, and the
    server had the variant loaded by then, as far as its reports tell.
    """
    found = [one for server, events in _by_server(reports).items() for one in _measured(server, events)]
    held = [one for one in found if _held(layout, one)][:MOST_BATCHES]
    return {name: [one[name] for one in held] for name in ("server", *NAMES)}


def _held(layout: Layout, one: Event) -> bool:
    known = one["variant"] in layout.variants and one["server"] in layout.servers
    return known and 1 <= one["batch"] <= layout.batches[-1] and 0 < one["seconds"] <= LARGEST


def _by_server(reports: Sequence[Event]) -> dict[str, list[Event]]:
    """Starts and ends of each server, in order of time; at the same time ends come first."""
    events: dict[str, list[Event]] = {}
    for part in ("finished", "started"):
        for report in reports:
            for one in report.get(part) or ():
                events.setdefault(one["server"], []).append(one)
    return {server: sorted(found, key=lambda one: float(one["at"])) for server, found in events.items()}


def _measured(server: str, events: Sequence[Event]) -> Iterator[Event]:
    where, loaded, open_ = server.rpartition("-")[0], None, None
    for one in events:
        if "user" in one:  # a start
            loaded, open_ = (open_["variant"] if open_ else loaded), one
            continue
        if all(one.get(name) is not None for name in NAMES):
            yield {"server": where, **{name: one[name] for name in NAMES}}
        elif open_ is not None and open_["variant"] == loaded and one["at"] > open_["at"]:
            seconds = one["at"] - open_["at"]
            yield {"server": where, "variant": loaded, "batch": open_["batch"], "seconds": seconds}
        loaded, open_ = (open_["variant"] if open_ else one.get("variant", loaded)), None

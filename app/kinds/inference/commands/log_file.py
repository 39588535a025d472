"""One file of requests or measured batches, as it is read before it is uploaded."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.reading import Reader, Refused
from app.kinds.contract.text import plain
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples.codec import CSV, NDJSON
from app.kinds.inference.samples.content import BATCH, SERVER, VARIANT, batches_of
from app.kinds.inference.samples.reading import csv_reader, ndjson_reader

PIECE = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
READERS: Mapping[str, tuple[str, Callable[[Layout, str | None], Reader]]] = {
    ".csv": (CSV, csv_reader),
    ".ndjson": (NDJSON, ndjson_reader),
    ".jsonl": (NDJSON, ndjson_reader),
}
OWN_START = 1e8
"""Seconds; times below count from a start of their own."""


class LogFile(NamedTuple):
    """A file that was read.

    Attributes:
        path: where it stands.
        name: of the execution that it becomes.
        media_type: of its content, packed or not.
        packed: whether it is gzip.
        words: what is in it, a sentence each.
    """

    path: Path
    name: str
    media_type: str
    packed: bool
    words: tuple[str, ...]

    def pieces(self) -> Iterator[bytes]:
        """The file as it is."""
        with self.path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece


def read(path: Path, layout: Layout) -> LogFile:
    """Check a file against the workload's layout.

    Raises:
        InvalidInput: it can't be right; the line is named.
        OSError: it can't be read.
    """
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    if bare.suffix not in READERS:
        raise InvalidInput([FieldIssue("", f"the name must end in {', '.join(READERS)}, or one of them and .gz", None)])
    media_type, reader = READERS[bare.suffix]
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    try:
        (found,) = reader(layout, bare.stem).read(_blocks(path, packed=packed))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput([FieldIssue("", f"is broken gzip: {error}", None)]) from error
    if isinstance(found, Refused):
        raise InvalidInput([found.issue])
    words = (*_log(found.summary.get("requests"), layout), *_batches(found.data, layout))
    return LogFile(path, bare.stem, media_type, packed, words)


def _blocks(path: Path, *, packed: bool) -> Iterator[bytes]:
    """Whole lines, without the end of the last."""
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        while lines := file.readlines(PIECE):
            yield b"".join(lines).removesuffix(b"\n")


def _log(log: Mapping[str, Any] | None, layout: Layout) -> Iterator[str]:
    if log is None:
        return
    seconds = max(float(log["span_seconds"]), 1e-6)
    start = float(log["start"])
    since = f" from {datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M:%S} UTC" if start >= OWN_START else ""
    yield f"{log['count']:,} requests over {_lasting(seconds)}{since}"
    counts = [*log["of_users"], *[0] * len(layout.users)]
    for name, count in zip(layout.users, counts, strict=False):
        yield f"  {name}: {count:,}, {count / seconds:.3g} a second" if count else f"  {name}: none"


def _batches(data: bytes, layout: Layout) -> Iterator[str]:
    rows = batches_of(data)
    if not len(rows):
        return
    yield f"{len(rows):,} measured batches"
    for position, name in enumerate(layout.variants):
        own = rows[rows[:, VARIANT] == position]
        sizes = ", ".join(f"{size:g}" for size in np.unique(own[:, BATCH]))
        classes = ", ".join(layout.servers[int(place)] for place in np.unique(own[:, SERVER]))
        yield f"  {name}: {len(own):,}, of {sizes} on {classes}" if len(own) else f"  {name}: none"


def _lasting(seconds: float) -> str:
    scales = ((172_800, 86_400, "days"), (7_200, 3_600, "hours"), (120, 60, "minutes"))
    divisor, unit = next(((size, unit) for least, size, unit in scales if seconds >= least), (1, "seconds"))
    return f"{seconds / divisor:.3g} {unit}"


def told(issue: FieldIssue) -> str:
    """``line 12, user: must be …, not 'x'``."""
    parts = issue.pointer.removeprefix("/").split("/")
    where = ["line " + parts[1], *parts[2:]] if parts[0] == "lines" else [issue.pointer] if issue.pointer else []
    value = "" if issue.value is None else f", not {plain(issue.value)!r}"
    return ": ".join(filter(None, [", ".join(where), issue.message + value]))

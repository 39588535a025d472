"""One file of samples, CSV or NDJSON, as it is read before it is uploaded."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from app.charts.text import number
from app.cli.remote.nouns.files import GZIP_MAGIC, PIECE
from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.kind import Kind
from app.kinds.contract.reading import Refused, Sample
from app.kinds.contract.text import plain

MEDIA_TYPES: Mapping[str, str] = {
    ".csv": "text/csv",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
}
OWN_START = 1e8
"""Seconds; times below count from a start of their own."""
Words = Callable[[Sample, Any], Iterator[str]]
"""What is in an execution, a sentence each, given the workload's layout."""


class SampleFile(NamedTuple):
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


def read(path: Path, kind: Kind, layout: Any, words: Words) -> SampleFile:
    """Check a file against the layout of a workload of a kind.

    Raises:
        InvalidInput: it can't be right; the line is named.
        OSError: it can't be read.
    """
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    if bare.suffix not in MEDIA_TYPES:
        known = ", ".join(MEDIA_TYPES)
        raise InvalidInput([FieldIssue("", f"the name must end in {known}, or one of them and .gz", None)])
    media_type = MEDIA_TYPES[bare.suffix]
    reader = kind.samples.formats[media_type].reader(kind.samples(layout), bare.stem)
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    try:
        (found,) = reader.read(_blocks(path, packed=packed))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput([FieldIssue("", f"is broken gzip: {error}", None)]) from error
    if isinstance(found, Refused):
        raise InvalidInput([found.issue])
    return SampleFile(path, bare.stem, media_type, packed, tuple(words(found, layout)))


def _blocks(path: Path, *, packed: bool) -> Iterator[bytes]:
    """Whole lines, without the end of the last."""
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        while lines := file.readlines(PIECE):
            yield b"".join(lines).removesuffix(b"\n")


def since(start: float) -> str:
    """From when on a log tells; nothing where it counts from a start of its own."""
    return f" from {datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M:%S} UTC" if start >= OWN_START else ""


def lasting(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    scales = ((172_800, 86_400, "days"), (7_200, 3_600, "hours"), (120, 60, "minutes"))
    divisor, unit = next(((size, unit) for least, size, unit in scales if seconds >= least), (1, "seconds"))
    return f"{number(seconds / divisor)} {unit}"


def told(issue: FieldIssue) -> str:
    """``line 12, user: must be …, not 'x'``."""
    parts = issue.pointer.removeprefix("/").split("/")
    where = ["line " + parts[1], *parts[2:]] if parts[0] == "lines" else [issue.pointer] if issue.pointer else []
    value = "" if issue.value is None else f", not {plain(issue.value)!r}"
    return ": ".join(filter(None, [", ".join(where), issue.message + value]))

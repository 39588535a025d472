"""Where a trace is read from: a file or lines, plain or gzip; never more than a piece of it in memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO

from app.kinds.contract.inputs import FieldIssue, InvalidInput

Source = str | PathLike[str] | Iterable[bytes] | Iterable[str]
"""Path of a file, plain or gzip, or its content: lines, or pieces for what is not read by lines; bytes or text."""
GZIP_MAGIC = b"\x1f\x8b"
PIECE = 1 << 16


def lines(source: Source) -> Iterator[bytes]:
    """The lines of a source.

    Raises:
        InvalidInput: it is gzip, and broken.
        OSError: the file can't be read.
    """
    if not isinstance(source, (str, PathLike)):
        yield from (line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line for line in source)
        return
    with _opened(source) as stream:
        yield from stream


def pieces(source: Source) -> Iterator[bytes]:
    """The bytes of a file, ``PIECE`` at a time, or what is given as it comes; errors as of ``lines``."""
    if not isinstance(source, (str, PathLike)):
        yield from lines(source)
        return
    with _opened(source) as stream:
        while piece := stream.read(PIECE):
            yield piece


@contextmanager
def _opened(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    with Path(path).open("rb") as raw:
        zipped = raw.peek(2)[:2] == GZIP_MAGIC
        try:
            if not zipped:
                yield raw
                return
            with gzip.GzipFile(fileobj=raw) as unzipped, io.BufferedReader(unzipped, PIECE) as stream:
                yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidInput([FieldIssue("", f"the gzip file is broken: {error}", str(path))]) from error

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
"""Path of a file, plain or gzip, or its content, bytes or text: one or more whole lines at a time, or pieces for what
is not read by lines."""
GZIP_MAGIC = b"\x1f\x8b"
PIECE = 1 << 16


def lines(source: Source) -> Iterator[bytes]:
    """The lines of a source, or the blocks of lines that it is given as.

    Raises:
        InvalidInput: it is gzip, and broken.
        OSError: the file can't be read.
    """
    if not isinstance(source, (str, PathLike)):
        yield from (line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line for line in source)
        return
    with _opened(source) as stream:
        yield from stream


def blocks(source: Source) -> Iterator[bytes]:
    """Many whole lines at a time, without the end of the last; errors as of ``lines``."""
    held: list[bytes] = []
    size = 0
    for line in lines(source):
        held.append(line.removesuffix(b"\n"))
        size += len(line) + 1
        if size >= PIECE:
            yield b"\n".join(held)
            held, size = [], 0
    if held:
        yield b"\n".join(held)


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

"""A body as lines: unpacked, measured against its limit, and split, with only one chunk in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from app.errors import BadRequest, FieldError, Invalid, TooLarge

if TYPE_CHECKING:
    from zlib import _Decompress as _Unpacker

PIECE = 1 << 18  # most bytes unpacked at once
GZIP = 16 + zlib.MAX_WBITS
GZIP_MAGIC = b"\x1f\x8b"


def sniffed(chunks: Iterable[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Whether chunks begin like gzip, and all of them."""
    rest = iter(chunks)
    first = b""
    while len(first) < len(GZIP_MAGIC) and (chunk := next(rest, b"")):
        first += chunk
    return first.startswith(GZIP_MAGIC), chain([first], rest)


def unzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack gzip, members one after another, at most ``PIECE`` bytes at a time.

    Raises:
        Invalid: the bytes aren't gzip.
        BadRequest: they end in the middle.
    """
    unpacker = zlib.decompressobj(GZIP)
    started = False
    for chunk in chunks:
        rest = chunk
        while rest:
            if unpacker.eof:
                unpacker = zlib.decompressobj(GZIP)
            started = True
            yield _unpacked(unpacker, rest)
            rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    if started and not unpacker.eof:
        raise BadRequest("the gzip body ends in the middle; the execution that was being read isn't kept")


def _unpacked(unpacker: _Unpacker, data: bytes) -> bytes:
    try:
        return unpacker.decompress(data, PIECE)
    except zlib.error as error:
        raise Invalid(
            f"the body isn't gzip, as its content-encoding says: {error}",
            errors=[FieldError("/header/content-encoding", "must describe the body", "gzip")],
        ) from error


def limited(chunks: Iterable[bytes], limit_bytes: int) -> Iterator[bytes]:
    """Pass chunks on until they exceed the limit.

    Raises:
        TooLarge: they do.
    """
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > limit_bytes:
            raise TooLarge(
                f"the body exceeds {limit_bytes:,} bytes", errors=[FieldError("", f"at most {limit_bytes} bytes", None)]
            )
        yield chunk


def lines(chunks: Iterable[bytes], longest_bytes: int) -> Iterator[bytes]:
    """Split into lines, without their ends.

    Raises:
        Invalid: a line is longer than ``longest_bytes``.
    """
    rest = b""
    number = 0
    for chunk in chunks:
        whole = (rest + chunk).split(b"\n")
        rest = whole.pop()
        for line in whole:
            number += 1
            yield line
        if len(rest) > longest_bytes:
            message = f"line {number + 1} is longer than {longest_bytes:,} bytes"
            raise Invalid(message, errors=[FieldError(f"/lines/{number + 1}", message, None)])
    if rest:
        yield rest

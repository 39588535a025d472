"""A body as blocks of lines: unpacked, measured against its limit, and cut, with only one piece in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from app.errors import BadRequest, FieldError, Invalid, TooLarge

if TYPE_CHECKING:
    from zlib import _Decompress as _Unpacker

PIECE = 1 << 18  # most bytes unpacked at once
FEED_BYTES = 1 << 12  # most packed bytes given at once: the rest of them is copied for each piece and member
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
    for fed in (chunk[at : at + FEED_BYTES] for chunk in chunks for at in range(0, len(chunk), FEED_BYTES)):
        rest = fed
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
            f"the body isn't gzip, as its content-encoding or its first bytes say: {error}",
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


def watched(pieces: Iterable[bytes], check: Callable[[], None]) -> Iterator[bytes]:
    """Pass pieces on, of at most ``PIECE`` bytes each; ``check`` is called before each, and raises to end it all."""
    for piece in pieces:
        for at in range(0, len(piece), PIECE):
            check()
            yield piece[at : at + PIECE]


def blocks(pieces: Iterable[bytes], longest_bytes: int) -> Iterator[bytes]:
    """Cut at ends of lines: blocks of one or more whole lines, without the end of the last.

    Which lines come before an error doesn't depend on how they are spread over pieces.

    Raises:
        Invalid: a line is longer than ``longest_bytes``.
    """
    rest: list[bytes] = []  # joined once: a long line may come in many pieces
    held = before = 0
    for piece in pieces:
        whole, end, begun = piece.rpartition(b"\n")
        if end:
            block = b"".join([*rest, whole])
            if len(block) > longest_bytes:  # else no line can be
                lines = block.split(b"\n")
                sound = next((at for at, line in enumerate(lines) if len(line) > longest_bytes), len(lines))
                if sound < len(lines):
                    if sound:
                        yield b"\n".join(lines[:sound])
                    raise _too_long(before + sound + 1, longest_bytes)
            before += block.count(b"\n") + 1
            yield block
            rest, held = [], 0
        rest.append(begun)
        held += len(begun)
        if held > longest_bytes:
            raise _too_long(before + 1, longest_bytes)
    if held:
        yield b"".join(rest)


def _too_long(number: int, longest_bytes: int) -> Invalid:
    message = f"line {number} is longer than {longest_bytes:,} bytes"
    return Invalid(message, errors=[FieldError(f"/lines/{number}", message, None)])

"""Messages to the user, on standard error, as standard output belongs to the command."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator

NARROWEST, INDENT, PIECE_BYTES = 40, "         ", 4096


_unfinished: dict[int, bytes] = {}
"""The command's last piece of output by file descriptor (1, 2), if it ended within a line."""


def pass_on(descriptor: int, piece: bytes) -> None:
    """Record a piece of output written to descriptor 1 or 2, so that the next message begins on a new line."""
    _unfinished.pop(descriptor, None)
    if not piece.endswith(b"\n"):
        _unfinished[descriptor] = piece[-PIECE_BYTES:]


def write(descriptor: int, piece: bytes) -> None:
    """Write a piece of output to descriptor 1 or 2, all of it; raises OSError if its reader has ended."""
    (sys.stdout if descriptor == 1 else sys.stderr).flush()
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]
    pass_on(descriptor, piece)


def _line_start() -> str:
    """Text that moves the cursor to a new line; it erases a progress bar on a terminal, which is redrawn below."""
    try:
        shared = os.path.sameopenfile(1, 2)
    except OSError:  # one of them is closed
        shared = False
    left = [_unfinished.pop(number, b"") for number in (1, 2) if shared or number == 2]
    piece = b"".join(left)
    if not piece:
        return ""
    return "\r\x1b[J" if sys.stderr.isatty() and b"\r" in piece else "\n"


def say(text: str, speaker: str = "steward") -> None:
    """Print ``speaker: text`` to standard error, wrapped at the terminal's width; on one line without a terminal."""
    sys.stderr.write(_line_start())
    sys.stderr.write("".join(f"{line}\n" for line in lines(f"{speaker}: {text}", columns())))
    sys.stderr.flush()


def unless(quiet: bool, say: Callable[[str], None]) -> Callable[[str], None]:
    """``say``, or with ``quiet`` a function that prints nothing."""
    return _ignore if quiet else say


def _ignore(_: str) -> None:
    pass


def columns() -> int | None:
    """Width of the terminal in characters, at least 40; None if standard error is no terminal."""
    return max(NARROWEST, shutil.get_terminal_size().columns) if sys.stderr.isatty() else None


def lines(text: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a message, wrapped at ``width`` characters (None: not wrapped), with indented continuation."""
    if width is None or len(text) <= width:
        yield text
    else:
        yield from textwrap.wrap(
            text, width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False, tabsize=1
        )

"""What is said to whoever watches: on standard error, for standard output is the command's."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator

NARROWEST, INDENT, PIECE_BYTES = 40, "         ", 4096


_unfinished: dict[int, bytes] = {}
"""By descriptor: the piece of the command's output with which a line has begun and not ended."""


def passed_on(descriptor: int, piece: bytes) -> None:
    """A piece of the command's output was written: a message after it has to begin a line of its own."""
    _unfinished.pop(descriptor, None)
    if not piece.endswith(b"\n"):
        _unfinished[descriptor] = piece[-PIECE_BYTES:]


def _line_begun() -> str:
    """What takes the cursor to a new line: a progress bar on a terminal is erased, for it is drawn again below."""
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
    """A message: on a terminal as wide as that, elsewhere a line."""
    sys.stderr.write(_line_begun())
    sys.stderr.write("".join(f"{line}\n" for line in lines(f"{speaker}: {text}", columns())))
    sys.stderr.flush()


def unless(quiet: bool, say: Callable[[str], None]) -> Callable[[str], None]:
    """What says how far it is: nothing where that is not to be heard."""
    return _unheard if quiet else say


def _unheard(_: str) -> None:
    pass


def columns() -> int | None:
    """How wide the terminal is; None where what is said goes elsewhere."""
    return max(NARROWEST, shutil.get_terminal_size().columns) if sys.stderr.isatty() else None


def lines(text: str, width: int | None) -> Iterator[str]:
    """A message in lines; later ones stand further in."""
    if width is None or len(text) <= width:
        yield text
    else:
        yield from textwrap.wrap(
            text, width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False, tabsize=1
        )

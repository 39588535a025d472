"""What is said to whoever watches: on standard error, for standard output is the command's."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator

NARROWEST, INDENT = 40, "         "


def say(text: str, speaker: str = "steward") -> None:
    """A message: on a terminal as wide as that, elsewhere a line."""
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

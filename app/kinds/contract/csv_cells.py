"""Cells of CSV that no spreadsheet takes for formulas, and that read back as what they were.

A spreadsheet calculates a cell that begins with one of ``= + - @``, a tab or the end of a line, and some cut lines at
``;`` instead of ``,``. Where text begins so, at its own beginning or behind a ``;``, an apostrophe is put before it,
and one more where apostrophes stand there already; reading takes one away. Numbers stay as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

_PLAIN = re.compile(r"(^|;)('*[=+\-@\t\r\n])")
_ESCAPED = re.compile(r"(^|;)'('*[=+\-@\t\r\n])")


def escaped(text: str) -> str:
    """Text as it is written to a cell."""
    return _PLAIN.sub(r"\1'\2", text)


def unescaped(cell: str) -> str:
    """Undo ``escaped``; text that needs no escaping is taken as it is."""
    return _ESCAPED.sub(r"\1\2", cell) if "'" in cell else cell


def line(cells: Iterable[object]) -> str:
    """A line of cells, quoted where need be, with its end; text is escaped."""
    out = io.StringIO()
    csv.writer(out).writerow([escaped(one) if isinstance(one, str) else one for one in cells])  # quotes \r and \n, too
    return out.getvalue().removesuffix("\r\n") + "\n"

"""The contract of a format, and what it yields.

A reader takes the body's lines, many at a time, or its pieces, and yields executions one by one, in order, holding one
at a time: either ``Sample`` with checked data, or ``Refused`` with the reason. It raises ``InvalidInput`` only for
what makes the whole upload unreadable.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import LONGEST_SHOWN, FieldIssue

_FILLED = re.compile(rb"^[ \t\r\f\v]*+[^\s][^\n]*+", re.MULTILINE)


@dataclass(frozen=True)
class Skipped:
    """Lines of a body that were left out for one reason.

    Attributes:
        field: the column that is wrong; empty for a whole line.
        reason: what would have been accepted.
        count: how many lines.
        lines: the numbers of the first of them, counting from 1.
    """

    field: str
    reason: str
    count: int
    lines: tuple[int, ...]


class Sample(NamedTuple):
    """An execution that may be stored.

    Attributes:
        execution: its identifier.
        line: where it begins.
        data: as it is stored.
        iterations: how many it has; of a trace, how many tasks.
        digest: of what it says: the same again has the same.
        summary: what lists tell of it, JSON: fields of ``ExecutionRead``.
        lacks: sentences on what its source does not say.
        warnings: what looks wrong in it, or was mended.
        skipped: lines that were left out of it, as was asked for.
    """

    execution: str
    line: int
    data: bytes
    iterations: int
    digest: str
    summary: Mapping[str, Any]
    lacks: tuple[str, ...] = ()
    warnings: tuple[FieldIssue, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def tabular(execution: str, line: int, data: NDArray[np.float64], summary: Mapping[str, Any]) -> Sample:
    """An execution that is a table, [n, C]."""
    stored = data.astype("<f8", copy=False).tobytes()
    return Sample(execution, line, stored, len(data), hashlib.sha256(stored).hexdigest(), summary)


class Refused(NamedTuple):
    """An execution of which nothing may be kept."""

    execution: str
    line: int
    issue: FieldIssue

    def cut(self) -> Refused:
        """The same, with no more of what was sent than is told."""
        pointer, message, value = self.issue
        value = value[:LONGEST_SHOWN] if isinstance(value, str) else value
        issue = FieldIssue(pointer[:LONGEST_SHOWN], message[:LONGEST_SHOWN], value)
        return Refused(self.execution[:LONGEST_SHOWN], self.line, issue)


def filled(block: bytes, before: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a block that aren't blank, with their numbers.

    Blank ones cost next to nothing: a thousand of them may have been packed in a byte.

    Args:
        before: how many lines came before the block.
    """
    if block.isspace():
        return
    number, at = before + 1, 0
    for found in _FILLED.finditer(block):
        number += block.count(b"\n", at, found.start())
        at = found.start()
        yield number, found[0]


class Reader(Protocol):
    """Reads executions from a body."""

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order.

        Args:
            blocks: each one or more whole lines, without the end of the last; or pieces, where a format isn't read by
                lines.
        """

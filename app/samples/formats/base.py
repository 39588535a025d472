"""The contract of a format, and what it yields.

A reader takes the body's lines and yields executions one by one, in order, holding one at a time: either ``Sound`` with
checked data, or ``Refused`` with the reason. It raises ``Invalid`` only for what makes the whole upload unreadable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.base import FieldIssue
from app.samples.check import plain, printable
from app.samples.schemas import Rejection


class Sound(NamedTuple):
    """An execution that may be stored: its identifier, first line, and data [n, C]."""

    execution: str
    line: int
    data: NDArray[np.float64]


class Refused(NamedTuple):
    """An execution of which nothing may be kept."""

    execution: str
    line: int
    issue: FieldIssue

    def rejection(self) -> Rejection:
        """As answered."""
        pointer, message, value = self.issue
        return Rejection(
            execution=printable(self.execution[:300]), line=self.line, field=pointer, reason=message, value=plain(value)
        )


class Reader(Protocol):
    """Reads executions from lines."""

    def read(self, lines: Iterator[bytes]) -> Iterator[Sound | Refused]:
        """Executions in order; ``lines`` come without their ends."""

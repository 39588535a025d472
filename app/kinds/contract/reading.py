"""The contract of a format, and what it yields.

A reader takes the body's lines, or its pieces, and yields executions one by one, in order, holding one at a time:
either ``Sample`` with checked data, or ``Refused`` with the reason. It raises ``InvalidInput`` only for what makes the
whole upload unreadable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue


class Sample(NamedTuple):
    """An execution that may be stored.

    Attributes:
        execution: its identifier.
        line: where it begins.
        data: as it is stored.
        iterations: how many it has; of a trace, how many tasks.
        digest: of what it says: the same again has the same.
        lacks: sentences on what its source does not say.
        warnings: what looks wrong in it, or was mended.
    """

    execution: str
    line: int
    data: bytes
    iterations: int
    digest: str
    lacks: tuple[str, ...] = ()
    warnings: tuple[FieldIssue, ...] = ()


def tabular(execution: str, line: int, data: NDArray[np.float64]) -> Sample:
    """An execution that is a table, [n, C]."""
    stored = data.astype("<f8", copy=False).tobytes()
    return Sample(execution, line, stored, len(data), hashlib.sha256(stored).hexdigest())


class Refused(NamedTuple):
    """An execution of which nothing may be kept."""

    execution: str
    line: int
    issue: FieldIssue


class Reader(Protocol):
    """Reads executions from a body."""

    def read(self, lines: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order; ``lines`` come without their ends, or are pieces where a format isn't read by lines."""

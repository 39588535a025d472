"""The lines of a file in Standard Workload Format as a table of numbers, each checked by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.reading import LISTED, refuse
from app.kinds.workflow.formats.source import Source, lines

COLUMNS = (
    "job", "submit", "wait", "runtime", "allocated", "cpu", "used_memory", "processors", "estimate", "memory",
    "status", "user", "group", "executable", "queue", "partition", "preceding", "think",
)  # fmt: skip
WIDTH = len(COLUMNS)
JOB, SUBMIT, WAIT, RUNTIME, ALLOCATED, _, USED_MEMORY, REQUESTED, ESTIMATE, MEMORY, STATUS, USER = range(12)
PRECEDING = 16
PARTIAL = (2, 3, 4)
"""Status of lines that repeat a part of a job which was swapped out; the whole job has a line of its own."""
BLOCK_LINES = 4096
_HEADER = re.compile(rb"^;\s*([A-Za-z][\w ]{0,40}?)\s*:\s*(.*?)\s*$")

LARGEST = 1e15
"""No number of a log is larger: whole ones are exact up to there."""

Floats = NDArray[np.float64]


class Table(NamedTuple):
    """Rows as they stand in the file.

    Attributes:
        cells: [n, 18].
        line: number of each row's line, [n].
        header: comments of the form ``Name: value``.
        wide: lines with more than 18 columns.
    """

    cells: Floats
    line: NDArray[np.int64]
    header: dict[str, str]
    wide: list[int]

    def where(self, row: int, field: str) -> str:
        """Pointer to a field of a row."""
        return f"/lines/{int(self.line[row])}/{field}"

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Table:
        """Some of the rows."""
        return self._replace(cells=self.cells[rows], line=self.line[rows])


def read_table(source: Source) -> Table:
    """All rows of a source.

    Raises:
        InvalidInput: a line with too few columns, or with what is not a finite number.
        OSError: the file can't be read.
    """
    header: dict[str, str] = {}
    wide: list[int] = []
    blocks, numbers = [np.zeros((0, WIDTH))], [np.zeros(0, np.int64)]
    for line_numbers, rows in _blocks(source, header):
        cells, more = _cells(rows, line_numbers)
        wide += more
        blocks.append(cells)
        numbers.append(np.array(line_numbers))
    return Table(np.concatenate(blocks), np.concatenate(numbers), header, wide)


def _blocks(source: Source, header: dict[str, str]) -> Iterator[tuple[list[int], list[list[bytes]]]]:
    """Numbers and cells of up to ``BLOCK_LINES`` lines at a time; comments go to ``header``."""
    numbered = enumerate(lines(source), start=1)
    while block := list(islice(numbered, BLOCK_LINES)):
        found = [(number, cells) for number, line in block if (cells := line.split())]
        jobs = [item for item in found if not item[1][0].startswith(b";")]
        if len(jobs) < len(found):
            for _, line in block:
                if match := _HEADER.match(line):
                    header.setdefault(match[1].decode("latin-1"), match[2].decode("latin-1"))
        if jobs:
            yield [number for number, _ in jobs], [cells for _, cells in jobs]


def _cells(rows: list[list[bytes]], line: list[int]) -> tuple[Floats, list[int]]:
    """Rows as numbers, [n, 18], and the lines that have more columns.

    Raises:
        InvalidInput: too few columns, or what is not a finite number.
    """
    widths = set(map(len, rows))
    wide = (
        [number for number, cells in zip(line, rows, strict=True) if len(cells) > WIDTH] if max(widths) > WIDTH else []
    )
    flat = list(chain.from_iterable(cells[:WIDTH] for cells in rows) if wide else chain.from_iterable(rows))
    try:
        table = np.fromiter(map(float, flat), np.float64, len(flat))
    except ValueError:
        table = np.full(1, np.nan)
    if min(widths) < WIDTH or not (np.abs(table) <= LARGEST).all() or b"_" in b"".join(flat):
        refuse(_unreadable(rows, line))
    table = table.reshape(-1, WIDTH)
    return table, wide


def _unreadable(rows: list[list[bytes]], line: list[int]) -> list[FieldIssue]:
    issues = []
    for number, cells in zip(line, rows, strict=True):
        if len(cells) < WIDTH:
            message = f"must have {WIDTH} columns, has {len(cells)}"
            issues.append(FieldIssue(f"/lines/{number}", message, b" ".join(cells)[:80].decode("utf-8", "replace")))
            continue
        for name, cell in zip(COLUMNS, cells, strict=False):
            if not _is_number(cell):
                text = cell[:80].decode("utf-8", "replace")
                issues.append(
                    FieldIssue(f"/lines/{number}/{name}", f"must be a finite number of at most {LARGEST:g}", text)
                )
        if len(issues) >= LISTED:
            break
    return issues


def _is_number(cell: bytes) -> bool:
    """Python's digit grouping (``1_000``) isn't one."""
    try:
        return abs(float(cell)) <= LARGEST and b"_" not in cell
    except ValueError:
        return False


def faults(table: Table) -> list[FieldIssue]:
    """Values that no job can have, in order of lines."""
    cells = table.cells
    unknown = cells == -1
    bad = {
        "job": (cells[:, JOB] < 0) | (cells[:, JOB] % 1 != 0),
        "submit": cells[:, SUBMIT] < 0,
        "runtime": (cells[:, RUNTIME] < 0) & ~unknown[:, RUNTIME],
        "allocated": _no_count(cells[:, ALLOCATED]),
        "processors": _no_count(cells[:, REQUESTED]),
        "estimate": (cells[:, ESTIMATE] < 0) & ~unknown[:, ESTIMATE],
    }
    accepted = {
        "job": "must be a whole number from 0",
        "submit": "must be a number of seconds from 0",
        "runtime": "must be a number of seconds from 0, or -1 where it is unknown",
        "estimate": "must be a number of seconds from 0, or -1 where it is unknown",
    }
    issues = []
    for field, rows in bad.items():
        message = accepted.get(field, "must be a whole number from 0, or -1 where it is unknown")
        for row in np.flatnonzero(rows)[:LISTED].tolist():
            value = float(cells[row, COLUMNS.index(field)])
            issues.append((row, FieldIssue(table.where(row, field), message, value)))
    return [issue for _, issue in sorted(issues, key=lambda found: found[0])] or _twice(table)


def _no_count(values: Floats) -> NDArray[np.bool_]:
    return (values != -1) & ((values < 0) | (values % 1 != 0))


def _twice(table: Table) -> list[FieldIssue]:
    """Job numbers that stand on more than one line, those about parts of jobs aside."""
    whole = table.take(~np.isin(table.cells[:, STATUS], PARTIAL))
    jobs = whole.cells[:, JOB]
    order = np.argsort(jobs, kind="stable")
    repeats = np.flatnonzero(np.diff(jobs[order]) == 0)
    issues = []
    for at in repeats[:LISTED].tolist():
        first, again = int(order[at]), int(order[at + 1])
        message = f"job {jobs[first]:.0f} has been given on line {int(whole.line[first])} already"
        issues.append(FieldIssue(whole.where(again, "job"), message, float(jobs[again])))
    return issues
